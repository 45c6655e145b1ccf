// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot {

/// Operations of one run. Products: two per multiplication in every dot after expansion. Scalars:
/// one per function in a map (casts and constants are none) and per element that a reduction or a
/// scan reads. Bodies of if and loop do not count. Sizes that depend on data count as 1.
struct Operations {
    double products = 0;
    double scalars = 0;
    double all() const { return products + scalars; }
};
/// The operations of a node alone.
Operations count_operations(const Graph& g, const Node& n, const Symbols& symbols);

/// The products of a graph. Bodies of control flow count once.
double count_flops(const Graph& g, std::span<const Shape> inputs);

} // namespace ingot
