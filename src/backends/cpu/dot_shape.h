// SPDX-License-Identifier: Apache-2.0
// A contraction's axes in four groups, with concrete sizes and strides.
#pragma once

#include "backends/cpu/kernel.h"
#include "ops/primitives.h"

namespace ingot::cpu {

/// Sizes of a group of axes, and the strides of each tensor that has them.
struct AxisGroup {
    Shape sizes;
    Shape a, b, c;
};

struct DotShape {
    AxisGroup batch;   // a, b, c
    AxisGroup rows;    // a, c
    AxisGroup columns; // b, c
    AxisGroup depth;   // a, b
};
/// Errors: InvalidArgument when paired sizes differ.
DotShape dot_shape(const Dot& d, const View& a, const View& b, const View& c);

} // namespace ingot::cpu
