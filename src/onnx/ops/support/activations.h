// SPDX-License-Identifier: Apache-2.0
// Activation functions that operators name in a string attribute.
#pragma once

#include "onnx/importer.h"

#include <string>

namespace ingot::onnx {

struct Activation {
    std::string name; // lower case
    double alpha = 0;
    double beta = 0;
};
/// How many of alpha and beta a function takes (0 to 2). Refuses names it does not know.
int parameter_count(const NodeContext& c, const std::string& name);
/// The function with its default parameters.
Activation activation(const NodeContext& c, const std::string& name);
Value apply(ingot::Graph& g, const Activation& a, Value x);
/// Attributes activation and activation_params (or activation_alpha and _beta) of the operators
/// that ONNX Runtime fuses; x itself where there is none.
Value fused_activation(NodeContext& c, Value x);

} // namespace ingot::onnx
