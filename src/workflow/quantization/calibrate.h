// SPDX-License-Identifier: Apache-2.0
// Calibration: batches of sample inputs run through a graph, and for every tensor of floats in it
// the scale with which int8 represents it best (calibration_histogram.h has the methods).
#pragma once

#include "engine/engine.h"
#include "onnx/model.h"
#include "workflow/quantization/calibration_cache.h"
#include "workflow/quantization/calibration_histogram.h"

namespace ingot {

/// Collects statistics batch by batch. The result depends neither on the order of the batches nor
/// on how samples are shared out among them, as far as the backend's results do not. For one
/// thread.
class Calibrator {
public:
    /// `graph` as it was imported, with names on its values (onnx::ImportOptions::keep_names):
    /// those with a name that hold floats and depend on inputs are looked at. Errors:
    /// InvalidArgument when the graph quantises already, and for options out of range; what
    /// compiling it throws.
    Calibrator(const Graph& graph, const Backend& backend, const CalibrationOptions& options,
               const CompileOptions& compile = {});
    /// Inputs in the order of the graph, of its types. Errors: as of Context::run.
    void add_batch(std::span<const Tensor> inputs);
    int64_t batches() const { return batches_; }
    /// The tensors that are looked at, in the order of the graph.
    const std::vector<std::string>& tensors() const { return tensors_; }
    /// Scales of all tensors, in the order of the graph. A tensor that was zero throughout gets
    /// scale 1, which is logged, as NaN and infinity are. By entropy, one that had fewer elements
    /// outside its first bin than a histogram has bins keeps its largest: so few are no
    /// distribution. Errors: InvalidArgument without a batch.
    CalibrationCache finish() const;

    /// What all batches were counted into, as bytes, and back: restore() stands for the batches.
    /// False, and nothing changes, for bytes of other tensors or that are damaged.
    std::string histograms() const;
    bool restore(std::span<const std::byte> bytes);

private:
    float scale(size_t tensor) const;

    CalibrationOptions options_;
    std::vector<std::string> tensors_;
    std::vector<CalibrationHistogram> histograms_;
    std::unique_ptr<Context> context_;
    int64_t batches_ = 0;
};

/// Scales from random inputs of the shapes that the first profile expects; says in the log that
/// they are poor. Errors: as of Calibrator.
CalibrationCache guessed_ranges(const Graph& graph, const std::vector<Profile>& profiles);

/// What the first line of a cache calls a method: "EntropyCalibration2".
std::string_view cache_algorithm(CalibrationMethod m);

/// The graph that quantised() (quantize.h) places scales in: of the simplified model, with names.
/// Errors: what importing throws.
Graph calibration_graph(const onnx::Model& model);

} // namespace ingot
