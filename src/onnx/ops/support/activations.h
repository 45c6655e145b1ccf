// SPDX-License-Identifier: Apache-2.0
// Activation functions named by a string attribute.
#pragma once

#include "onnx/importer.h"

#include <string>

namespace ingot::onnx {

struct Activation {
    std::string name; // lower case
    double alpha = 0;
    double beta = 0;
};
/// The number of parameters of a function, alpha and beta (0 to 2). Refuses unknown names.
int parameter_count(const NodeContext& c, const std::string& name);
/// The function with its default parameters.
Activation activation(const NodeContext& c, const std::string& name);
Value apply(ingot::Graph& g, const Activation& a, Value x);
/// Attributes activation and activation_params (or activation_alpha and _beta) of ONNX Runtime's
/// fused operators; returns x itself when there are none.
Value fused_activation(NodeContext& c, Value x);

} // namespace ingot::onnx
