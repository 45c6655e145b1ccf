// SPDX-License-Identifier: Apache-2.0
// Builds the body of a map into which other maps are fused.
#pragma once

#include "ir/graph.h"
#include "ops/primitives.h"

namespace ingot::plan {

/// Collects the operands of a fused map; equal ones are shared.
struct MapBuilder {
    const Graph& g;
    Expr body;
    Values inputs;

    /// The instruction that reads an operand.
    int input(Value v);
    /// Inlines a map whose operands are these instructions; returns its result. f16 and bf16
    /// results are no longer rounded, because they are no longer stored; the rounding of an
    /// explicit cast stays.
    int inline_map(const Map& map, std::span<const int> operands);
    int inline_map(const Node& map); // with its own operands
};

} // namespace ingot::plan
