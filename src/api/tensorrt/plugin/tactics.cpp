// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/tactics.h"

#include "api/tensorrt/plugin/call.h"
#include "backends/cuda/options.h"
#include "base/log.h"
#include "engine/engine.h"
#include "plan/run_settings.h"

#include <algorithm>

namespace ingot::api {

namespace nv = nvinfer1;

namespace {

bool is_known(std::span<const Type> in) {
    return std::all_of(in.begin(), in.end(), [](const Type& t) {
        return std::all_of(t.dims.begin(), t.dims.end(), [](const Dim& d) { return d.is_const(); });
    });
}

/// An engine with this plugin alone.
std::shared_ptr<const Engine> engine_of(const Plugin& p, std::span<const Type> in) {
    Graph g;
    Values inputs;
    for (const Type& t : in) {
        inputs.push_back(g.add_input(str("in", inputs.size()), t));
    }
    g.set_origin("plugin");
    Values results = g.add(plugin_def, p, inputs);
    for (size_t i = 0; i < results.size(); ++i) {
        g.add_output(str("out", i), results[i]);
    }
    return Engine::create(std::move(g), {}, {});
}

struct PluginTimer final : StepTimer {
    void step(const StepInfo& info, double milliseconds) noexcept override {
        ms += info.kernel == plugin_def.name ? milliseconds : 0;
    }
    double ms = 0;
};

/// Milliseconds of one run of the plugin's step: the median of several runs, after a warm-up.
double time_tactic(const PluginBuild& how, const Backend& backend,
                   const std::shared_ptr<plan::PluginHost>& host, const Plugin& p,
                   std::span<const Type> in) {
    CompileOptions options;
    options.plugins = host;
    options.of<CudaOptions>().memory_limit = how.memory_limit;
    options.of<CudaOptions>().record_graphs = false;
    Context context(engine_of(p, in), backend, options);
    std::vector<Tensor> inputs; // zeros: 0 is likely to be valid for an integer of any meaning
    for (const Type& t : in) {
        Shape shape;
        for (const Dim& d : t.dims) {
            shape.push_back(d.value());
        }
        inputs.push_back(Tensor::zeros(t.dtype, shape));
    }
    context.run(inputs);
    std::vector<double> times;
    for (int i = 0; i < std::max(how.runs, 1); ++i) {
        PluginTimer timer;
        context.execution().change([&](RunSettings& changed) { changed.timer = &timer; });
        context.run(inputs);
        context.execution().change([&](RunSettings& changed) { changed.timer = nullptr; });
        times.push_back(timer.ms);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

/// Everything that the tactics' times depend on, as one line.
std::string problem_of(const Plugin& p, std::string_view id, std::span<const Type> in,
                       std::span<const int32_t> tactics) {
    std::string text = str(plugin_text(p.name, p.version, p.space), " id '", id, "':");
    for (const Type& t : in) {
        append(text, str(' ', t));
    }
    append(text, " tactics");
    for (int32_t t : tactics) {
        append(text, str(' ', t));
    }
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
    return text;
}

std::string tactic_name(int32_t tactic) {
    return str("plugin tactic ", tactic);
}

std::optional<int32_t> known_tactic(const PluginBuild& how, const std::string& device,
                                    const std::string& problem, std::span<const int32_t> tactics) {
    std::optional<plan::Timing> known =
        how.timings == nullptr ? std::nullopt : how.timings->find(device, problem);
    for (int32_t t : tactics) {
        if (known && plan::names_tactic(known->tactic, tactic_name(t))) {
            return t;
        }
    }
    return std::nullopt;
}

std::optional<TimedTactic> race(const PluginBuild& how, const Backend& backend,
                                nv::IPluginV3& plugin, const Plugin& p, std::span<const Type> in,
                                std::span<const int32_t> tactics) {
    std::vector<GivenPlugin> given;
    given.push_back({p, clone_of(plugin)});
    auto host = make_plugin_host(std::move(given), nullptr, how.report);
    return fastest_tactic(tactics, [&](int32_t tactic) {
        Plugin with = p;
        with.tactic = tactic;
        try {
            return time_tactic(how, backend, host, with, in);
        } catch (const Error& e) {
            if (e.code() == ErrorCode::Device) {
                throw;
            }
            log(LogLevel::Verbose, plugin_text(p.name, p.version, p.space), ": tactic ", tactic,
                " is not timed: ", e.what());
            return -1.0;
        }
    });
}

} // namespace

std::optional<TimedTactic> fastest_tactic(std::span<const int32_t> tactics,
                                          const std::function<double(int32_t)>& milliseconds) {
    std::optional<TimedTactic> best;
    for (int32_t t : tactics) {
        double ms = milliseconds(t);
        if (ms >= 0 && (!best || ms < best->ms)) {
            best = TimedTactic{t, ms};
        }
    }
    return best;
}

int32_t choose_tactic(const PluginBuild& how, nv::IPluginV3& plugin, const Plugin& p,
                      std::span<const Type> in) {
    nv::IPluginV3OneBuild& build = *parts_of(plugin, true).build;
    std::vector<int32_t> tactics = tactics_of(build);
    if (tactics.size() < 2) {
        return tactics.empty() ? 0 : tactics[0];
    }
    const Backend* backend = how.place ? how.place() : nullptr;
    if (backend == nullptr || !is_known(in)) {
        log(LogLevel::Info, plugin_text(p.name, p.version, p.space), ": the first of ",
            tactics.size(), " tactics is used: ",
            backend == nullptr ? "there is no device to time them on"
                               : "no profile says how large its inputs are");
        return tactics[0];
    }
    constexpr double us_per_ms = 1000;
    const char* id = build.getTimingCacheID();
    std::string device = backend->timing_device();
    std::string problem = id == nullptr ? std::string() : problem_of(p, id, in, tactics);
    if (id != nullptr) {
        if (auto known = known_tactic(how, device, problem, tactics)) {
            return *known;
        }
        require(!how.timed_before, ErrorCode::InvalidArgument,
                "the timing cache has no entry for the tactics of ",
                plugin_text(p.name, p.version, p.space), ": ", problem);
    }
    std::optional<TimedTactic> best = race(how, *backend, plugin, p, in, tactics);
    if (!best) {
        log(LogLevel::Warning, plugin_text(p.name, p.version, p.space), ": none of its ",
            tactics.size(), " tactics could be timed; the first is used");
        return tactics[0];
    }
    if (id != nullptr && how.timings != nullptr) {
        how.timings->add(device, problem, {tactic_name(best->tactic), best->ms * us_per_ms});
    }
    log(LogLevel::Verbose, plugin_text(p.name, p.version, p.space), ": tactic ", best->tactic,
        " takes ", best->ms, " ms, the best of ", tactics.size());
    return best->tactic;
}

} // namespace ingot::api
