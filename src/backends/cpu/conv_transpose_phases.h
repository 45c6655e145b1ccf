// SPDX-License-Identifier: Apache-2.0
// A transposed convolution without its inserted zeros: results whose coordinates have the same
// remainder by the stride form a phase, which meets the same taps.
#pragma once

#include "backends/cpu/spatial.h"

namespace ingot::cpu {

/// The results of one axis at first_out + q * stride for q < count: tap number j of them is at
/// first_tap + j * step in the kernel and reads element first_in + q - j * step_in.
struct AxisPhase {
    int64_t count = 0;
    int64_t taps = 0;
    int64_t first_in = 0;
    int64_t step = 1;
    int64_t step_in = 1;
    std::vector<int64_t> first_out; // of each phase that reads the same elements
    std::vector<int64_t> first_tap; // parallel
};

/// The phase of result number `first_out`, which is below the stride.
AxisPhase phase_at(const SpatialAxis& a, int64_t first_out);
/// All phases; those that read the same elements are one.
std::vector<AxisPhase> phases_of(const SpatialAxis& a);

} // namespace ingot::cpu
