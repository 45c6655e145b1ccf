// SPDX-License-Identifier: Apache-2.0
// Comparing what an engine computes with references: ONNX Runtime and our evaluator in float64.
#pragma once

#include "workflow/build.h"
#include "workflow/compare/tensor_difference.h"
#include "workflow/inputs/inputs.h"

namespace ingot {

struct CompareOptions {
    BuildConfig build;
    CompileOptions compile;
    InputSource inputs;
    bool layers = false;
    bool full = false;
    double atol = 1e-5;
    double rtol = 1e-3;
    std::string python; // interpreter that has onnxruntime; empty finds one
};
struct ReferenceReport {
    std::string reference; // "ONNX Runtime 1.31.1", "float64 evaluator"
    std::string skipped;   // why it was not run
    std::vector<TensorDifference> outputs;
    std::vector<TensorDifference> layers;
    /// Lines on tensors in which this reference is further from float64 than is allowed.
    std::vector<std::string> off;
    bool ok() const;
};
struct CompareReport {
    double gflop = 0;
    std::vector<std::string> random_inputs;
    /// Float64 is the last: where it ran it decides, else the one before it.
    std::vector<ReferenceReport> references;
    /// Null where none ran.
    const ReferenceReport* deciding() const;
    /// Not without a reference that ran.
    bool ok() const;
};
/// Builds and runs the model on the backend and each reference. What is fused does not change:
/// `layers` looks at the tensors that exist anyway.
CompareReport compare_model(const std::string& model_path, const Backend& backend,
                            const CompareOptions& options);

} // namespace ingot
