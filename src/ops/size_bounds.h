// SPDX-License-Identifier: Apache-2.0
// How large sizes can become that only a run decides.
#pragma once

#include "ir/graph.h"

namespace ingot {

/// Bounds of the sizes that the nodes of a graph declare (NonZero's count and the like), from those
/// of its inputs' sizes; `known` has the latter and comes back with both. A size that nothing
/// bounds is missing.
Bounds size_bounds(const Graph& g, Bounds known);

} // namespace ingot
