// SPDX-License-Identifier: Apache-2.0
// Constant folding: runs nodes whose operands are constants on the reference evaluator.
#pragma once

#include "slim/rules.h"

namespace ingot::slim {

/// Folds the constant parts of the graph unless the model grows beyond the options' limit. Never
/// folds random numbers, quantisation (its form carries meaning), control flow, and operators
/// outside ONNX's domain. Expand, Tile and ConstantOfShape may add 1 KiB only: they keep the model
/// small.
bool fold_constants(Context& c);

/// The results of one node on the given operands (undefined when omitted), or nullopt when Ingot
/// cannot run it or it would exceed `byte_limit` for a result or 2e9 operations.
std::optional<std::vector<Tensor>> run_node(const onnx::Model& model, const onnx::Node& n,
                                            std::span<const onnx::Tensor> operands,
                                            uint64_t byte_limit);

/// The result of an operator without attributes on constants; nullopt when it is not finite.
std::optional<Tensor> compute(const Context& c, std::string_view op,
                              std::span<const Tensor> operands);

} // namespace ingot::slim
