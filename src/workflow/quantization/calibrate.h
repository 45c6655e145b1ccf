// SPDX-License-Identifier: Apache-2.0
// Calibration: runs batches of sample inputs through a graph and chooses, for every float tensor,
// the scale with which int8 represents it best (calibration_histogram.h has the methods).
#pragma once

#include "engine/engine.h"
#include "onnx/model.h"
#include "workflow/quantization/calibration_cache.h"
#include "workflow/quantization/calibration_histogram.h"

namespace ingot {

/// Collects statistics batch by batch. The result does not depend on the order of the batches or on
/// their division into samples, as far as the backend's results do not. Not thread safe.
class Calibrator {
public:
    /// `graph` as imported, with value names (onnx::ImportOptions::keep_names): observes the named
    /// float values that depend on inputs. Errors: InvalidArgument when the graph is already
    /// quantised, and for options out of range; errors of compilation.
    Calibrator(const Graph& graph, const Backend& backend, const CalibrationOptions& options,
               const CompileOptions& compile = {});
    /// Inputs follow the order and types of the graph's. Errors: as Context::run.
    void add_batch(std::span<const Tensor> inputs);
    int64_t batches() const { return batches_; }
    /// The observed tensors, in graph order.
    const std::vector<std::string>& tensors() const { return tensors_; }
    /// Scales of all tensors, in graph order. A tensor that was always zero gets scale 1 and a log
    /// message, as do NaN and infinity. With the entropy methods, a tensor with fewer elements
    /// outside its first bin than a histogram has bins keeps its largest magnitude: too few for a
    /// distribution. Errors: InvalidArgument without a batch.
    CalibrationCache finish() const;

    /// The state after all batches, as bytes; restore() replaces running them. Returns false and
    /// changes nothing for damaged bytes or bytes of other tensors.
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

/// Scales from random inputs with the shapes of the first profile; logs that they are poor. Errors:
/// as Calibrator.
CalibrationCache guessed_ranges(const Graph& graph, const std::vector<Profile>& profiles);

/// The method's name in the first line of a cache: "EntropyCalibration2".
std::string_view cache_algorithm(CalibrationMethod m);

/// The graph into which quantised() (quantize.h) places scales: that of the simplified model, with
/// names. Errors: as import.
Graph calibration_graph(const onnx::Model& model);

} // namespace ingot
