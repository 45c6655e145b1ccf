// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/window_runs.h"

#include "kernels/common/slabs.h"

#include <numeric>

namespace ingot::kernels {

bool in_pairs(const ConvShape& s) {
    const WindowArg& w = s.window;
    auto pairs = [&w](size_t axis) { return w.stride[axis] == 2 && w.in[axis] % 2 == 0; };
    bool one_row = w.in[1] == 1 && w.kernel[1] == 1 && w.out[1] == 1 && w.low[1] == 0;
    return w.flat() && pairs(2) && (pairs(1) || one_row) && s.taps() > 1 &&
           w.step[2] >= w.channels * s.groups;
}

namespace {

/// Whether no padding cuts a window along the last axis.
bool inside(const WindowArg& w) {
    return w.low[2] == 0 && w.out[2] > 0 &&
           (w.out[2] - 1) * w.stride[2] + w.dilation[2] * (w.kernel[2] - 1) < w.in[2];
}

/// Whether there is but one axis to walk, along which columns of x, and taps of w, lie side by
/// side.
bool dense_line(const ConvShape& s) {
    const WindowArg& w = s.window;
    bool line = s.groups == 1 && w.kernel[2] > 1 && w.dilation[2] == 1;
    for (size_t i = 0; i < 2; ++i) {
        line = line && w.in[i] == 1 && w.out[i] == 1 && w.kernel[i] == 1 && w.low[i] == 0;
    }
    return line && w.step[2] == w.channels && s.tap_step == w.channels &&
           (w.channels == 1 || (w.step_c == 1 && s.w.view.strides[1] == 1));
}

/// Weights whose rows, taps and channels, are dense, with so many channels a tap.
View with_rows(const View& w, int64_t channels) {
    int64_t row = w.count() / w.shape[0];
    return {{w.shape[0], channels, row / channels}, {w.strides[0], 1, channels}, w.offset};
}

/// Along one axis: `count` columns side by side become one of so many times the channels.
ConvShape columns_joined(const ConvShape& s, int64_t count) {
    ConvShape v = s;
    WindowArg& w = v.window;
    w.channels *= count;
    v.channels = w.channels;
    w.in[2] /= count;
    w.kernel[2] /= count;
    w.stride[2] /= count;
    w.low[2] /= count;
    w.step[2] = w.channels;
    w.step_c = 1;
    v.tap_step = w.channels;
    v.w.view = with_rows(s.w.view, w.channels);
    return v;
}

/// Windows along one axis that padding cuts, with steps between them: as many columns become one as
/// leave steps of at most a pair, and make up whole windows, paddings and lines.
ConvShape columns_as_channels(const ConvShape& s) {
    const WindowArg& w = s.window;
    if (!dense_line(s) || w.stride[2] == 1) {
        return s;
    }
    int64_t most = std::gcd(std::gcd(w.stride[2], w.kernel[2]), w.low[2]);
    for (int64_t count = most; count > 1 && 2 * count >= w.stride[2]; --count) {
        int64_t end = (w.out[2] - 1) * w.stride[2] + w.kernel[2] - w.low[2];
        bool whole = w.in[2] % count == 0 || end <= w.in[2] / count * count;
        if (most % count != 0 || !whole) {
            continue;
        }
        ConvShape v = columns_joined(s, count);
        if (v.window.stride[2] == 1 || in_pairs(v)) {
            return v;
        }
    }
    return s;
}

/// Wide windows of few channels that no padding cuts: a row of a window is one run in memory. The
/// runs, which overlap, become the channels of a convolution over one column.
ConvShape overlapping_runs(const ConvShape& s) {
    constexpr int64_t most_channels = 32;
    const WindowArg& w = s.window;
    const Shape& weights = s.w.view.strides;
    bool flat = s.x.view.rank() == 4 && w.in[0] == 1 && s.groups == 1;
    bool wide = w.kernel[2] >= 3 && w.channels <= most_channels && w.dilation[2] == 1 && inside(w);
    bool dense = w.step_c == 1 && w.step[2] == w.channels && weights[1] == 1 &&
                 weights[3] == w.channels && w.channels % chunk_elements(s.x.dtype) == 0;
    if (!flat || !wide || !dense) {
        return s;
    }
    ConvShape v = s;
    v.window.channels = w.kernel[2] * w.channels;
    v.window.step[2] = w.stride[2] * w.channels;
    v.window.in[2] = w.out[2];
    v.window.kernel[2] = v.window.stride[2] = 1;
    v.tap_step = weights[2];
    return v;
}

} // namespace

std::optional<ConvShape> windows_as_rows(const ConvShape& s) {
    if (!dense_line(s) || !inside(s.window)) {
        return std::nullopt;
    }
    ConvShape v = columns_joined(s, 1);
    WindowArg& w = v.window;
    w.channels *= w.kernel[2];
    v.channels = w.channels;
    w.step[2] = w.stride[2] * s.window.channels;
    w.in[2] = w.out[2];
    w.kernel[2] = w.stride[2] = 1;
    v.tap_step = w.channels;
    v.w.view = with_rows(s.w.view, w.channels);
    return v;
}

/// Adjacent windows (stride == kernel, no padding): a row of a window, with its channels, is one
/// run in memory. The runs become the channels of a convolution over one column, the rows of
/// results its images. The order of result positions stays.
ConvShape runs_as_channels(const ConvShape& s) {
    if (std::optional<ConvShape> rows = windows_as_rows(s)) {
        return *rows;
    }
    const WindowArg& w = s.window;
    const Shape& weights = s.w.view.strides;
    int64_t run = w.kernel[2] * w.channels;
    bool flat = s.x.view.rank() == 4 && w.in[0] == 1;
    bool beside = s.groups == 1 && s.taps() > 1;
    for (size_t i = 1; i < 3; ++i) {
        beside = beside && w.stride[i] == w.kernel[i] && w.low[i] == 0 &&
                 (w.kernel[i] == 1 || w.dilation[i] == 1) &&
                 (w.out[i] - 1) * w.stride[i] + w.kernel[i] <= w.in[i];
    }
    int64_t rows = w.kernel[1] * w.step[1];
    bool dense = flat && w.step_c == 1 && w.step[2] == w.channels && weights[1] == 1 &&
                 (w.kernel[2] == 1 || weights[3] == w.channels) &&
                 (w.kernel[1] == 1 || weights[2] == run) &&
                 (s.images == 1 || w.out[1] == 1 || w.step_n == w.out[1] * rows);
    if (!beside || !dense) {
        return overlapping_runs(columns_as_channels(s));
    }
    ConvShape v = s;
    v.images = s.images * w.out[1];
    v.tap_step = run;
    v.window.channels = run;
    v.window.in = {1, w.kernel[1], w.out[2]};
    v.window.out = {1, 1, w.out[2]};
    v.window.kernel = {1, w.kernel[1], 1};
    v.window.stride = {1, 1, 1};
    v.window.dilation = {1, 1, 1};
    v.window.step_n = w.out[1] == 1 ? w.step_n : rows;
    v.window.step = {0, w.step[1], run};
    return v;
}

} // namespace ingot::kernels
