// SPDX-License-Identifier: Apache-2.0
// The bridge to the reference evaluation of single ops: for values known while planning, and for
// the rare ops and types that have no kernel of their own.
#pragma once

#include "ir/graph.h"

namespace ingot::plan {

/// Evaluates one primitive by its OpDef. Errors: what the op throws.
std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols);

} // namespace ingot::plan
