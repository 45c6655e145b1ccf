// SPDX-License-Identifier: Apache-2.0
// The problem of group_norm with channels innermost in memory, for its kernels.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

struct GroupShape {
    Operand x, scale, bias;
    bool has_bias = false;
    double epsilon = 0;
    int64_t images = 0;
    int64_t channels = 0;
    int64_t groups = 1;
    int64_t pixels = 0;
    int64_t x_pixel = 0; // from one pixel to the next
    int64_t y_pixel = 0;
    int vector = 1; // elements of x and the result per access, at most 16 bytes of either

    int64_t size() const { return channels / groups; } // of a group
    int64_t x_image() const { return x.view.strides[0]; }
    int64_t scale_step() const { return step(scale.view); }
    int64_t bias_step() const { return step(bias.view); }

private:
    static int64_t step(const View& v) { return v.shape[0] == 1 ? 0 : v.strides[0]; }
};

/// nullopt for other layouts, or a map that reads more than the result.
std::optional<GroupShape> group_shape(const Problem& p);

/// Microseconds for `blocks` blocks that each move `bytes`, spread over all SMs.
double block_bytes_us(const Arch& arch, int64_t blocks, double bytes);

} // namespace ingot::kernels
