// SPDX-License-Identifier: Apache-2.0
// The group that a node and a map of its result make.
#pragma once

#include "ir/graph.h"

namespace ingot::plan {

/// A body of the producer followed by the map, whose operand `leading` the producer computes;
/// `inputs` receives the operands, values of `g`.
GraphRef epilogue_group(const Graph& g, const Node& producer, const Node& map,
                        std::span<const Value> map_in, size_t leading, Values& inputs);

} // namespace ingot::plan
