// SPDX-License-Identifier: Apache-2.0
// Rewritings of quantized_products: quantisation moves before views, to the kernel that computes
// the values, whose epilogue it becomes.
#pragma once

#include "ir/graph.h"

namespace ingot::plan {

/// A quantisation by one scale moves before reshapes and permutes that nothing else reads.
Graph quantised_before_views(const Graph& g);
/// A dequantisation by one scale moves before such views of bytes that the graph quantises itself:
/// rounding is one step then.
Graph dequantised_before_views(const Graph& g);

} // namespace ingot::plan
