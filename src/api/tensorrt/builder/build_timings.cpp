// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/build_timings.h"

#include "api/tensorrt/builder/build_settings.h"
#include "api/tensorrt/globals.h"
#include "api/tensorrt/runtime/place.h"
#include "workflow/inputs/inputs.h"

#include <limits>

namespace ingot::api {

namespace {

using Flag = nv::BuilderFlag;

constexpr int32_t timing_level = 4;
constexpr double budget_ms = 10000;
constexpr double long_budget_ms = 60000; // of level 5

CompileOptions timing_options(const BuilderConfig& config) {
    CompileOptions o;
    o.tune = Tune::Full;
    o.tune_budget_ms =
        config.getBuilderOptimizationLevel() > timing_level ? long_budget_ms : budget_ms;
    o.timing_cache = config.timings();
    o.timed_before = config.has(Flag::kERROR_ON_TIMING_CACHE_MISS);
    o.tf32 = config.has(Flag::kTF32);
    o.batch_invariant = config.has(Flag::kDISTRIBUTIVE_INDEPENDENCE);
    o.record_graphs = false;
    o.runtime_cache = config.has(Flag::kDISABLE_COMPILATION_CACHE) ? "" : cache_folder_option();
    o.tuning_memory = tactic_memory(config);
    o.on_limit = [report = config.report()](std::string_view text) {
        report.log(nv::ILogger::Severity::kINFO, text);
    };
    return o;
}

} // namespace

int64_t tactic_memory(const BuilderConfig& config) {
    constexpr auto most = static_cast<size_t>(std::numeric_limits<int64_t>::max());
    size_t limit = config.getMemoryPoolLimit(nv::MemoryPoolType::kTACTIC_DRAM);
    return limit >= most ? 0 : static_cast<int64_t>(limit);
}

std::shared_ptr<const Engine> with_timings(std::shared_ptr<const Engine> engine,
                                           const BuilderConfig& config,
                                           std::shared_ptr<plan::PluginHost> plugins) {
    bool must = config.has(Flag::kERROR_ON_TIMING_CACHE_MISS);
    bool asked =
        must || config.has_timing_cache() || config.getBuilderOptimizationLevel() >= timing_level;
    if (!asked || config.has(Flag::kDISABLE_TIMING_CACHE)) {
        return engine;
    }
    Place place = find_place(config.device, config.ordinal);
    if (!place.is_gpu) {
        return engine;
    }
    CompileOptions options = timing_options(config);
    options.plugins = std::move(plugins);
    Context context(engine, *place.backend, options);
    context.run(load_inputs(*engine, {}).tensors);
    if (options.timing_cache->size() == 0) {
        return engine;
    }
    Properties properties = engine->metadata();
    put_timings(options.timing_cache->entries(), properties);
    auto timed = Engine::create(Graph(engine->graph()), engine->profiles(), std::move(properties))
                     ->with_formats(engine->formats());
    return engine->kernels() == nullptr ? timed : timed->with_kernels(*engine->kernels());
}

} // namespace ingot::api
