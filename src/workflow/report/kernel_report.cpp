// SPDX-License-Identifier: Apache-2.0
#include "workflow/report/kernel_report.h"

#include "backends/backends.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/trace.h"
#include "engine/properties.h"
#include "engine/storage.h"
#include "plan/run_settings.h"
#include "run/execution.h"
#include "workflow/timing.h"

#include <algorithm>
#include <map>

namespace ingot {

std::string_view name(TimeBasis b) {
    switch (b) {
    case TimeBasis::Measured:
        return "measured";
    case TimeBasis::Model:
        return "model";
    case TimeBasis::Roofline:
        return "roofline";
    case TimeBasis::None:
        return "none";
    }
    return "";
}

namespace {

/// Times of the steps of each run, by position.
class StepTimes : public StepTimer {
public:
    void step(const StepInfo&, double milliseconds) noexcept override {
        if (at_ == times_.size()) {
            times_.emplace_back();
        }
        times_[at_++].push_back(milliseconds);
    }
    void run(double milliseconds) noexcept override {
        at_ = 0;
        whole_ += milliseconds;
    }
    size_t steps() const { return times_.size(); }
    double whole_ms() const { return whole_; }
    double median_us(size_t step) const { return 1000 * median(times_[step]); }

private:
    std::vector<std::vector<double>> times_;
    size_t at_ = 0;
    double whole_ = 0;
};

/// Puts the median time of each step into its layer; bodies of control flow are in their step's.
StepTimes measure(KernelReport& r, Context& context, const ReportRequest& q) {
    StepTimes times;
    std::vector<Tensor> stored = context.stored(q.inputs);
    std::vector<Tensor> outputs;
    {
        TraceSpan span("first run");
        outputs = context.run_stored(stored);
    }
    std::vector<double> plain;
    for (int64_t i = 0; i < q.timed_runs; ++i) {
        context.run_stored(stored, outputs);
        plain.push_back(context.execution().times().compute);
    }
    context.execution().change([&](RunSettings& s) { s.timer = &times; });
    for (int64_t i = 0; i < q.timed_runs; ++i) {
        context.run_stored(stored, outputs);
    }
    context.execution().change([&](RunSettings& s) { s.timer = nullptr; });
    r.timed_runs = q.timed_runs;
    r.serial_ms = times.whole_ms() / static_cast<double>(q.timed_runs);
    r.plain_ms = median(plain);
    return times;
}

void add_floor(LayerReport& l, const plan::DeviceFigures& f) {
    const Operations& o = l.step.operations;
    std::pair<double, const char*> floors[] = {
        {l.bytes() / (f.dram_gbs * 1e3), "memory"},
        {o.products / f.peak(l.step.product_type) * 1e6, "products"},
        {o.scalars / f.scalar_flops * 1e6, "scalars"},
    };
    auto most = std::max_element(std::begin(floors), std::end(floors),
                                 [](const auto& a, const auto& b) { return a.first < b.first; });
    l.floor_us = most->first;
    l.limited_by = most->first > 0 ? most->second : "";
}

/// Times by the cost model; the roofline's where a step has no choice that the model rates.
void predict(LayerReport& l) {
    double us = 0;
    for (const plan::ChoiceReport& c : l.step.choices) {
        us += c.predicted_us;
    }
    if (us > 0) {
        l.time_us = us;
        l.basis = TimeBasis::Model;
    } else if (!l.step.launches.empty() && l.floor_us > 0) {
        l.time_us = l.floor_us;
        l.basis = TimeBasis::Roofline;
    }
}

/// `times`: null where nothing was measured.
void add_layers(KernelReport& r, std::vector<plan::StepReport> steps, const StepTimes* times) {
    size_t timed = 0;
    for (plan::StepReport& step : steps) {
        LayerReport l;
        l.step = std::move(step);
        if (r.figures) {
            add_floor(l, *r.figures);
        }
        if (times != nullptr && l.step.depth == 0 && timed < times->steps()) {
            l.time_us = times->median_us(timed++);
            l.basis = TimeBasis::Measured;
        } else if (times == nullptr && r.figures) {
            predict(l);
        }
        r.layers.push_back(std::move(l));
    }
}

void report_here(KernelReport& r, const std::shared_ptr<const Engine>& engine,
                 const ReportRequest& q, const CompileOptions& options) {
    r.backend = q.backend->name();
    r.device = q.backend->description();
    r.is_here = true;
    r.figures = device_figures(*q.backend, options);
    auto prepared = [&] {
        TraceSpan span("prepare");
        auto context = std::make_unique<Context>(engine, *q.backend, options);
        context->prepare(q.shapes);
        return context;
    }();
    Context& context = *prepared;
    std::optional<StepTimes> times;
    if (q.timed_runs > 0) {
        times = measure(r, context, q);
    }
    auto* execution = dynamic_cast<plan::ProgramExecution*>(&context.execution());
    CHECK(execution != nullptr, "an execution of ", r.backend, " has no plan to report");
    r.memory = context.execution().memory_use();
    add_layers(r, execution->report(), times ? &*times : nullptr);
}

void report_ahead(KernelReport& r, const Engine& engine, const ReportRequest& q,
                  const CompileOptions& options) {
    r.backend = "cuda";
    r.figures = device_figures(q.capability, options);
    r.device = r.figures->name;
    Storage storage(engine.graph_ref(), engine.formats());
    CompileOptions all = with_properties(options, engine);
    all.profiles = storage.profiles(engine.profiles());
    all.kernels = engine.kernels();
    add_layers(r,
               plan_report_ahead(storage.graph(), storage.input_shapes(q.shapes), q.capability, all,
                                 q.compiles),
               nullptr);
}

} // namespace

KernelReport kernel_report(const std::shared_ptr<const Engine>& engine,
                           const ReportRequest& request, const CompileOptions& options) {
    KernelReport r;
    const Graph& g = engine->graph();
    for (size_t i = 0; i < g.inputs().size() && i < request.shapes.size(); ++i) {
        r.inputs.emplace_back(g.value_name(g.inputs()[i]), request.shapes[i]);
    }
    if (request.backend != nullptr) {
        report_here(r, engine, request, options);
    } else {
        report_ahead(r, *engine, request, options);
    }
    return r;
}

std::string kernel_hash(const std::string& text) {
    return to_text(xxh3_128(std::as_bytes(std::span(text)))).substr(0, 16);
}

std::vector<ReportedKernel> kernels_of(const KernelReport& r) {
    std::map<std::pair<std::string, std::string>, ReportedKernel> found;
    for (const LayerReport& l : r.layers) {
        for (const plan::LaunchReport& launch : l.step.launches) {
            ReportedKernel& k = found[{launch.entry, launch.text}];
            if (k.launches++ == 0) {
                k = {launch.entry, kernel_hash(launch.text), launch.text, 1};
            }
        }
    }
    std::vector<ReportedKernel> all;
    for (auto& [key, k] : found) {
        all.push_back(std::move(k));
    }
    std::stable_sort(all.begin(), all.end(), [](const ReportedKernel& a, const ReportedKernel& b) {
        return a.launches > b.launches;
    });
    return all;
}

} // namespace ingot
