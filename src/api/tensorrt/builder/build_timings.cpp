// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/build_timings.h"

#include "api/tensorrt/builder/build_settings.h"
#include "api/tensorrt/builder/timing_cache.h"
#include "api/tensorrt/globals.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/cuda/options.h"
#include "base/hex.h"
#include "workflow/inputs/inputs.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <span>

namespace ingot::api {

namespace {

using Flag = nv::BuilderFlag;

constexpr int32_t timing_level = 4;
constexpr double budget_ms = 10000;
constexpr double long_budget_ms = 60000; // at level 5

CompileOptions timing_options(const BuilderConfig& config) {
    CompileOptions o;
    auto& cuda = o.of<CudaOptions>();
    cuda.tune = Tune::Full;
    cuda.tune_budget_ms =
        config.getBuilderOptimizationLevel() > timing_level ? long_budget_ms : budget_ms;
    cuda.timing_cache = config.timings();
    cuda.timed_before = config.has(Flag::kERROR_ON_TIMING_CACHE_MISS);
    cuda.tf32 = config.has(Flag::kTF32);
    o.batch_invariant = config.has(Flag::kDISTRIBUTIVE_INDEPENDENCE);
    cuda.record_graphs = false;
    cuda.runtime_cache = config.has(Flag::kDISABLE_COMPILATION_CACHE) ? "" : cache_folder_option();
    cuda.tuning_memory = tactic_memory(config);
    o.on_limit = [report = config.report()](std::string_view text) {
        report.log(nv::ILogger::Severity::kINFO, text);
    };
    return o;
}

std::string hex(nv::TimingCacheKey key) {
    return str("0x", to_hex(std::as_bytes(std::span(key.data))));
}

std::string hex(uint64_t hash) {
    return str("0x", plan::hashed_tactic(hash).substr(1));
}

std::string milliseconds(double us) {
    constexpr double us_per_ms = 1000;
    char text[32];
    std::snprintf(text, sizeof text, "%.6f", us / us_per_ms);
    return text;
}

/// Logs timings in the form that programs parse to edit the cache (NVIDIA's
/// sampleEditableTimingCache): the op with its key, one row per tactic, the choice.
class TimingLog final : public plan::TimingListener {
public:
    explicit TimingLog(const Report& report) : report_(report) {}

    void timed(const plan::TimedProblem& p) override {
        const plan::TimedProblem::Row& best = p.rows.at(p.best);
        double fastest = best.us;
        for (const auto& r : p.rows) {
            fastest = std::min(fastest, r.us);
        }
        line("=============== Computing costs for ", p.layer);
        line("Autotuning op ", p.layer, "(key: ", hex(timing_key(str(p.device, '\t', p.problem))),
             "):");
        line("tactic_id, cost(in ms), cost/fastest_cost, cost by model(in ms), kernel_name, "
             "tactic_hash,");
        for (size_t i = 0; i < p.rows.size(); ++i) {
            const plan::TimedProblem::Row& r = p.rows[i];
            char ratio[32];
            std::snprintf(ratio, sizeof ratio, "%.3f", fastest > 0 ? r.us / fastest : 1);
            line("  ", i, ", ", milliseconds(r.us), ", ", ratio, ", ", milliseconds(r.expected_us),
                 ", ", r.kernel, ", ", hex(plan::tactic_hash(r.tactic)), ',');
        }
        line("The selected tactic is (tactic hash, cost(in ms)):",
             hex(plan::tactic_hash(best.tactic)), ", ", milliseconds(best.us));
    }
    void missed(const std::string& layer, const std::string& tactic) override {
        report_.log(nv::ILogger::Severity::kWARNING,
                    str("the timing cache gives layer '", layer, "' the tactic ", tactic,
                        ", which it does not have; it is chosen anew. The verbose log of a build "
                        "with an empty cache lists a layer's tactics"));
    }

private:
    template <class... Parts>
    void line(const Parts&... parts) const {
        report_.log(nv::ILogger::Severity::kVERBOSE, str(parts...));
    }
    Report report_;
};

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
    auto log = std::make_shared<TimingLog>(config.report());
    plan::TimingCache& timings = *options.of<CudaOptions>().timing_cache;
    timings.listen(log);
    if (config.has(Flag::kEDITABLE_TIMING_CACHE) && !timings.by_layer()) {
        config.report().log(nv::ILogger::Severity::kWARNING,
                            "kEDITABLE_TIMING_CACHE is set, but the timing cache was made before: "
                            "its entries cannot be changed, and layers share them; set the flag "
                            "before createTimingCache()");
    }
    Context context(engine, *place.backend, options);
    context.run(load_inputs(*engine, {}).tensors);
    if (timings.size() == 0) {
        return engine;
    }
    Properties properties = engine->metadata();
    put_timings(timings.entries(), properties);
    return engine->with_graph(Graph(engine->graph()), std::move(properties))
        ->with_source(engine->source());
}

} // namespace ingot::api
