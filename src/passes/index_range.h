// SPDX-License-Identifier: Apache-2.0
// Bounds of integers: in expressions, and in index tensors.
#pragma once

#include "ir/graph.h"
#include "passes/expr_rules.h"

#include <span>

namespace ingot::passes {

inline constexpr Interval any_integer{INT64_MIN, INT64_MAX};

/// Bounds of instruction `i` from those of earlier instructions. Values that may wrap and values
/// that are no integers have no bounds.
Interval instruction_range(const Expr& e, size_t i, std::span<const Interval> before,
                           std::span<const InputFacts> inputs);
/// Bounds of all elements of an integer tensor.
Interval value_range(const Graph& g, Value v, int depth = 0);
/// Dtypes and bounds of a map's operands.
std::vector<InputFacts> facts(const Graph& g, std::span<const Value> operands, int depth = 0);

} // namespace ingot::passes
