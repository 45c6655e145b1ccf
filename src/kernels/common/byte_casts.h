// SPDX-License-Identifier: Apache-2.0
// Device text of casts between 8-bit integers and f32. Without functions by additions, which run at
// full rate, where the instructions that round and convert (FRND, F2I, I2F) do not: a float of
// [2^23, 2^24) has the integer in its low bits. One instruction of rounding.cuh bounds and rounds.
#pragma once

#include "ir/expr.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace ingot::kernels {

/// An instruction that quantises: cast(min(max(round(x), low), high)) to I8 or U8, whose bounds
/// are whole numbers of that type.
struct Quantised {
    int x;
    double low, high;
    DType to;
    std::array<int, 3> inside; // read by nothing else
};
/// `uses`: how often each instruction is read.
std::optional<Quantised> quantised_at(const Expr& e, size_t n, const std::vector<int>& uses);
/// A float, whose text is `x`, within the bounds that are not its type's; NaN stays. By
/// rounding.cuh.
std::string bounded_text(const Quantised& q, const std::string& x);
/// The quantised value of a float, whose text is `x`; NaN gives 0. By rounding.cuh.
std::string quantised_text(const Quantised& q, const std::string& x);
/// The same without functions.
std::string inline_quantised_text(const Quantised& q, const std::string& x);
/// x, the text of a value of `from` (I8 or U8), as a float.
std::string float_of_byte(const std::string& x, DType from);
/// The instruction of I8 or U8 whose value instruction n has, which may be a wider integer; else
/// -1.
int byte_behind(const Expr& e, int n);

} // namespace ingot::kernels
