// SPDX-License-Identifier: Apache-2.0
// roll: elements that move along axes, those that leave at one end come back at the other.
#pragma once

#include "ops/ops.h"

namespace ingot::ops {

/// x -> y of x's type: along axes[k], element i of y is element (i - shifts[k]) mod size of x.
/// Each shift lies between 0 and the axis's size; no axis occurs twice.
struct Roll {
    std::vector<int64_t> axes;
    Dims shifts;
    static void fields(auto& s, auto&& f) { f("axes", s.axes), f("shifts", s.shifts); }
};
/// Axes from the end and shifts of any number are allowed where sizes are known.
Value roll(Graph& g, Roll a, Value x);

extern const OpDef roll_def;

} // namespace ingot::ops
