// SPDX-License-Identifier: Apache-2.0
#include "workflow/timing.h"

#include "base/interrupt.h"
#include "plan/run_settings.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <thread>

namespace ingot {

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// "%g": six significant digits, as std::ostream prints doubles.
std::string number(double v) {
    std::array<char, 40> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%g", v);
    return buffer.data();
}

struct Series {
    std::string_view title;
    double (InferenceTime::*value)() const;
};
constexpr std::array<Series, 5> series = {{{"Latency", &InferenceTime::latency},
                                           {"Enqueue Time", &InferenceTime::enqueue},
                                           {"H2D Latency", &InferenceTime::h2d},
                                           {"GPU Compute Time", &InferenceTime::compute},
                                           {"D2H Latency", &InferenceTime::d2h}}};

std::vector<double> collect(const Timing& t, double (InferenceTime::*value)() const) {
    std::vector<double> v;
    for (const InferenceTime& i : t.trace) {
        v.push_back((i.*value)());
    }
    return v;
}

double sum_of(const std::vector<double>& v) {
    double s = 0;
    for (double x : v) {
        s += x;
    }
    return s;
}

std::string summary_line(const Series& s, const Timing& t, const std::vector<double>& percentiles) {
    std::vector<double> v = collect(t, s.value);
    double mean = v.empty() ? 0 : sum_of(v) / static_cast<double>(v.size());
    std::string line = str(s.title, ": min = ", number(percentile(v, 0)),
                           " ms, max = ", number(percentile(v, 100)), " ms, mean = ", number(mean),
                           " ms, median = ", number(median(v)), " ms");
    for (double p : percentiles) {
        append(line, str(", percentile(", number(p), "%) = ", number(percentile(v, p)), " ms"));
    }
    return line;
}

void trace_lines(const Timing& t, int64_t average_runs, std::vector<std::string>& out) {
    auto n = static_cast<size_t>(std::max<int64_t>(1, average_runs));
    size_t groups = t.trace.size() / n;
    out.emplace_back("=== Trace details ===");
    out.push_back(str("Trace averages of ", n, " runs:"));
    for (size_t g = 0; g < groups; ++g) {
        if (g >= 200 && g + 200 < groups) { // long traces show both ends
            continue;
        }
        double compute = 0;
        double host = 0;
        double enqueue = 0;
        for (size_t i = g * n; i < (g + 1) * n; ++i) {
            compute += t.trace[i].compute();
            host += t.trace[i].latency();
            enqueue += t.trace[i].enqueue();
        }
        auto d = static_cast<double>(n);
        out.push_back(str("Average on ", n, " runs - GPU latency: ", number(compute / d),
                          " ms - Host latency: ", number(host / d), " ms (enqueue ",
                          number(enqueue / d), " ms)"));
    }
}

void warnings(const Timing& t, std::vector<std::string>& out) {
    std::vector<double> compute = collect(t, &InferenceTime::compute);
    double middle = median(compute);
    auto bound_by = [&](std::string_view what) {
        out.push_back(str("* Throughput may be bound by ", what,
                          " rather than GPU Compute and the GPU may be under-utilized."));
    };
    if (!t.on_caller && median(collect(t, &InferenceTime::enqueue)) > 0.8 * middle) {
        bound_by("Enqueue Time");
    }
    if (!t.on_caller && median(collect(t, &InferenceTime::h2d)) >= middle) {
        bound_by("host-to-device transfers for the inputs");
    }
    if (!t.on_caller && median(collect(t, &InferenceTime::d2h)) >= middle) {
        bound_by("device-to-host transfers for the outputs");
    }
    double mean = sum_of(compute) / static_cast<double>(compute.size());
    double variance = 0;
    for (double c : compute) {
        variance += (c - mean) * (c - mean);
    }
    double cv =
        mean == 0 ? 0 : std::sqrt(variance / static_cast<double>(compute.size())) / mean * 100;
    if (cv > 2.5) {
        out.push_back(str(
            "* GPU compute time is unstable, with coefficient of variance = ", number(cv), "%."));
    }
    if (t.streams > 1) {
        out.push_back(str("* ", t.streams,
                          " streams ran at once: Throughput counts them all, the "
                          "other figures are those of single queries, which overlap."));
    }
}

} // namespace

double percentile(std::vector<double> values, double p) {
    if (values.empty()) {
        return 0;
    }
    std::sort(values.begin(), values.end());
    auto n = static_cast<int64_t>(values.size());
    int64_t exclude = static_cast<int64_t>((1 - p / 100) * static_cast<double>(n));
    return values[static_cast<size_t>(std::max<int64_t>(n - 1 - exclude, 0))];
}

double median(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    std::sort(values.begin(), values.end());
    size_t m = values.size() / 2;
    return values.size() % 2 == 1 ? values[m] : (values[m - 1] + values[m]) / 2;
}

namespace {

void warm_up(Context& context, const std::vector<Tensor>& inputs, double least_ms, Timing& t) {
    t.outputs = context.run_stored(inputs);
    Clock::time_point start = Clock::now();
    do {
        check_interrupt();
        context.run_stored(inputs, t.outputs);
        ++t.warm_up_queries;
        t.warm_up_ms = ms_since(start);
    } while (t.warm_up_ms < least_ms);
}

void trace(Context& context, const std::vector<Tensor>& inputs, const TimingOptions& options,
           Clock::time_point start, Timing& t) {
    auto more = [&] {
        return options.duration_s < 0 ||
               static_cast<int64_t>(t.trace.size()) < options.iterations ||
               ms_since(start) < options.duration_s * 1000;
    };
    while (more()) {
        check_interrupt();
        InferenceTime i;
        i.start_enqueue = i.start_h2d = i.end_h2d = i.start_compute = ms_since(start);
        context.run_stored(inputs, t.outputs);
        i.end_d2h = ms_since(start);
        RunTimes times = context.execution().times();
        i.end_enqueue = i.start_enqueue + times.enqueue;
        t.on_caller = times.compute <= 0;
        if (t.on_caller) {
            i.end_compute = i.start_d2h = i.end_enqueue = i.end_d2h;
        } else {
            i.end_h2d = i.start_compute = i.start_h2d + times.to_device;
            i.end_compute = i.start_d2h = i.start_compute + times.compute;
            i.end_d2h = i.start_d2h + times.to_host;
        }
        t.trace.push_back(i);
        if (options.idle_ms > 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(options.idle_ms));
        }
    }
    t.wall_s = ms_since(start) / 1000;
}

/// Calls f(0..n-1), each on its own thread when there are several; rethrows the first exception.
template <class F>
void in_threads(size_t n, const F& f) {
    if (n == 1) {
        f(0);
        return;
    }
    std::vector<std::exception_ptr> errors(n);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n; ++i) {
        threads.emplace_back([&f, &errors, i] {
            try {
                f(i);
            } catch (...) {
                errors[i] = std::current_exception();
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const std::exception_ptr& e : errors) {
        if (e) {
            std::rethrow_exception(e);
        }
    }
}

Timing measure_all(std::span<Context* const> contexts, const std::vector<Tensor>& inputs,
                   const TimingOptions& options) {
    std::vector<Timing> each(contexts.size());
    std::vector<Tensor> stored = contexts[0]->stored(inputs);
    in_threads(contexts.size(),
               [&](size_t i) { warm_up(*contexts[i], stored, options.warm_up_ms, each[i]); });
    std::this_thread::sleep_for(std::chrono::milliseconds(options.sleep_ms));
    Clock::time_point start = Clock::now();
    in_threads(contexts.size(),
               [&](size_t i) { trace(*contexts[i], stored, options, start, each[i]); });
    Timing all = std::move(each[0]);
    all.outputs = contexts[0]->unstored(all.outputs, inputs);
    all.streams = static_cast<int64_t>(contexts.size());
    for (size_t i = 1; i < each.size(); ++i) {
        all.warm_up_queries += each[i].warm_up_queries;
        all.warm_up_ms = std::max(all.warm_up_ms, each[i].warm_up_ms);
        all.wall_s = std::max(all.wall_s, each[i].wall_s);
        all.trace.insert(all.trace.end(), each[i].trace.begin(), each[i].trace.end());
    }
    std::stable_sort(all.trace.begin(), all.trace.end(),
                     [](const InferenceTime& x, const InferenceTime& y) {
                         return x.start_enqueue < y.start_enqueue;
                     });
    return all;
}

} // namespace

Timing measure(Context& context, const std::vector<Tensor>& inputs, const TimingOptions& options) {
    Context* only = &context;
    return measure_all({&only, 1}, inputs, options);
}

Timing measure(std::span<const std::unique_ptr<Context>> contexts,
               const std::vector<Tensor>& inputs, const TimingOptions& options) {
    std::vector<Context*> all;
    for (const std::unique_ptr<Context>& c : contexts) {
        all.push_back(c.get());
    }
    return measure_all(all, inputs, options);
}

void leave_out_transfers(Timing& t) {
    for (InferenceTime& i : t.trace) {
        i.start_h2d = i.end_h2d = i.start_compute;
        i.start_d2h = i.end_d2h = i.end_compute;
    }
}

void LayerTimer::step(const StepInfo& info, double milliseconds) noexcept {
    const std::string& name = info.name.empty() ? info.kernel : info.name;
    if (times_.try_emplace(name).second) {
        order_.push_back(name);
    }
    now_[name] += milliseconds;
}

void LayerTimer::run(double milliseconds) noexcept {
    whole_ += milliseconds;
    ++runs_;
    for (const auto& [name, sum] : now_) {
        times_[name].push_back(sum);
    }
    now_.clear();
}

LayerProfile LayerTimer::profile() const {
    LayerProfile p;
    p.runs = runs_;
    auto runs = static_cast<double>(std::max<int64_t>(runs_, 1));
    p.serial_ms = whole_ / runs;
    double all = 0;
    for (const auto& [name, v] : times_) {
        all += sum_of(v);
    }
    for (const std::string& name : order_) {
        const std::vector<double>& v = times_.at(name);
        double total = sum_of(v);
        p.layers.push_back(
            {name, total, total / runs, median(v), all == 0 ? 0 : total / all * 100});
    }
    return p;
}

LayerProfile profile_layers(Context& context, const std::vector<Tensor>& inputs, int64_t runs) {
    LayerTimer timer;
    std::vector<double> plain;
    std::vector<Tensor> stored = context.stored(inputs);
    std::vector<Tensor> outputs = context.run_stored(stored);
    context.run_stored(stored, outputs);
    for (int64_t i = 0; i < runs; ++i) {
        context.run_stored(stored, outputs);
        RunTimes t = context.execution().times();
        plain.push_back(t.compute);
    }
    context.execution().change([&](RunSettings& changed) { changed.timer = &timer; });
    for (int64_t i = 0; i < runs; ++i) {
        context.run_stored(stored, outputs);
    }
    context.execution().change([&](RunSettings& changed) { changed.timer = nullptr; });
    LayerProfile p = timer.profile();
    p.plain_ms = median(plain);
    return p;
}

std::vector<std::string> performance_lines(const Timing& t, const std::vector<double>& percentiles,
                                           int64_t average_runs) {
    std::vector<std::string> out;
    out.push_back(
        str("Warmup completed ", t.warm_up_queries, " queries over ", number(t.warm_up_ms), " ms"));
    out.push_back(
        str("Timing trace has ", t.trace.size(), " queries over ", number(t.wall_s), " s"));
    out.emplace_back();
    trace_lines(t, average_runs, out);
    out.emplace_back();
    out.emplace_back("=== Performance summary ===");
    out.push_back(
        str("Throughput: ", number(static_cast<double>(t.trace.size()) / t.wall_s), " qps"));
    for (const Series& s : series) {
        out.push_back(summary_line(s, t, percentiles));
    }
    out.push_back(str("Total Host Walltime: ", number(t.wall_s), " s"));
    out.push_back(str("Total GPU Compute Time: ",
                      number(sum_of(collect(t, &InferenceTime::compute)) / 1000), " s"));
    warnings(t, out);
    return out;
}

std::vector<std::string> profile_lines(const LayerProfile& p) {
    std::vector<std::string> out;
    out.push_back(str("=== Profile (", p.runs, " iterations ) ==="));
    out.emplace_back("   Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer");
    std::array<char, 128> line{};
    LayerTime total{"Total", 0, 0, 0, 0};
    auto add = [&](const LayerTime& l) {
        std::snprintf(line.data(), line.size(), "%11.2f  %11.4f  %11.4f  %8.1f   ", l.total_ms,
                      l.average_ms, l.median_ms, l.percentage);
        out.push_back(line.data() + l.name);
    };
    for (const LayerTime& l : p.layers) {
        if (l.total_ms > 0) {
            add(l);
        }
        total.total_ms += l.total_ms;
        total.average_ms += l.average_ms;
        total.median_ms += l.median_ms;
        total.percentage += l.percentage;
    }
    add(total);
    if (p.plain_ms <= 0) {
        return out;
    }
    out.push_back(str("Layers add up to ", number(total.average_ms), " ms of the ",
                      number(p.serial_ms), " ms of a run that times them serially."));
    out.push_back(str("A plain run takes ", number(p.plain_ms),
                      " ms: on a GPU its kernels overlap and no layer is timed."));
    return out;
}

std::string times_json(const Timing& t) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const InferenceTime& i : t.trace) {
        list.push_back({{"startEnqMs", i.start_enqueue},
                        {"endEnqMs", i.end_enqueue},
                        {"startH2dMs", i.start_h2d},
                        {"endH2dMs", i.end_h2d},
                        {"startComputeMs", i.start_compute},
                        {"endComputeMs", i.end_compute},
                        {"startD2hMs", i.start_d2h},
                        {"endD2hMs", i.end_d2h},
                        {"h2dMs", i.h2d()},
                        {"computeMs", i.compute()},
                        {"d2hMs", i.d2h()},
                        {"latencyMs", i.latency()}});
    }
    return list.dump(1);
}

std::string profile_json(const LayerProfile& p) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    list.push_back({{"count", p.runs}});
    if (p.plain_ms > 0) {
        list.back().update({{"serialMs", p.serial_ms}, {"plainMs", p.plain_ms}});
    }
    for (const LayerTime& l : p.layers) {
        list.push_back({{"name", l.name},
                        {"timeMs", l.total_ms},
                        {"averageMs", l.average_ms},
                        {"medianMs", l.median_ms},
                        {"percentage", l.percentage}});
    }
    return list.dump(1);
}

std::string outputs_json(const Graph& g, const std::vector<Tensor>& outputs) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (size_t i = 0; i < outputs.size(); ++i) {
        nlohmann::json values = nlohmann::json::array();
        for (int64_t k = 0; k < outputs[i].count(); ++k) {
            is_float(outputs[i].dtype()) ? values.push_back(outputs[i].get_f64(k))
                                         : values.push_back(outputs[i].get_i64(k));
        }
        list.push_back({{"name", g.output_names()[i]},
                        {"dimensions", shape_text(outputs[i].shape())},
                        {"values", values}});
    }
    return list.dump(1);
}

} // namespace ingot
