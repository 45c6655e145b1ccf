// SPDX-License-Identifier: Apache-2.0
// The body of a map that other maps are fused into, while it is being written.
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
    /// The result of a map, of operands that these instructions are, as its reader sees it. f16 and
    /// bf16 are rounded where they are stored, and this is no longer stored; but a cast by itself
    /// was asked for.
    int inline_map(const Map& map, std::span<const int> operands);
    int inline_map(const Node& map); // of its own operands
};

} // namespace ingot::plan
