// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::plan {

/// Bytes to which TMA and wide copies ask rows to be aligned.
inline constexpr int64_t row_alignment = 16;

/// Elements from a row to the next where rows of that length begin at multiples of row_alignment.
int64_t aligned_pitch(int64_t length, DType t);

/// Constant weights [depth, columns] where `depth_first`, else [columns, depth], as a view
/// [columns, depth] of rows that begin at multiples of row_alignment. Their bytes are made when
/// they are read.
Value weights_in_rows(Graph& g, const Tensor& weights, bool depth_first);

} // namespace ingot::plan
