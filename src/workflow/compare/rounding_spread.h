// SPDX-License-Identifier: Apache-2.0
// The distance that rounding alone moves a model's results: a quantization step or another jump
// that tips over turns a last bit into a difference that no tolerance holds.
#pragma once

#include "ir/graph.h"
#include "workflow/compare/tensor_difference.h"

#include <map>
#include <string>

namespace ingot {

/// By tensor name, the largest absolute difference from the exact result.
using Spreads = std::map<std::string, double, std::less<>>;

/// Evaluates the graph as it is, then a few times in float64 with every computed value rounded up
/// or down at random to fewer bits than `compute` (F32, F16, BF16) has: Monte Carlo arithmetic
/// (D. S. Parker, 1997). Values that need no more bits stay. `exact` has the float64 results by
/// name; names that it lacks are left out, as are indices and other integers wider than 8 bits.
/// Deterministic.
Spreads rounding_spreads(const Graph& g, std::span<const Tensor> inputs,
                         const std::map<std::string, Tensor>& exact, DType compute);

/// Sets `spread` and `within` of a difference that the tolerances refuse and that the spread
/// explains: at most twice the spread, which itself is at most a twentieth of the range.
void accept_rounding(TensorDifference& d, const Spreads& spreads, double atol, double rtol);

} // namespace ingot
