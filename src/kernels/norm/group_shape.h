// SPDX-License-Identifier: Apache-2.0
// The problem of group_norm with channels innermost in memory, for its kernels.
#pragma once

#include "kernels/family.h"
#include "kernels/reduce/reduce_rows.h"

namespace ingot::kernels {

struct GroupShape {
    Operand x, scale, bias;
    bool has_bias = false;
    double epsilon = 0;
    int64_t images = 0;
    int64_t channels = 0;
    int64_t groups = 1;
    int64_t pixels = 0;
    Nest walk;                  // over the pixels of x, the result and `operands`, in x's order
    std::vector<View> operands; // of the map behind, broadcast to the result
    int vector = 1; // elements of x and the result per access, at most 16 bytes of either

    int64_t size() const { return channels / groups; } // of a group
    /// Whether x and the result go from pixel to pixel by one step, and the map reads them alone.
    bool one_step() const { return walk.axes == 1 && operands.empty(); }
    int64_t x_pixel() const { return walk.arg.strides[0][0]; } // where one_step
    int64_t y_pixel() const { return walk.arg.strides[1][0]; }
    int64_t x_image() const { return x.view.strides[0]; }
    int64_t scale_step() const { return step(scale.view); }
    int64_t bias_step() const { return step(bias.view); }

private:
    static int64_t step(const View& v) { return v.shape[0] == 1 ? 0 : v.strides[0]; }
};

/// nullopt for other layouts.
std::optional<GroupShape> group_shape(const Problem& p);

/// Microseconds for `blocks` blocks that each move `bytes`, spread over all SMs.
double block_bytes_us(const Arch& arch, int64_t blocks, double bytes);

} // namespace ingot::kernels
