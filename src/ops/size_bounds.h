// SPDX-License-Identifier: Apache-2.0
// Upper bounds of data-dependent sizes.
#pragma once

#include "ir/graph.h"

namespace ingot {

/// Bounds of the sizes that nodes declare (NonZero's count and the like), derived from the bounds
/// of the input sizes in `known`; returns both. Unbounded sizes are missing.
Bounds size_bounds(const Graph& g, Bounds known);

} // namespace ingot
