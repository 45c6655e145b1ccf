// SPDX-License-Identifier: Apache-2.0
// grid_sample: reads an image at the positions that a grid gives, as ONNX's GridSample does.
#pragma once

#include "ops/ops.h"

namespace ingot::ops {

/// (x [N,C,spatial...], grid [N,out...,R]) -> [N,C,out...] of x's type, with R spatial axes, of
/// which the last comes first in the grid. A coordinate goes from -1 to 1: from the centre of an
/// axis's first element to that of the last one (align_corners), else from border to border.
/// Positions and weights are computed in f32, or f64 where the grid has f64; elements outside x
/// are 0, those at its border, or those of x folded back and forth. Cubic weights have a = -0.75.
struct GridSample {
    std::string mode = "linear";   // "nearest", "linear" or "cubic"
    std::string padding = "zeros"; // "zeros", "border" or "reflection"
    bool align_corners = false;
    static void fields(auto& s, auto&& f) {
        f("mode", s.mode), f("padding", s.padding), f("align_corners", s.align_corners);
    }
};
Value grid_sample(Graph& g, GridSample a, Value x, Value grid);

extern const OpDef grid_sample_def;

} // namespace ingot::ops
