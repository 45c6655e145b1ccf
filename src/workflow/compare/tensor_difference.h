// SPDX-License-Identifier: Apache-2.0
// The difference between a tensor and its reference. NaN equals nothing, not even NaN.
#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ingot {

/// Elements without a distance: NaN on either side or on both, and infinity that differs between
/// the sides.
struct Mismatches {
    int64_t count = 0;
    int64_t first = -1; // element
    /// "element [0,3] is nan, expected 1.5"; "" when there is none.
    std::string text;
};
/// Requires equal shapes.
Mismatches mismatches(const Tensor& ours, const Tensor& reference);

/// Whether two elements lack a distance; equal infinities do not, NaN always does.
bool is_mismatch(double ours, double reference);

struct TensorDifference {
    std::string name;
    double max_absolute = 0;
    double max_relative = 0; // max_absolute over the reference's range (at least 1e-30)
    double range = 0;        // of the reference's finite elements, and from 0
    int64_t elements = 0;
    DType dtype = DType::F32; // of ours
    Shape shape;
    std::string node;  // of the step that wrote a layer
    int64_t step = -1; // its place in the run; -1 for the results of a run
    int64_t wrong = 0; // elements beyond the tolerances, or without a distance
    int64_t first_wrong = -1;
    Mismatches mismatched;
    std::string problem; // shapes or types differ, or the tensor is missing
    /// Elements that differ only because equal scores come in another order (ties.h).
    int64_t tied = 0;
    /// The distance that rounding alone moves the tensor (rounding_spread.h), where that explains
    /// a difference beyond the tolerances; else 0.
    double spread = 0;
    bool within = false;

    /// "max error 0.5 (0.1 of the range) over 8 elements, ...", or the problem.
    std::string text() const;
    /// "363 (node 'Conv_64', f32[1,4,15,20])"; the name alone for the results of a run.
    std::string place() const;
    /// "12 of 1200 elements from index 512 on".
    std::string wrong_text() const;
};
/// Differences of `ours` from `reference`; `within` when |difference| <= atol + rtol * range
/// everywhere and nothing is mismatched.
TensorDifference difference(std::string name, const Tensor& ours, const Tensor& reference,
                            double atol, double rtol);

/// "[0,3]": the position of element i in a tensor of this shape; "[]" in a scalar.
std::string position(const Shape& shape, int64_t i);

} // namespace ingot
