// SPDX-License-Identifier: Apache-2.0
// Constant folding: runs nodes whose operands are constants on the reference evaluator.
#pragma once

#include "slim/rules.h"

namespace ingot::slim {

/// Folds the graph's constant parts, where the model does not grow by more than the options allow.
/// Left alone: random numbers, quantisation (it says how to compute), control flow, and operators
/// that are not ONNX's. Expand, Tile and ConstantOfShape may add 1 KiB only: they are there to be
/// small.
bool fold_constants(Context& c);

/// The results of one node on the given operands (undefined where left out), or nullopt where
/// Ingot cannot run it or it would take more than `byte_limit` for a result or 2e9 operations.
std::optional<std::vector<Tensor>> run_node(const onnx::Model& model, const onnx::Node& n,
                                            std::span<const onnx::Tensor> operands,
                                            uint64_t byte_limit);

/// What an operator without attributes gives for constants; nullopt where that is not finite.
std::optional<Tensor> compute(const Context& c, std::string_view op,
                              std::span<const Tensor> operands);

} // namespace ingot::slim
