// SPDX-License-Identifier: Apache-2.0
// Persistent tiles whose sums go through the epilogue in registers and whose results TMA stores
// (gemm_wgmma_persistent.cuh): its conditions and its device text.
#pragma once

#include "kernels/contraction/contraction.h"

namespace ingot::kernels {

/// Access to the epilogue's operands: loads into registers for those that vary by column or not at
/// all; TMA for at most one more, of the result's shape.
struct PersistentEpilogue {
    bool possible = false;
    int full = -1; // that operand
};
/// The caller checks that TMA can address the row axes.
PersistentEpilogue persistent_epilogue(const Contraction& c);

/// struct Columns, the by-column operands of two columns; void read_columns(columns, first column,
/// ...); Two epilogue_pair(sums of two results, columns, two elements of the full operand). Two is
/// u32, whose lower half has two results of 8 bits, or Pack<float, 2>.
std::string persistent_text(const Contraction& c, const PersistentEpilogue& s);

} // namespace ingot::kernels
