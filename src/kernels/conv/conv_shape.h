// SPDX-License-Identifier: Apache-2.0
// A convolution with concrete sizes and strides, and the contractions that it is.
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
};

struct ConvShape {
    Operand x, w, out;
    bool w_constant = false;
    int64_t images = 0, channels = 0, results = 0, groups = 1;
    WindowArg window;
    /// The stride of w between kernel positions.
    int64_t tap_step = 0;
    Finish finish;

    int64_t taps() const { return window.kernel[0] * window.kernel[1] * window.kernel[2]; }
    bool depthwise() const { return groups == channels && results == channels && groups > 1; }
    /// One tap and no padding: a product of matrices.
    bool pointwise() const;
};
/// Errors: InvalidArgument when the sizes do not fit.
ConvShape conv_shape(const Problem& p);

/// Rows are result positions, columns the results of a group, a batch per group. The depth is one
/// axis along w; x is not walked by it.
Contraction window_contraction(const ConvShape& s);
/// The same for a pointwise convolution, x included.
Contraction pointwise_contraction(const ConvShape& s);
/// All channels are columns.
Contraction depthwise_contraction(const ConvShape& s);

void add_window(Args& args, const WindowArg& w);

/// By wgmma, where the copy engine can fetch the windows: no groups, and either no steps between
/// windows of several elements, or windows that lie side by side. `way`: Tactic::p[0].
void add_wgmma_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch, bool tf32,
                    int way);
Emitted emit_wgmma_conv(const ConvShape& s, const Arch& arch, const Tactic& t);

/// Each channel by itself. Ways: Tactic::p[0] of the one for everything, and of the one for aligned
/// channels of f16, bf16 or f32 in a plane (`strip`).
void add_depthwise(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch, int generic_way,
                   int strip_way);
Emitted emit_depthwise(const ConvShape& s, const Tactic& t, bool strip);

/// Up to four channels in f16 or bf16, on tensor cores of any GPU.
void add_stem_conv(std::vector<Tactic>& out, const ConvShape& s, const Arch& arch, int way);
Emitted emit_stem_conv(const ConvShape& s, const Arch& arch, const Tactic& t);

} // namespace ingot::kernels
