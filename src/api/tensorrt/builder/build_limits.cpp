// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/build_limits.h"

#include "api/tensorrt/globals.h"
#include "api/tensorrt/memory_log.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/cuda/options.h"
#include "backends/device_memory.h"

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

/// "Total Host Persistent Memory: 123 bytes", and so on.
void log_memory(const Report& report, int64_t host, int64_t device, const MemoryUse& use) {
    log_bytes(report, "Total Host Persistent Memory", host);
    log_bytes(report, "Total Device Persistent Memory", device);
    log_bytes(report, "Max Scratch Memory", use.scratch);
    log_bytes(report, "Total Activation Memory", use.activations);
}

/// Logs the memory of contexts on a GPU without compiling their kernels.
void log_planned_memory(const Engine& engine, const BuilderConfig& config, const Place& place) {
    Storage storage(engine.graph_ref(), engine.formats());
    std::vector<std::vector<Shape>> shapes;
    for (const std::vector<Shape>& s : largest_shapes(engine)) {
        shapes.push_back(storage.input_shapes(s));
    }
    CompileOptions options = limited_options(config);
    options.profiles = storage.profiles(engine.profiles());
    MemoryUse use =
        memory_ahead(storage.graph(), shapes, place.backend->compute_capability(), options);
    log_memory(config.report(), 0, use.persistent, use);
}

/// Logs the memory of a context.
void log_context_memory(Context& context, const BuilderConfig& config, bool is_gpu) {
    MemoryUse most;
    for (const std::vector<Shape>& shapes : largest_shapes(context.engine())) {
        int64_t activations = context.execution().activation_bytes(shapes);
        most.activations = std::max(most.activations, activations);
        most.scratch = std::max(most.scratch, context.execution().memory_use().scratch);
    }
    int64_t beside = context.execution().memory_use().persistent;
    auto packed = static_cast<int64_t>(context.executable().packed_bytes());
    log_memory(config.report(), is_gpu ? 0 : packed + beside, is_gpu ? beside : 0, most);
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
    if (!limited && !config.logs_memory) {
        return;
    }
    std::optional<Place> place = place_of(config, limited);
    // A plugin may be built for a GPU that this machine lacks.
    bool foreign = place && plugins != nullptr && !place->is_gpu && config.device != Device::kCPU;
    if (!place || foreign || (place->is_gpu && !limited && plugins != nullptr)) {
        return;
    }
    CompileOptions options = limited_options(config);
    options.plugins = plugins;
    options.of<CudaOptions>().runtime_cache =
        config.has(Flag::kDISABLE_COMPILATION_CACHE) ? "" : cache_folder_option();
    try {
        if (place->is_gpu && !limited) {
            log_planned_memory(*engine, config, *place);
            return;
        }
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

extern "C" bool ingotSetMemoryLog(nvinfer1::IBuilderConfig* config, bool log) noexcept {
    if (config != nullptr) {
        static_cast<ingot::api::BuilderConfig*>(config)->logs_memory = log;
    }
    return config != nullptr;
}
