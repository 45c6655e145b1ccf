// SPDX-License-Identifier: Apache-2.0
// Tiles of sums that go through the epilogue in registers and leave by the copy engine
// (gemm_wgmma_persistent.cuh): what allows it, and the device text.
#pragma once

#include "kernels/contraction/contraction.h"

namespace ingot::kernels {

/// How the epilogue's operands come into registers: those that differ only by column, or not at
/// all, by loads; at most one other, of the result's shape, by the copy engine.
struct Stay {
    bool possible = false;
    int full = -1; // that operand
};
/// Of the axes of a contraction's rows as the copy engine may walk them, the caller decides.
Stay stay_of(const Contraction& c);

/// struct Columns, what the operands that differ by column have for two columns; void
/// read_columns(columns, first column, ...); u32 finish_pair(sums, columns, two elements of the
/// full operand).
std::string stay_text(const Contraction& c, const Stay& s);

} // namespace ingot::kernels
