// SPDX-License-Identifier: Apache-2.0
// Measures an engine in trtexec's format: a trace of times and a performance summary.
#pragma once

#include "engine/engine.h"

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ingot {

/// One inference; milliseconds since the start of the measurement.
struct InferenceTime {
    double start_enqueue = 0, end_enqueue = 0;
    double start_h2d = 0, end_h2d = 0;
    double start_compute = 0, end_compute = 0;
    double start_d2h = 0, end_d2h = 0;
    double h2d() const { return end_h2d - start_h2d; }
    double compute() const { return end_compute - start_compute; }
    double d2h() const { return end_d2h - start_d2h; }
    double enqueue() const { return end_enqueue - start_enqueue; }
    double latency() const { return h2d() + compute() + d2h(); }
};

struct TimingOptions {
    int64_t iterations = 10; // at least
    double warm_up_ms = 200; // at least
    double duration_s = 3;   // at least; negative: until interrupted
    int64_t sleep_ms = 0;
    int64_t idle_ms = 0;
};
struct Timing {
    int64_t streams = 1;
    bool on_caller = false; // the calling thread computes: no transfers, no overlap
    int64_t warm_up_queries = 0;
    double warm_up_ms = 0;
    std::vector<InferenceTime> trace;
    double wall_s = 0;
    std::vector<Tensor> outputs; // of the last inference
};
/// Runs until both iterations and duration are met.
Timing measure(Context& context, const std::vector<Tensor>& inputs, const TimingOptions& options);
/// Several contexts concurrently, each driven by its own thread until it has met both. The trace
/// holds all inferences in start order; the outputs are the first context's.
Timing measure(std::span<const std::unique_ptr<Context>> contexts,
               const std::vector<Tensor>& inputs, const TimingOptions& options);
/// Removes transfers, as if inputs and outputs were already on the device.
void leave_out_transfers(Timing& t);

struct LayerTime {
    std::string name;
    double total_ms = 0;
    double average_ms = 0;
    double median_ms = 0;
    double percentage = 0;
};
struct LayerProfile {
    int64_t runs = 0;
    std::vector<LayerTime> layers;
    double serial_ms = 0; // mean time from the first layer to the last
    double plain_ms = 0;  // median of a run without layer timing; 0: not measured
};

/// Adds up the steps of one name in each run (a layer may be several steps, and a loop runs its own
/// again). Its profile has no plain_ms.
class LayerTimer : public StepTimer {
public:
    void step(const StepInfo& info, double milliseconds) noexcept override;
    void run(double milliseconds) noexcept override;
    /// Medians are over the runs that have the layer.
    LayerProfile profile() const;

private:
    std::vector<std::string> order_;
    std::map<std::string, std::vector<double>> times_; // in each run
    std::map<std::string, double> now_;                // in this run
    double whole_ = 0;
    int64_t runs_ = 0;
};

/// Runs with a timer on every step. On a GPU each layer then starts after the previous one has
/// ended, and its time includes that switch; a plain run replays a graph in which kernels begin
/// before their predecessors end, so it takes less than the sum of the layers.
LayerProfile profile_layers(Context& context, const std::vector<Tensor>& inputs, int64_t runs);

/// Element max(n - 1 - int((1 - p/100) * n), 0) of the sorted list; 0 when it is empty.
double percentile(std::vector<double> values, double p);
/// The middle element, or the mean of the two middle ones.
double median(std::vector<double> values);

/// The text from "=== Trace details ===" to the warnings; one element per line, without prefixes.
std::vector<std::string> performance_lines(const Timing& t, const std::vector<double>& percentiles,
                                           int64_t average_runs);
std::vector<std::string> profile_lines(const LayerProfile& p);
std::string times_json(const Timing& t);
std::string profile_json(const LayerProfile& p);
std::string outputs_json(const Graph& g, const std::vector<Tensor>& outputs);
/// A layer as JSON: its name or, in detail, an object.
std::string layer_json(const StepInfo& step, bool detailed);
/// The same as a line.
std::string layer_line(const StepInfo& step, bool detailed);
/// {"Layers": [...], "I/O Tensors": [...]}.
std::string layers_json(const Graph& engine, const std::vector<StepInfo>& steps, bool detailed);
std::string layers_json(const Context& context, const std::vector<StepInfo>& steps, bool detailed);
/// The same as lines: "Layers:", one per layer, an empty one, "Bindings:", one per binding.
std::vector<std::string> layer_lines(const Graph& engine, const std::vector<StepInfo>& steps,
                                     bool detailed);
std::vector<std::string> layer_lines(const Context& context, const std::vector<StepInfo>& steps,
                                     bool detailed);

} // namespace ingot
