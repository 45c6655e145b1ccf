// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/tensor.h"

namespace ingot::plan {

/// Transposes a tensor of rank 2 with 4-bit elements. Uses all threads: gigabytes of weights are
/// packed this way before a first run.
Tensor transposed_packed(const Tensor& t);

} // namespace ingot::plan
