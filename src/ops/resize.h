// SPDX-License-Identifier: Apache-2.0
// What kernels need to know of a resize beyond its attributes.
#pragma once

#include "ops/ops.h"

namespace ingot::ops {

/// Of a resize of x that repeats each element a whole number of times, that number for each of
/// a.axes; empty for any other resize.
std::vector<int64_t> repeats(const Resize& a, const Type& x);

} // namespace ingot::ops
