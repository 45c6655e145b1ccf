// SPDX-License-Identifier: Apache-2.0
// Constants in narrow types with scales: symmetric, nearest, ties to even.
#pragma once

#include "ir/tensor.h"

namespace ingot {

struct QuantizedWeight {
    Tensor q;     // of the narrow type, in the shape of the weight
    Tensor scale; // f32: [size of axis], or the weight's shape with `axis` divided by `block`
    int64_t axis = 0;
    int64_t block = 0; // 0: one scale per position of axis; else one per block along it
    /// Squared error over squared weights.
    double error = 0;
};
/// Types: I8 (largest magnitude over 127), F8E4M3 (over 448), I4 (range -8 to 7). A channel of
/// zeros gets scale 1. `block` divides the axis. NaN and infinite weights give an infinite error.
QuantizedWeight quantized_weight(const Tensor& weight, DType type, int64_t axis, int64_t block = 0);

} // namespace ingot
