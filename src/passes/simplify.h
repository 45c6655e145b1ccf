// SPDX-License-Identifier: Apache-2.0
// The rules of simplify by subject; each file lists its own.
#pragma once

#include "passes/rules.h"

namespace ingot::passes {

/// Applies all rules below until none applies.
Graph simplified(const Graph& g);

Rules map_rules();
Rules rounding_rules();
Rules view_rules();
Rules movement_rules();
Rules region_rules();
Rules dot_rules();
Rules size_rules();
Rules control_rules();

/// Indices that grow by a constant step: start, start + step, ... in row-major order.
struct Progression {
    Dim start;
    int64_t step = 1;
    Dim count;
};
std::optional<Progression> progression(const Graph& g, Value v);

/// `parts` side by side along an axis, where they are regions of the result of a product, one with
/// something added: one sum, which belongs to the product's epilogue or is a bias of attention.
/// nullopt where they are none.
std::optional<Value> sum_of_regions(Graph& g, std::span<const Value> parts, size_t axis);

} // namespace ingot::passes
