// SPDX-License-Identifier: Apache-2.0
// The bridge to the reference evaluation of single ops: for values known while planning, and for
// the rare ops and types that have no kernel of their own.
#pragma once

#include "ir/graph.h"

namespace ingot::plan {

/// Evaluates one primitive by its OpDef. Random numbers are others for each `run`; those of run 0
/// are the evaluator's. Errors: what the op throws.
std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, uint64_t run = 0);

/// The seed that a random op has in a run of an execution; its own in run 0.
int64_t seed_of_run(int64_t seed, uint64_t run);

} // namespace ingot::plan
