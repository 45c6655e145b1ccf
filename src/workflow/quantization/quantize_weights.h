// SPDX-License-Identifier: Apache-2.0
// Weight-only quantisation: constants of products as narrow numbers behind a DequantizeLinear.
// Needs no data; products compute in floats as before.
#pragma once

#include "onnx/model.h"

#include <string>
#include <vector>

namespace ingot {

enum class WeightFormat {
    Int8, // a scale for each output channel
    Fp8,  // f8e4m3, a scale for each output channel
    Int4, // matrices: a scale for each 32 weights of a channel; others, and what int4 misses: Int8
};

struct QuantizeWeightsOptions {
    WeightFormat format = WeightFormat::Int8;
    /// Smaller weights stay: their scales and kernels would cost more than they save.
    int64_t min_elements = 1024;
};

struct QuantizedTensorReport {
    std::string name;
    std::string kept; // why it stayed as it is; "" when it was quantised
    std::string type; // "i8", "f8e4m3", "i4"
    int64_t elements = 0;
    double error = 0; // squared error over squared weights
};

/// Quantises the weights of Conv, ConvTranspose, Gemm and MatMul whose other operand is not
/// constant. A weight stays when it is small, holds NaN or infinity, or is sensitive: its error
/// would be above 0.1 % (int8), 0.3 % (f8e4m3) or 2 % (int4, which then falls back to int8). The
/// model is raised to the opset that has the type: 13 for int8 (com.microsoft's operators below
/// it), 19 for f8e4m3, 21 for int4. Errors: InvalidModel; Unsupported where the opset cannot be
/// raised; InvalidArgument when nothing is left to quantise.
onnx::Model quantised_weights(const onnx::Model& model, const QuantizeWeightsOptions& options,
                              std::vector<QuantizedTensorReport>* report = nullptr);

} // namespace ingot
