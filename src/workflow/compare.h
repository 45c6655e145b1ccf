// SPDX-License-Identifier: Apache-2.0
// Comparing what an engine computes with references: ONNX Runtime and our evaluator in float64.
#pragma once

#include "workflow/build.h"
#include "workflow/inputs.h"

namespace ingot {

struct TensorDifference {
    std::string name;
    double max_absolute = 0;
    double max_relative = 0; // max_absolute over the reference's range (at least 1e-30)
    int64_t elements = 0;
    int64_t mismatched_nan = 0; // NaN or infinity on one side only
    std::string problem;        // shapes or types differ, tensor missing
    bool within = false;
};
/// Differences of `ours` from `reference`; within when |difference| <= atol + rtol * range
/// everywhere.
TensorDifference difference(std::string name, const Tensor& ours, const Tensor& reference,
                            double atol, double rtol);

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
    bool ok() const;
};
struct CompareReport {
    double gflop = 0;
    std::vector<std::string> random_inputs;
    std::vector<ReferenceReport> references;
    bool ok() const;
};
/// Builds and runs the model on the backend and each reference. What is fused does not change:
/// `layers` looks at the tensors that exist anyway.
CompareReport compare_model(const std::string& model_path, const Backend& backend,
                            const CompareOptions& options);

} // namespace ingot
