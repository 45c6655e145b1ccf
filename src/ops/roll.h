// SPDX-License-Identifier: Apache-2.0
// roll: shifts elements along axes; those shifted out at one end re-enter at the other.
#pragma once

#include "ops/ops.h"

namespace ingot::ops {

/// x -> y of x's type: along axes[k], y[i] = x[(i - shifts[k]) mod size]. Each shift is between 0
/// and the axis's size; no axis occurs twice.
struct Roll {
    std::vector<int64_t> axes;
    Dims shifts;
    static void fields(auto& s, auto&& f) { f("axes", s.axes), f("shifts", s.shifts); }
};
/// Negative axes, and any shift along axes of known size, are allowed.
Value roll(Graph& g, Roll a, Value x);

extern const OpDef roll_def;

} // namespace ingot::ops
