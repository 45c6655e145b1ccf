// SPDX-License-Identifier: Apache-2.0
// The bridge to the reference evaluation of single ops: for values known while planning, and for
// the rare ops and types that have no kernel of their own.
#pragma once

#include "ir/graph.h"

namespace ingot::plan {

class Device;

/// Evaluates one primitive by its OpDef. Random numbers are others for each `run`; those of run 0
/// are the evaluator's: run r adds r * 0x9E3779B97F4A7C15 to the seed. Errors: what the op throws.
std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, uint64_t run = 0);
/// The same, with the numbers of the device's run.
std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, Device& device);

} // namespace ingot::plan
