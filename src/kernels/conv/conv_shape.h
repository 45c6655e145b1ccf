// SPDX-License-Identifier: Apache-2.0
// A convolution with concrete sizes and strides, and its contractions.
#pragma once

#include "kernels/contraction/contraction.h"

#include <array>

namespace ingot::kernels {

/// `struct Window` of window.cuh.
struct WindowArg {
    std::array<int64_t, 3> in, out, kernel, stride, dilation, low;
    int64_t channels = 0;
    int64_t step_n = 0;
    std::array<int64_t, 3> step;
    int64_t step_c = 0;

    /// Whether there is nothing to walk along the first axis.
    bool flat() const { return in[0] == 1 && out[0] == 1 && kernel[0] == 1 && low[0] == 0; }
};

struct ConvShape {
    Operand x, w, out;
    bool w_constant = false;
    bool backwards = false; // as in Problem
    int64_t images = 0, channels = 0, results = 0, groups = 1;
    WindowArg window;
    /// The stride of w between kernel positions.
    int64_t tap_step = 0;
    Epilogue epilogue;

    int64_t taps() const { return window.kernel[0] * window.kernel[1] * window.kernel[2]; }
    bool depthwise() const { return groups == channels && results == channels && groups > 1; }
    /// One tap and no padding: a matrix product.
    bool pointwise() const;
};
/// Errors: InvalidArgument when the sizes do not fit.
ConvShape conv_shape(const Problem& p);

/// Rows are result positions, columns the results of a group, one batch per group. The depth is one
/// axis along w; it does not walk x.
Contraction window_contraction(const ConvShape& s);
/// The same for a pointwise convolution, x included.
Contraction pointwise_contraction(const ConvShape& s);
/// All channels are columns.
Contraction depthwise_contraction(const ConvShape& s);

void add_window(Args& args, const WindowArg& w);

} // namespace ingot::kernels
