// SPDX-License-Identifier: Apache-2.0
// The bridge to the reference evaluation of single ops: for values known while planning, and for
// the rare ops and types that have no kernel of their own.
#pragma once

#include "ir/graph.h"

namespace ingot::plan {

class Device;

/// Evaluates one primitive by its OpDef. Each `run` draws other random numbers; run r adds r *
/// 0x9E3779B97F4A7C15 to the seed, so run 0 equals the evaluator. Errors: those of the op.
std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, uint64_t run = 0);
/// The same, with the random numbers of the device's run.
std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, Device& device);

} // namespace ingot::plan
