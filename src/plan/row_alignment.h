// SPDX-License-Identifier: Apache-2.0
// Rows that begin at multiples of 16 bytes, of activations (aligned_rows.cpp) and of weights.
#pragma once

#include "base/dtype.h"
#include "base/integers.h"

#include <algorithm>

namespace ingot::plan {

/// Bytes to which TMA and wide copies ask rows to be aligned.
inline constexpr int64_t row_alignment = 16;
/// Elements: shorter rows leave tiles empty in any case.
inline constexpr int64_t shortest_aligned_row = 32;

/// Elements from a row to the next where rows of that length begin at multiples of row_alignment.
inline int64_t aligned_pitch(int64_t length, DType t) {
    return round_up(length, std::max<int64_t>(1, row_alignment * 8 / bit_width(t)));
}

} // namespace ingot::plan
