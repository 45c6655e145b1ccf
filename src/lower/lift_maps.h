// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/lowering.h"

namespace ingot::plan {

/// Maps move before the views (reshapes, permutations) through which they read a kernel's result. A
/// row of lowering lists, and the last step of passes that put views behind kernels.
Pass lift_maps(const KernelSet& kernels);

} // namespace ingot::plan
