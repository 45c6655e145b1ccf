// SPDX-License-Identifier: Apache-2.0
// From scales to a quantised model: QuantizeLinear and DequantizeLinear around products
// (quantizer_placement.h has the rules), with weights stored as int8, one scale per channel.
#pragma once

#include "onnx/model.h"
#include "workflow/quantization/calibration_cache.h"

#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// The rounded form of tensor T is called T plus this suffix.
inline constexpr std::string_view dequantised_suffix = "_DequantizeLinear";

struct QuantizeReport {
    std::vector<std::string> products; // tensors computed by int8 products
    std::vector<std::string> tensors;  // tensors that became int8, without weights
    std::vector<std::string>
        missing; // inputs of products without a scale: the products stay floats
    std::vector<std::string> unknown; // tensors of the cache that the model does not have
};

/// The form in which models are calibrated and quantised: simplified (slim.h), so that batch norms
/// are merged into their convolutions. Errors: InvalidModel.
onnx::Model quantisable(const onnx::Model& model);

/// Whether it contains quantisation anywhere.
bool is_quantised(const onnx::Model& model);

/// The model with the scales of the cache placed in it: f32 convolutions, matrix products and Gemms
/// with constant weights take int8. Inputs and outputs keep their types. Below opset 13, where ONNX
/// has no per-channel scales, the operators are those of com.microsoft. Errors: InvalidArgument
/// when the model is already quantised, and when no tensor of the cache is in it.
onnx::Model quantised(const onnx::Model& model, const CalibrationCache& cache,
                      QuantizeReport* report = nullptr);

} // namespace ingot
