// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot {

/// Floating-point operations of one run: two per multiplication in every dot after expansion.
/// Control-flow bodies count once. Sizes that depend on data count as 1.
double count_flops(const Graph& g, std::span<const Shape> inputs);

} // namespace ingot
