// SPDX-License-Identifier: Apache-2.0
// The allowed difference of a result from the evaluation in f64, by dtype and op, with the reason.
#pragma once

#include "ir/tensor.h"

#include <optional>
#include <string>

namespace ingot::test {

struct Tolerance {
    /// The op's name, or "" for all ops without a row of their own.
    std::string_view op;
    DType dtype;
    /// Relative to the largest finite result. For integers: steps.
    double limit;
    std::string_view reason;
};

inline constexpr Tolerance tolerances[] = {
    {"", DType::F64, 1e-13, "the same operations, perhaps in another order"},
    {"", DType::F32, 2e-6, "a handful of roundings of 2^-24, none amplified"},
    {"", DType::F16, 1e-3, "computes in f32, rounds by 2^-11 when stored"},
    {"", DType::BF16, 8e-3, "computes in f32, rounds by 2^-8 when stored"},
    {"", DType::F8E4M3, 0.07, "a neighbour among values 2^-4 apart"},
    {"", DType::F8E5M2, 0.14, "a neighbour among values 2^-3 apart"},
    {"", DType::F4E2M1, 0.34, "a neighbour among 8 values"},
    {"quantize", DType::I8, 1, "x / scale may lie on either side of a half"},
    {"quantize", DType::U8, 1, "x / scale may lie on either side of a half"},
    {"quantize", DType::I16, 1, "x / scale may lie on either side of a half"},
    {"quantize", DType::U16, 1, "x / scale may lie on either side of a half"},
    {"quantize", DType::I4, 1, "x / scale may lie on either side of a half"},
    {"quantize", DType::U4, 1, "x / scale may lie on either side of a half"},
};

/// Integers without a row must be equal.
inline double tolerance_of(std::string_view op, DType dtype) {
    double limit = 0;
    for (const Tolerance& t : tolerances) {
        if (t.dtype == dtype && (t.op == op || (t.op.empty() && limit == 0))) {
            limit = t.limit;
        }
    }
    return limit;
}

/// Empty when `got` is within `limit` of `want` (which may have wider elements), else the
/// difference.
std::string difference(const Tensor& got, const Tensor& want, double limit);

} // namespace ingot::test
