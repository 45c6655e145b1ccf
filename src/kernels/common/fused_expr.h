// SPDX-License-Identifier: Apache-2.0
// The parts of an Expr that have one text together.
#pragma once

#include "ir/expr.h"
#include "kernels/common/byte_casts.h"

#include <array>
#include <optional>
#include <vector>

namespace ingot::kernels {

/// Whether e's last instruction rounds a float to 16 or 8 bits, as do the functions pack_f16,
/// pack_bf16, pack_i8, pack_u8 and pack_f8e4m3 of device text.
bool ends_by_rounding(const Expr& e);

/// x * 0.5 * (1 + erf(x / sqrt(2))), as gelu expands.
struct Gelu {
    int x;
    std::array<int, 4> inside; // read by nothing else
};

/// By instruction: what one text computes together with others, and what has no statement then.
struct Fused {
    std::vector<std::optional<Gelu>> gelu; // by fast_gelu
    std::vector<std::optional<Quantised>> quantised;
    std::vector<bool> skipped;
    std::vector<bool> unrounded; // casts to 16 bits that pass their operand on
    bool rounds_to_byte = false; // at its end
};
/// `rounded_to`: as in expr_text.
Fused fused(const Expr& e, bool fast, std::optional<DType> rounded_to);

/// Where instruction n is 1 + erf(x) or 1 + tanh(x): the position of that function, else -1.
int plus_one(const Expr& e, size_t n);

} // namespace ingot::kernels
