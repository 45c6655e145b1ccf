// SPDX-License-Identifier: Apache-2.0
// How far a tensor is from the one that it should be. NaN equals nothing, NaN neither.
#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot {

/// Elements that no distance can be told of: NaN on either side or on both, and infinity that is
/// not the same on both.
struct Mismatches {
    int64_t count = 0;
    int64_t first = -1; // element
    /// "element [0,3] is nan, expected 1.5"; "" where there is none.
    std::string text;
};
/// Both of one shape.
Mismatches mismatches(const Tensor& ours, const Tensor& reference);

/// Whether two elements are the same number; equal infinities are, NaN never is.
bool is_mismatch(double ours, double reference);

struct TensorDifference {
    std::string name;
    double max_absolute = 0;
    double max_relative = 0; // max_absolute over the reference's range (at least 1e-30)
    double range = 0;        // of the reference's finite elements, and from 0
    int64_t elements = 0;
    Mismatches mismatched;
    std::string problem; // shapes or types differ, tensor missing
    /// Elements that differ only because equal scores came in another order (ties.h).
    int64_t tied = 0;
    bool within = false;

    /// "max error 0.5 (0.1 of the range) over 8 elements, ...", or the problem.
    std::string text() const;
};
/// Differences of `ours` from `reference`; within when |difference| <= atol + rtol * range
/// everywhere and nothing is mismatched.
TensorDifference difference(std::string name, const Tensor& ours, const Tensor& reference,
                            double atol, double rtol);

/// "[0,3]", where element i of a tensor of this shape is; "[]" in a scalar.
std::string position(const Shape& shape, int64_t i);

} // namespace ingot
