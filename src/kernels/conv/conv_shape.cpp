// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/conv_shape.h"

#include "base/error.h"
#include "kernels/contraction/store_text.h"
#include "ops/ops.h"

namespace ingot::kernels {

namespace {

/// Copies the spatial part of `s` behind leading values.
std::array<int64_t, 3> spatial(const Shape& s, size_t first, int64_t leading) {
    std::array<int64_t, 3> out = {leading, leading, leading};
    size_t count = s.size() - first;
    for (size_t i = 0; i < count; ++i) {
        out[3 - count + i] = s[first + i];
    }
    return out;
}

void check(const ConvShape& s, const Shape& high) {
    const WindowArg& w = s.window;
    std::array<int64_t, 3> above = spatial(high, 0, 0);
    for (size_t i = 0; i < 3; ++i) {
        int64_t room = w.in[i] + w.low[i] + above[i] - w.dilation[i] * (w.kernel[i] - 1) - 1;
        int64_t expected = room < 0 ? 0 : room / w.stride[i] + 1;
        require(w.out[i] == expected, ErrorCode::InvalidArgument, "conv of ", s.x.view.shape,
                " with ", s.w.view.shape, " gives ", s.out.view.shape, ": expected ", expected,
                " positions along an axis of ", w.in[i]);
    }
}

/// Whether windows are single elements along an axis, one for each.
bool is_walked(const WindowArg& w, size_t axis) {
    return w.kernel[axis] == 1 && w.stride[axis] == 1 && w.low[axis] == 0 &&
           w.out[axis] == w.in[axis];
}

/// Windows over two axes of three: a first axis that is walked becomes images, and two that are
/// walked one, where they lie so in memory. The order of result positions stays.
void flatten(ConvShape& s) {
    WindowArg& w = s.window;
    if (w.in[0] == 1 || s.taps() == 1) {
        return;
    }
    if (is_walked(w, 0) && (s.images == 1 || w.step_n == w.in[0] * w.step[0])) {
        s.images *= w.in[0];
        w.step_n = w.step[0];
        w.in[0] = w.out[0] = 1;
        w.step[0] = 0;
    } else if (is_walked(w, 1) && is_walked(w, 2) && w.step[1] == w.in[2] * w.step[2]) {
        int64_t positions = w.in[1] * w.in[2];
        w.in = {1, w.in[0], positions};
        w.out = {1, w.out[0], positions};
        w.kernel = {1, w.kernel[0], 1};
        w.stride = {1, w.stride[0], 1};
        w.dilation = {1, w.dilation[0], 1};
        w.low = {0, w.low[0], 0};
        w.step = {0, w.step[0], w.step[2]};
    }
}

} // namespace

ConvShape conv_shape(const Problem& p) {
    const Node& n = p.group.first();
    const auto& attrs = n.as<ops::Conv>();
    ConvShape s;
    s.x = p.operand(n.inputs[0]);
    s.w = p.operand(n.inputs[1]);
    s.backwards = p.backwards;
    s.w_constant = p.constants[static_cast<size_t>(p.group.input_index(n.inputs[1]))] != nullptr;
    s.out = p.out[0];
    s.epilogue = epilogue_of(p);
    const View& x = s.x.view;
    const View& w = s.w.view;
    s.images = x.shape[0];
    s.channels = x.shape[1];
    s.results = w.shape[0];
    s.groups = attrs.groups;
    if (s.depthwise()) { // which rounds no operand
        s.epilogue.quick = is_half(s.epilogue.type);
    }
    require(x.rank() >= 3 && x.rank() <= 5, ErrorCode::Unsupported, "conv of ", x.shape,
            ": one to three spatial axes are supported");
    require(w.shape[1] * s.groups == s.channels && s.results % s.groups == 0 &&
                s.out.view.shape[0] == s.images && s.out.view.shape[1] == s.results,
            ErrorCode::InvalidArgument, "conv of ", x.shape, " with ", w.shape, " in ", s.groups,
            " groups: the channels do not fit");
    WindowArg& a = s.window;
    a.in = spatial(x.shape, 2, 1);
    a.out = spatial(s.out.view.shape, 2, 1);
    a.kernel = spatial(w.shape, 2, 1);
    a.stride = spatial(attrs.strides, 0, 1);
    a.dilation = spatial(attrs.dilations, 0, 1);
    a.low = spatial(eval(attrs.low, p.symbols), 0, 0);
    a.channels = w.shape[1];
    a.step_n = x.strides[0];
    a.step = spatial(x.strides, 2, 0);
    a.step_c = x.strides[1];
    // With one channel per group, the depth steps from tap to tap.
    s.tap_step = w.shape[1];
    for (size_t i = w.shape.size(); i-- > 2;) {
        if (w.shape[i] != 1) {
            s.tap_step = w.strides[i];
            break;
        }
    }
    check(s, eval(attrs.high, p.symbols));
    flatten(s);
    return s;
}

bool ConvShape::pointwise() const {
    bool whole = true;
    for (size_t i = 0; i < 3; ++i) {
        whole =
            whole && window.low[i] == 0 && (window.out[i] - 1) * window.stride[i] < window.in[i];
    }
    return taps() == 1 && whole;
}

namespace {

/// Strides of the stored views along one axis of the result, times `factor`.
void add_stored(Loops& loops, const ConvShape& s, size_t axis, int64_t factor) {
    loops.stored.resize(s.epilogue.operands.size() + 1);
    loops.stored[0].push_back(s.out.view.strides[axis] * factor);
    for (size_t v = 1; v < loops.stored.size(); ++v) {
        loops.stored[v].push_back(s.epilogue.operands[v - 1].view.strides[axis] * factor);
    }
}

Contraction start(const ConvShape& s, int64_t batches) {
    Contraction c;
    c.a = s.x;
    c.b = s.w;
    c.out = s.out;
    c.b_constant = s.w_constant;
    c.backwards = s.backwards;
    c.epilogue = s.epilogue;
    int64_t channels = s.channels / s.groups;
    int64_t results = s.results / batches;
    c.batch.sizes = {batches};
    c.batch.a = {channels * s.window.step_c};
    c.batch.b = {results * s.w.view.strides[0]};
    add_stored(c.batch, s, 1, results);
    c.columns.sizes = {results};
    c.columns.b = {s.w.view.strides[0]};
    add_stored(c.columns, s, 1, 1);
    const View& out = s.out.view;
    for (size_t axis = 0; axis < out.shape.size(); ++axis) {
        if (axis != 1) {
            size_t spatial_axis = axis == 0 ? 0 : 3 - (out.shape.size() - axis);
            c.rows.sizes.push_back(out.shape[axis]);
            c.rows.a.push_back(axis == 0
                                   ? s.window.step_n
                                   : s.window.step[spatial_axis] * s.window.stride[spatial_axis]);
            add_stored(c.rows, s, axis, 1);
        }
    }
    c.depth.sizes = {channels * s.taps()};
    c.depth.a = {s.window.step_c};
    c.depth.b = {channels == 1 ? s.tap_step : s.w.view.strides[1]};
    return c;
}

Contraction merged(Contraction c) {
    for (Loops* l : {&c.batch, &c.rows, &c.columns, &c.depth}) {
        if (l->count() > 0) {
            merge(*l);
        }
    }
    return c;
}

} // namespace

Contraction window_contraction(const ConvShape& s) {
    Contraction c = start(s, s.groups);
    c.rows.a.clear();
    if (c.rows.count() > 0) {
        merge(c.rows);
    }
    return c;
}

Contraction pointwise_contraction(const ConvShape& s) {
    return merged(start(s, s.groups));
}

Contraction depthwise_contraction(const ConvShape& s) {
    Contraction c = start(s, 1);
    c.rows.a.clear();
    if (c.rows.count() > 0) {
        merge(c.rows);
    }
    return c;
}

void add_window(Args& args, const WindowArg& w) {
    std::vector<int64_t> words;
    for (const auto* a : {&w.in, &w.out, &w.kernel, &w.stride, &w.dilation, &w.low}) {
        words.insert(words.end(), a->begin(), a->end());
    }
    words.push_back(w.channels);
    words.push_back(w.step_n);
    words.insert(words.end(), w.step.begin(), w.step.end());
    words.push_back(w.step_c);
    add_words(args, words);
}

} // namespace ingot::kernels
