// SPDX-License-Identifier: Apache-2.0
// From scales to a quantised model: QuantizeLinear and DequantizeLinear around products
// (quantizer_placement.h has the rules), with weights stored as int8 or f8e4m3, one scale per
// channel.
#pragma once

#include "onnx/model.h"
#include "workflow/quantization/calibration_cache.h"

#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// The bytes of tensor T are called T plus this suffix, and its rounded form T plus the second.
inline constexpr std::string_view quantised_suffix = "_QuantizeLinear";
inline constexpr std::string_view dequantised_suffix = "_DequantizeLinear";

/// The type of operands of products.
enum class ProductFormat {
    Int8, // steps of threshold / 127
    /// f8e4m3: the threshold becomes 448, its largest number. Tensors that matrix products read are
    /// rounded for these alone: with three bits of mantissa in the residuals between its norms, the
    /// error of BERT doubled. Pictures are rounded for all readers, as for int8: they are stored
    /// once, and the error of ResNet-50 stayed.
    Fp8,
};

struct QuantizeReport {
    std::vector<std::string> products; // tensors computed by products of the narrow type
    std::vector<std::string> tensors;  // tensors that became narrow, without weights
    std::vector<std::string>
        missing;                    // inputs of products without a scale: the products stay floats
    std::vector<std::string> small; // results of products that f8e4m3 would make no faster
    std::vector<std::string> unknown; // tensors of the cache that the model does not have
};

/// The form in which models are calibrated and quantised: simplified (slim.h), so that batch norms
/// are merged into their convolutions. Errors: InvalidModel.
onnx::Model quantisable(const onnx::Model& model);

/// Whether it contains quantisation anywhere.
bool is_quantised(const onnx::Model& model);

/// The model with the scales of the cache placed in it: f32 convolutions, matrix products and Gemms
/// with constant weights take the format. Inputs and outputs keep their types. For int8 below opset
/// 13, where ONNX has no per-channel scales, the operators are those of com.microsoft; for f8e4m3
/// the model is raised to opset 19. Errors: InvalidArgument when the model is already quantised,
/// and when no tensor of the cache is in it; Unsupported when the opset cannot be raised.
onnx::Model quantised(const onnx::Model& model, const CalibrationCache& cache,
                      QuantizeReport* report = nullptr, ProductFormat format = ProductFormat::Int8);

} // namespace ingot
