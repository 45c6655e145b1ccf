// SPDX-License-Identifier: Apache-2.0
// Compares an engine's results with references: ONNX Runtime and our evaluator in float64.
#pragma once

#include "workflow/build.h"
#include "workflow/compare/tensor_difference.h"
#include "workflow/inputs/inputs.h"

namespace ingot {

struct CompareReport;

struct CompareOptions {
    BuildConfig build;
    CompileOptions compile;
    InputSource inputs;
    bool layers = false;
    bool full = false;
    double atol = 1e-5;
    double rtol = 1e-3;
    bool excuse_rounding = true; // accept differences that accept_rounding explains
    std::string python;          // interpreter that has onnxruntime; empty finds one
    /// Called before the model runs, with all but the results; may be empty.
    std::function<void(const CompareReport&)> started;
};
struct ReferenceReport {
    std::string reference; // "ONNX Runtime 1.31.1", "float64 evaluator"
    std::string skipped;   // why it was not run
    std::vector<TensorDifference> outputs;
    std::vector<TensorDifference> layers; // in the order of the steps that wrote them
    /// Outputs as they were when their steps had written them; a later step may have overwritten
    /// them.
    std::vector<TensorDifference> written;
    /// Named values of the model that no step writes alone, because they are fused or folded.
    std::vector<std::string> not_compared;
    /// One line per tensor in which this reference exceeds the tolerance against float64.
    std::vector<std::string> off;
    bool ok() const;
    /// One line about the layers (first_wrong.h); "" where all is right or none was compared.
    std::string first_wrong() const;
};
struct CompareReport {
    double gflop = 0;
    std::vector<std::string> random_inputs;
    /// Layers whose values f16 cannot hold, in graph order; a build in F16 without `half_ranges`
    /// computes them in f16 nevertheless.
    std::vector<Overflow> overflows;
    /// Float64 is last: it decides if it ran, else the one before it.
    std::vector<ReferenceReport> references;
    /// Where results differ: the error of a run that verifies lowered graphs and plans; "" without.
    std::string fault;
    /// Null when none ran.
    const ReferenceReport* deciding() const;
    /// False when no reference ran.
    bool ok() const;
};
/// Builds and runs the model on the backend and on each reference. Fusion is unchanged: `layers`
/// reads the tensors that exist after it.
CompareReport compare_model(const std::string& model_path, const Backend& backend,
                            const CompareOptions& options);

} // namespace ingot
