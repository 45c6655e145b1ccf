// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::plan {

/// Constant weights [depth, columns] where `depth_first`, else [columns, depth], as a view
/// [columns, depth] of rows that begin at multiples of row_alignment (plan/row_alignment.h). Their
/// bytes are made when they are read.
Value weights_in_rows(Graph& g, const Tensor& weights, bool depth_first);

} // namespace ingot::plan
