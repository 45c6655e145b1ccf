// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/build_limits.h"

#include "api/tensorrt/globals.h"
#include "api/tensorrt/memory_log.h"
#include "api/tensorrt/runtime/place.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace ingot::api {

namespace {

using Flag = nv::BuilderFlag;
using Pool = nv::MemoryPoolType;

bool is_limited(const BuilderConfig& config, Pool pool) {
    return config.getMemoryPoolLimit(pool) <
           static_cast<size_t>(std::numeric_limits<int64_t>::max());
}

/// nullopt where the engine may run on another device than one that is here.
std::optional<Place> place_of(const BuilderConfig& config) {
    try {
        Place place = find_place(config.device, config.ordinal);
        bool elsewhere = !place.is_gpu && config.device == Device::kAUTO;
        return elsewhere ? std::nullopt : std::optional(place);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::Device) {
            throw;
        }
        return std::nullopt;
    }
}

/// The largest shapes of the inputs in each profile, those without open sizes.
std::vector<std::vector<Shape>> largest_shapes(const Engine& engine) {
    const Graph& g = engine.graph();
    std::vector<Profile> profiles = engine.profiles();
    if (profiles.empty()) {
        profiles.emplace_back();
    }
    std::vector<std::vector<Shape>> all;
    for (const Profile& p : profiles) {
        std::vector<Shape> shapes;
        for (Value v : g.inputs()) {
            const ShapeRange* range = p.find(g.value_name(v));
            std::optional<Shape> fixed = as_const(g.type(v).dims);
            if (range == nullptr && !fixed) {
                break;
            }
            shapes.push_back(range != nullptr ? range->max : *fixed);
        }
        if (shapes.size() == g.inputs().size()) {
            all.push_back(std::move(shapes));
        }
    }
    return all;
}

} // namespace

CompileOptions limited_options(const BuilderConfig& config) {
    CompileOptions o;
    o.tf32 = config.has(Flag::kTF32);
    o.batch_invariant = config.has(Flag::kDISTRIBUTIVE_INDEPENDENCE);
    if (is_limited(config, Pool::kWORKSPACE)) {
        o.workspace = static_cast<int64_t>(config.getMemoryPoolLimit(Pool::kWORKSPACE));
    }
    if (is_limited(config, Pool::kTACTIC_SHARED_MEMORY)) {
        o.shared_memory =
            static_cast<int64_t>(config.getMemoryPoolLimit(Pool::kTACTIC_SHARED_MEMORY));
    }
    o.on_limit = [report = config.report()](std::string_view text) {
        report.log(nv::ILogger::Severity::kINFO, text);
    };
    return o;
}

void check_limits(const std::shared_ptr<const Engine>& engine, const BuilderConfig& config,
                  const std::shared_ptr<plan::PluginHost>& plugins) {
    bool limited =
        is_limited(config, Pool::kWORKSPACE) || is_limited(config, Pool::kTACTIC_SHARED_MEMORY);
    std::optional<Place> place = limited ? place_of(config) : std::nullopt;
    // A plugin may be made for the GPU that is not here.
    bool foreign = place && plugins != nullptr && !place->is_gpu && config.device != Device::kCPU;
    if (!place || foreign) {
        return;
    }
    CompileOptions options = limited_options(config);
    options.plugins = plugins;
    options.runtime_cache =
        config.has(Flag::kDISABLE_COMPILATION_CACHE) ? "" : cache_folder_option();
    Context context(engine, *place->backend, options);
    int64_t activations = 0;
    int64_t scratch = 0;
    for (const std::vector<Shape>& shapes : largest_shapes(*engine)) {
        activations = std::max(activations, context.execution().activation_bytes(shapes));
        scratch = std::max(scratch, context.execution().memory_use().scratch);
    }
    log_bytes(config.report(), "Max Scratch Memory", scratch);
    log_bytes(config.report(), "Total Activation Memory", activations);
}

} // namespace ingot::api
