// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/build_limits.h"

#include "api/tensorrt/globals.h"
#include "api/tensorrt/memory_log.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/cuda/options.h"

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

/// The device to plan for; nullopt where there is none. With `sure`, also nullopt where the engine
/// may run on another device.
std::optional<Place> place_of(const BuilderConfig& config, bool sure) {
    try {
        Place place = find_place(config.device, config.ordinal);
        bool elsewhere = sure && !place.is_gpu && config.device == Device::kAUTO;
        return elsewhere ? std::nullopt : std::optional(place);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::Device) {
            throw;
        }
        return std::nullopt;
    }
}

/// The largest input shapes of each profile; profiles with open sizes are left out.
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

bool is_limited(const BuilderConfig& config) {
    return is_limited(config, Pool::kWORKSPACE) || is_limited(config, Pool::kTACTIC_SHARED_MEMORY);
}

/// Logs the memory of a context: "Total Host Persistent Memory: 123 bytes", and so on.
void log_context_memory(Context& context, const BuilderConfig& config, bool is_gpu) {
    int64_t activations = 0;
    int64_t scratch = 0;
    for (const std::vector<Shape>& shapes : largest_shapes(context.engine())) {
        activations = std::max(activations, context.execution().activation_bytes(shapes));
        scratch = std::max(scratch, context.execution().memory_use().scratch);
    }
    int64_t beside = context.execution().memory_use().persistent;
    auto packed = static_cast<int64_t>(context.executable().packed_bytes());
    log_bytes(config.report(), "Total Host Persistent Memory", is_gpu ? 0 : packed + beside);
    log_bytes(config.report(), "Total Device Persistent Memory", is_gpu ? beside : 0);
    log_bytes(config.report(), "Max Scratch Memory", scratch);
    log_bytes(config.report(), "Total Activation Memory", activations);
}

} // namespace

CompileOptions limited_options(const BuilderConfig& config) {
    CompileOptions o;
    auto& cuda = o.of<CudaOptions>();
    cuda.tf32 = config.has(Flag::kTF32);
    o.batch_invariant = config.has(Flag::kDISTRIBUTIVE_INDEPENDENCE);
    if (is_limited(config, Pool::kWORKSPACE)) {
        o.workspace = static_cast<int64_t>(config.getMemoryPoolLimit(Pool::kWORKSPACE));
    }
    if (is_limited(config, Pool::kTACTIC_SHARED_MEMORY)) {
        cuda.shared_memory =
            static_cast<int64_t>(config.getMemoryPoolLimit(Pool::kTACTIC_SHARED_MEMORY));
    }
    o.on_limit = [report = config.report()](std::string_view text) {
        report.log(nv::ILogger::Severity::kINFO, text);
    };
    return o;
}

void check_limits(const std::shared_ptr<const Engine>& engine, const BuilderConfig& config,
                  const std::shared_ptr<plan::PluginHost>& plugins) {
    bool limited = is_limited(config);
    std::optional<Place> place = place_of(config, limited);
    // A plugin may be built for a GPU that this machine lacks.
    bool foreign = place && plugins != nullptr && !place->is_gpu && config.device != Device::kCPU;
    // Planning for a GPU compiles kernels. Without a limit, timing and running compile them later.
    if (!place || foreign || (place->is_gpu && !limited)) {
        return;
    }
    CompileOptions options = limited_options(config);
    options.plugins = plugins;
    options.of<CudaOptions>().runtime_cache =
        config.has(Flag::kDISABLE_COMPILATION_CACHE) ? "" : cache_folder_option();
    try {
        Context context(engine, *place->backend, options);
        log_context_memory(context, config, place->is_gpu);
    } catch (const Error& e) {
        if (limited || e.code() == ErrorCode::Interrupted) {
            throw;
        }
        // The configuration names no device: the engine may run on another one.
        config.report().log(nv::ILogger::Severity::kVERBOSE,
                            str("the memory of contexts is not known: ", e.what()));
    }
}

} // namespace ingot::api
