// SPDX-License-Identifier: Apache-2.0
// Weight-only quantisation: constants of products as narrow types followed by DequantizeLinear.
// Needs no data; products still compute in floats.
#pragma once

#include "onnx/model.h"

#include <string>
#include <vector>

namespace ingot {

enum class WeightFormat {
    Int8, // one scale per output channel
    Fp8,  // f8e4m3, one scale per output channel
    Int4, // matrices: one scale per 32 weights of a channel; others, and weights too sensitive for
          // int4: Int8
};

struct QuantizeWeightsOptions {
    WeightFormat format = WeightFormat::Int8;
    /// Smaller weights are skipped: their scales and kernels would cost more than they save.
    int64_t min_elements = 1024;
};

struct QuantizedTensorReport {
    std::string name;
    std::string kept; // why it was not quantised; "" when it was
    std::string type; // "i8", "f8e4m3", "i4"
    int64_t elements = 0;
    double error = 0; // squared error over squared weights
};

/// Quantises the weights of Conv, ConvTranspose, Gemm and MatMul whose other operand is not
/// constant. Skips a weight that is small, contains NaN or infinity, or is sensitive: its error
/// would be above 0.1 % (int8), 0.3 % (f8e4m3) or 2 % (int4, which then falls back to int8). Raises
/// the model to the opset that has the type: 13 for int8 (com.microsoft's operators below it), 19
/// for f8e4m3, 21 for int4. Errors: InvalidModel; Unsupported when the opset cannot be raised;
/// InvalidArgument when no weight can be quantised.
onnx::Model quantised_weights(const onnx::Model& model, const QuantizeWeightsOptions& options,
                              std::vector<QuantizedTensorReport>* report = nullptr);

} // namespace ingot
