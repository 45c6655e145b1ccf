// SPDX-License-Identifier: Apache-2.0
#include "workflow/quantization/calibrate.h"

#include "backends/backends.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "ir/rewrite.h"
#include "onnx/importer.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "workflow/inputs/inputs.h"
#include "workflow/quantization/quantize.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_set>

namespace ingot {

namespace {

void refuse_quantised(const Graph& g) {
    visit_nodes(g, [](const Graph&, const Node& n) {
        require(!n.is(ops::quantize_def) && !n.is(ops::dequantize_def), ErrorCode::InvalidArgument,
                "node '", n.name,
                "' quantises or dequantises: the model has its scales already and needs no "
                "calibration");
    });
}

/// Values that hold floats, depend on an input and have a name, in order, each name once.
Values watched(const Graph& g) {
    std::vector<bool> depends(g.value_count(), false);
    std::unordered_set<std::string> seen;
    Values out;
    auto look = [&](Value v) {
        depends[v.id] = true;
        if (is_float(g.type(v).dtype) && !g.value_name(v).empty() &&
            seen.insert(g.value_name(v)).second) {
            out.push_back(v);
        }
    };
    for (Value v : g.inputs()) {
        look(v);
    }
    for (const Node& n : g.nodes()) {
        bool any = false;
        for (Value v : n.inputs) {
            any = any || depends[v.id];
        }
        for (Value v : any ? n.outputs : Values()) {
            look(v);
        }
    }
    return out;
}

/// The graph with the values as additional last outputs.
Graph with_outputs(const Graph& g, const Values& values) {
    Graph out = g;
    for (size_t i = 0; i < values.size(); ++i) {
        out.add_output(str("calibrated ", i), values[i]);
    }
    return out;
}

} // namespace

std::string_view cache_algorithm(CalibrationMethod m) {
    switch (m) {
    case CalibrationMethod::Entropy2:
        return "EntropyCalibration2";
    case CalibrationMethod::Entropy:
        return "EntropyCalibration";
    case CalibrationMethod::MinMax:
        return "MinMaxCalibration";
    case CalibrationMethod::Legacy:
        return "LegacyCalibration";
    case CalibrationMethod::Percentile:
        return "PercentileCalibration";
    case CalibrationMethod::Mse:
        return "MseCalibration";
    }
    return "";
}

Calibrator::Calibrator(const Graph& graph, const Backend& backend,
                       const CalibrationOptions& options, const CompileOptions& compile)
    : options_(options) {
    check_options(options);
    refuse_quantised(graph);
    Values values = watched(graph);
    require(!values.empty(), ErrorCode::InvalidArgument,
            "calibration: the graph computes no tensor of floats that has a name");
    for (Value v : values) {
        tensors_.push_back(graph.value_name(v));
    }
    histograms_.resize(values.size());
    Graph observed = run_aot_passes(with_outputs(graph, values));
    context_ =
        std::make_unique<Context>(Engine::create(std::move(observed), {}, {}), backend, compile);
}

void Calibrator::add_batch(std::span<const Tensor> inputs) {
    check_interrupt();
    std::vector<Tensor> results = context_->run(inputs);
    results.erase(results.begin(), results.end() - static_cast<std::ptrdiff_t>(histograms_.size()));
    auto count = static_cast<int64_t>(results.size());
    ThreadPool::shared().parallel_for(count, 1, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
            histograms_[i].add(results[i]);
        }
    });
    ++batches_;
}

float Calibrator::scale(size_t tensor) const {
    const CalibrationHistogram& h = histograms_[tensor];
    constexpr double steps = 127;
    if (h.largest() == 0) {
        return 1;
    }
    bool by_entropy = options_.method == CalibrationMethod::Entropy2 ||
                      options_.method == CalibrationMethod::Entropy;
    bool sparse = std::accumulate(h.counts().begin() + 1, h.counts().end(), uint64_t{0}) <
                  CalibrationHistogram::bin_count;
    double threshold = options_.method == CalibrationMethod::MinMax || (by_entropy && sparse)
                           ? h.largest()
                           : calibration_threshold(h.counts(), h.bin_width(), options_);
    // A share within the first bin does not describe the rest.
    threshold = threshold > 0 ? std::min(threshold, h.largest()) : h.largest();
    auto scale = static_cast<float>(threshold / steps);
    return scale > 0 && std::isfinite(scale) ? scale : std::numeric_limits<float>::min();
}

CalibrationCache Calibrator::finish() const {
    require(batches_ > 0, ErrorCode::InvalidArgument,
            "calibration got no batch: give it at least one");
    std::vector<float> scales(tensors_.size());
    ThreadPool::shared().parallel_for(
        static_cast<int64_t>(scales.size()), 1, [&](int64_t begin, int64_t end) {
            for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
                scales[i] = scale(i);
            }
        });
    CalibrationCache out;
    out.algorithm = cache_algorithm(options_.method);
    for (size_t i = 0; i < scales.size(); ++i) {
        const CalibrationHistogram& h = histograms_[i];
        if (h.largest() == 0) {
            log(LogLevel::Warning, "calibration: tensor '", tensors_[i],
                "' was zero in all batches; its scale is 1");
        }
        if (h.skipped() > 0) {
            log(LogLevel::Warning, "calibration: ", h.skipped(), " elements of tensor '",
                tensors_[i], "' were NaN or infinite and are ignored");
        }
        out.scales.emplace_back(tensors_[i], scales[i]);
    }
    return out;
}

namespace {

constexpr std::string_view histogram_magic = "INGOT calibration histograms 1\n";

/// Removes and returns the first line.
std::string_view line_of(std::string_view& text) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

} // namespace

// A line for the method, then for each tensor a line with its name, and the bytes of its histogram.
std::string Calibrator::histograms() const {
    std::string out(histogram_magic);
    for (size_t i = 0; i < tensors_.size(); ++i) {
        out += str(tensors_[i], '\n');
        out += histograms_[i].bytes();
    }
    return out;
}

bool Calibrator::restore(std::span<const std::byte> bytes) {
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!text.starts_with(histogram_magic)) {
        return false;
    }
    text.remove_prefix(histogram_magic.size());
    const size_t length = CalibrationHistogram().bytes().size();
    std::vector<CalibrationHistogram> all;
    for (const std::string& name : tensors_) {
        if (line_of(text) != name || text.size() < length) {
            return false;
        }
        auto h = CalibrationHistogram::from_bytes(text.substr(0, length));
        if (!h) {
            return false;
        }
        all.push_back(std::move(*h));
        text.remove_prefix(length);
    }
    if (!text.empty()) {
        return false;
    }
    histograms_ = std::move(all);
    batches_ = 1;
    return true;
}

CalibrationCache guessed_ranges(const Graph& graph, const std::vector<Profile>& profiles) {
    log(LogLevel::Warning, "INT8 without calibration: the ranges of all tensors are guessed from "
                           "random inputs; results will be poor");
    constexpr uint64_t batches = 2;
    CalibrationOptions options;
    options.method = CalibrationMethod::MinMax;
    Calibrator calibrator(graph, cpu_backend(), options);
    std::shared_ptr<const Engine> engine = Engine::create(graph, profiles, {});
    for (uint64_t seed = 0; seed < batches; ++seed) {
        InputSource source;
        source.seed = seed;
        calibrator.add_batch(load_inputs(*engine, source).tensors);
    }
    return calibrator.finish();
}

Graph calibration_graph(const onnx::Model& model) {
    onnx::ImportOptions options;
    options.keep_names = true;
    return onnx::import_or_throw(quantisable(model), options);
}

} // namespace ingot
