// SPDX-License-Identifier: Apache-2.0
// From scales to a model that says what is int8: QuantizeLinear and DequantizeLinear around
// products (placement.h has the rules), with weights stored as int8, a scale for each channel.
#pragma once

#include "onnx/model.h"
#include "workflow/quantization/calibration_cache.h"

#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// What rounds tensor T is called T with this behind it.
inline constexpr std::string_view dequantised_suffix = "_DequantizeLinear";

struct QuantizeReport {
    std::vector<std::string> products; // tensors that products of int8 compute
    std::vector<std::string> tensors;  // that became int8, weights apart
    std::vector<std::string> missing;  // inputs of products without a scale: those stay floats
    std::vector<std::string> unknown;  // tensors of the cache that the model does not have
};

/// The model as it is calibrated and quantised: simplified (slim.h), so that batch norms are part
/// of their convolutions. Errors: InvalidModel.
onnx::Model quantisable(const onnx::Model& model);

/// Does it quantise or dequantise by itself, anywhere?
bool is_quantised(const onnx::Model& model);

/// The model with the scales of the cache placed in it: convolutions, matrix products and Gemms of
/// f32 with constant weights take int8. Inputs and outputs keep their types. Below opset 13, where
/// ONNX has no scales for each channel, the operators are those of com.microsoft. Errors:
/// InvalidArgument when the model is quantised already, and when the cache has no tensor of it.
onnx::Model quantised(const onnx::Model& model, const CalibrationCache& cache,
                      QuantizeReport* report = nullptr);

} // namespace ingot
