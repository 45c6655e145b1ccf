// SPDX-License-Identifier: Apache-2.0
// Tiles of sums that go through the epilogue in registers and leave by TMA
// (gemm_wgmma_persistent.cuh): what allows it, and the device text.
#pragma once

#include "kernels/contraction/contraction.h"

namespace ingot::kernels {

/// How the epilogue's operands come into registers: those that differ only by column, or not at
/// all, by loads; at most one other, of the result's shape, by TMA.
struct PersistentEpilogue {
    bool possible = false;
    int full = -1; // that operand
};
/// Of the axes of a contraction's rows as TMA may walk them, the caller decides.
PersistentEpilogue persistent_epilogue(const Contraction& c);

/// struct Columns, what the operands that differ by column have for two columns; void
/// read_columns(columns, first column, ...); u32 finish_pair(sums, columns, two elements of the
/// full operand).
std::string persistent_text(const Contraction& c, const PersistentEpilogue& s);

} // namespace ingot::kernels
