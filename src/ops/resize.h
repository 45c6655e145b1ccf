// SPDX-License-Identifier: Apache-2.0
// Properties of a resize that kernels need beyond its attributes.
#pragma once

#include "ops/ops.h"

namespace ingot::ops {

/// If the resize repeats each element of x an integer number of times: that number for each of
/// a.axes; otherwise empty.
std::vector<int64_t> repeats(const Resize& a, const Type& x);

} // namespace ingot::ops
