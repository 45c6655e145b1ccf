// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/tensor.h"

namespace ingot::plan {

/// A tensor of rank 2 and 4-bit elements with its two axes exchanged. Uses all threads: weights of
/// gigabytes are packed so before a first run.
Tensor transposed_packed(const Tensor& t);

} // namespace ingot::plan
