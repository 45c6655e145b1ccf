// SPDX-License-Identifier: Apache-2.0
// Convolutions in floating point: Conv, ConvTranspose, DeformConv, CausalConvWithState, and Col2Im.
#include "base/error.h"
#include "onnx/ops/support/gates.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"
#include "ops/support/sampling.h"

#include <array>
#include <numeric>
#include <utility>

namespace ingot::onnx {

namespace {

Value with_bias(NodeContext& c, Value y, int bias, size_t spatial) {
    return c.has(bias) ? ops::add(c.g, y, per_channel(c.g, c.in(bias), spatial)) : y;
}

Values conv(NodeContext& c) {
    Sliding s = sliding(c, spatial_dims(c.type(0)), kernel_sizes(c, 1));
    Value y = ops::conv(c.g, conv_attributes(c, s, c.dtype(0)), c.in(0), c.in(1));
    return {with_bias(c, y, 2, s.count())};
}

// --- ConvTranspose

// Pads that give the requested sizes.
void pads_for(Sliding& s, const Dims& in, const Dims& out, const std::vector<int64_t>& extra) {
    s.low.clear();
    s.high.clear();
    for (size_t i = 0; i < s.count(); ++i) {
        Dim total = Dim(s.strides[i]) * (in[i] - Dim(1)) + Dim(extra[i] + s.span(i)) - out[i];
        Dim half = floor_div(total, 2);
        s.low.push_back(s.auto_pad == "SAME_UPPER" ? half : total - half);
        s.high.push_back((s.auto_pad == "SAME_UPPER" ? total - half : half) - Dim(extra[i]));
    }
}

Values transposed(NodeContext& c, const Dims& in, Sliding s, int bias) {
    size_t n = s.count();
    std::vector<int64_t> extra = c.ints("output_padding");
    extra.resize(std::max(extra.size(), n), 0);
    for (int64_t e : extra) {
        c.ensure(e >= 0 && e <= largest_count, "attribute 'output_padding' is ", extra,
                 ", expected numbers from 0 to ", largest_count);
    }
    std::vector<int64_t> wanted = c.ints("output_shape");
    if (!wanted.empty()) {
        c.ensure(wanted.size() == n || wanted.size() == n + 2, "attribute 'output_shape' has ",
                 wanted.size(), " entries, expected ", n);
        wanted.erase(wanted.begin(), wanted.end() - static_cast<int64_t>(n));
        pads_for(s, in, Dims(wanted.begin(), wanted.end()), extra);
    } else if (s.auto_pad.starts_with("SAME")) {
        Dims out;
        for (size_t i = 0; i < n; ++i) {
            out.push_back(in[i] * Dim(s.strides[i]));
        }
        pads_for(s, in, out, extra);
    } else {
        for (size_t i = 0; i < n; ++i) {
            s.high[i] = s.high[i] - Dim(extra[i]);
        }
    }
    ops::ConvTranspose a{s.strides, s.dilations, s.low, s.high, positive(c, "group", 1)};
    return {with_bias(c, ops::conv_transpose(c.g, a, c.in(0), c.in(1)), bias, n)};
}

Values conv_transpose(NodeContext& c) {
    const Dims in = spatial_dims(c.type(0));
    return transposed(c, in, sliding(c, in, kernel_sizes(c, 1)), 2);
}

// com.microsoft's: (x, w, [pads: all low ones, then all high ones], [bias])
Values conv_transpose_with_pads(NodeContext& c) {
    const Dims in = spatial_dims(c.type(0));
    Sliding s = sliding(c, in, kernel_sizes(c, 1));
    if (c.has(2) && (s.auto_pad == "NOTSET" || s.auto_pad.empty())) {
        auto n = static_cast<int64_t>(s.count());
        const Dims pads = sizes_input(c, 2, 2 * n);
        s.low.assign(pads.begin(), pads.begin() + n);
        s.high.assign(pads.begin() + n, pads.end());
    }
    return transposed(c, in, std::move(s), 3);
}

// --- DeformConv

// The coordinate that tap k of output position p reads along spatial axis `axis`, without the
// learnt offset: f32 [K, positions...].
Value regular_place(ingot::Graph& g, const Sliding& s, const Dims& positions, size_t axis,
                    DType t) {
    std::vector<double> taps;
    int64_t count =
        std::accumulate(s.kernel.begin(), s.kernel.end(), int64_t{1}, std::multiplies<>());
    int64_t inner = std::accumulate(s.kernel.begin() + static_cast<int64_t>(axis) + 1,
                                    s.kernel.end(), int64_t{1}, std::multiplies<>());
    for (int64_t k = 0; k < count; ++k) {
        taps.push_back(static_cast<double>((k / inner) % s.kernel[axis] * s.dilations[axis]));
    }
    Value tap = ops::constant(g, ingot::Tensor::of<double>(t, {count}, taps));
    Dims tap_shape(s.count() + 1, Dim(1));
    tap_shape[0] = count;
    Dims along(s.count() + 1, Dim(1));
    along[axis + 1] = positions[axis];
    Value p = ops::mul(g, ops::iota(g, t, along, static_cast<int64_t>(axis + 1)),
                       static_cast<double>(s.strides[axis]));
    Value origin = ops::dim_scalar(g, s.low[axis], t);
    return ops::sub(g, ops::add(g, p, ops::reshape(g, tap, tap_shape)), origin);
}

// Samples of x for every tap: [N, C, K, positions...].
Value deformed_samples(NodeContext& c, const Sliding& s, const Dims& positions, int64_t groups) {
    ingot::Graph& g = c.g;
    const Dims x = c.type(0).dims;
    size_t n = s.count();
    int64_t taps =
        std::accumulate(s.kernel.begin(), s.kernel.end(), int64_t{1}, std::multiplies<>());
    Dims shape = {x[0], groups, taps, static_cast<int64_t>(n)};
    shape.insert(shape.end(), positions.begin(), positions.end());
    Value offset = ops::reshape(g, c.in(2), shape);
    ops::Points p;
    for (size_t i = 0; i < n; ++i) {
        Value o = ops::squeeze(g, ops::slice(g, offset, 3, static_cast<int64_t>(i), 1), {3});
        p.coordinates.push_back(
            ops::add(g, ops::widen(g, o),
                     regular_place(g, s, positions, i, g.type(ops::widen(g, o)).dtype)));
        p.sizes.push_back(x[i + 2]);
    }
    Dims rows = {x[0], groups, floor_div(x[1], groups)};
    rows.insert(rows.end(), p.sizes.begin(), p.sizes.end());
    // [N, groups, C/groups, K, positions...]
    Value y = ops::sample_linear(g, ops::reshape(g, c.in(0), rows), 2, p);
    if (c.has(4)) {
        Dims mask = {x[0], groups, 1, taps};
        mask.insert(mask.end(), positions.begin(), positions.end());
        y = ops::mul(g, y, ops::reshape(g, c.in(4), mask));
    }
    Dims out = {x[0], x[1], taps};
    out.insert(out.end(), positions.begin(), positions.end());
    return ops::reshape(g, y, out);
}

// The coordinates of all taps are listed one by one, so their number is limited.
void check_tap_count(const NodeContext& c, const Sliding& s) {
    int64_t left = 1 << 16;
    for (int64_t k : s.kernel) {
        left /= k;
    }
    if (left == 0) {
        c.refuse(RefusalKind::Size, "the kernel has the sizes ", s.kernel,
                 "; more than 65536 taps are not supported");
    }
}

Values deform_conv(NodeContext& c) {
    ingot::Graph& g = c.g;
    Sliding s = sliding(c, spatial_dims(c.type(0)), kernel_sizes(c, 1));
    const Dims positions = spatial_dims(c.type(2));
    int64_t groups = positive(c, "group", 1);
    check_tap_count(c, s);
    c.ensure(positions.size() == s.count(), "offsets are ", c.type(2), ", expected ", s.count(),
             " spatial axes");
    Value x = deformed_samples(c, s, positions, positive(c, "offset_group", 1));
    const Dims w = c.type(1).dims;
    const Dims d = ops::dims(g, x);
    Dims grouped = {d[0], groups, w[1], d[2]};
    grouped.insert(grouped.end(), positions.begin(), positions.end());
    Value weights = ops::reshape(g, c.in(1), {groups, floor_div(w[0], groups), w[1], d[2]});
    Value y = ops::dot(g, Dot{{0}, {1}, {2, 3}, {2, 3}, c.dtype(0)}, weights,
                       ops::reshape(g, x, grouped)); // [groups, O/groups, N, positions...]
    std::vector<int64_t> perm = {2, 0, 1};
    Dims out = {d[0], w[0]};
    for (size_t i = 0; i < s.count(); ++i) {
        perm.push_back(static_cast<int64_t>(i + 3));
        out.push_back(positions[i]);
    }
    return {with_bias(c, ops::reshape(g, ops::permute(g, y, perm), out), 3, s.count())};
}

// --- CausalConvWithState

void check_causal_conv(const NodeContext& c) {
    constexpr std::array<std::pair<const char*, int64_t>, 7> fixed = {{{"ndim", 1},
                                                                       {"state_window", 0},
                                                                       {"state_update_capacity", 0},
                                                                       {"state_channels_last", -1},
                                                                       {"state_length", 0},
                                                                       {"input_channel_offset", 0},
                                                                       {"input_channels", 0}}};
    for (const auto& [name, only] : fixed) {
        if (int64_t v = c.i(name, only); v != only) {
            c.refuse(RefusalKind::Attribute, "attribute '", name, "' is ", v, "; only ", only,
                     " is supported");
        }
    }
}

// x [N,length,channels...] as [N,C,length].
Value length_last(ingot::Graph& g, Value x) {
    const Dims d = ops::dims(g, x);
    return ops::permute(g, ops::reshape(g, x, {d[0], d[1], product_of(d, 2, d.size())}), {0, 2, 1});
}

// y [N,C,length] with the channels of `like` [N,length',channels...].
Value length_second(ingot::Graph& g, Value y, Dims like) {
    like[1] = ops::dims(g, y)[2];
    return ops::reshape(g, ops::permute(g, y, {0, 2, 1}), like);
}

Values causal_conv(NodeContext& c) {
    ingot::Graph& g = c.g;
    check_causal_conv(c);
    bool last = c.i("channels_last", 0) != 0;
    int64_t dilation = positive(c, "dilation", 1);
    const Dims given = c.type(0).dims;
    c.ensure(last ? given.size() >= 3 : given.size() == 3, "input is ", c.type(0), ", expected ",
             last ? "[N,length,C...]" : "[N,C,length]");
    std::vector<int64_t> kernel = kernel_sizes(c, 1);
    Value all = last ? length_last(g, c.in(0)) : c.in(0);
    const Dims d = ops::dims(g, all);
    Dim carry = Dim(kernel.at(0) - 1) * Dim(dilation);
    Dim channels = d[1].is_const() ? d[1] : c.dim(1, 0);
    if (!channels.is_const()) {
        c.refuse(RefusalKind::Dynamic, "input is ", c.type(0),
                 "; the number of channels must be known");
    }
    if (c.has(3)) {
        c.ensure(c.rank(3) == c.rank(0), "past_state is ", c.type(3), ", expected rank ",
                 c.rank(0));
        std::array parts = {last ? length_last(g, c.in(3)) : c.in(3), all};
        all = ops::concat(g, parts, 2);
    } else {
        all = ops::pad(g, all, {0, 0, carry}, {0, 0, 0});
    }
    ops::Conv a{{1}, {dilation}, {0}, {0}, channels.value(), c.dtype(0)};
    Value y = with_bias(c, ops::conv(g, a, all, c.in(1)), 2, 1);
    std::string activation = c.s("activation", "none");
    if (activation == "silu" || activation == "swish") {
        y = silu(g, y);
    } else {
        c.ensure(activation == "none", "attribute 'activation' is '", activation,
                 "', expected 'silu', 'swish' or 'none'");
    }
    Value state = ops::slice(g, all, 2, d[2], carry);
    return last ? Values{length_second(g, y, given), length_second(g, state, given)}
                : Values{y, state};
}

// --- Col2Im

// The flat index of the padded pixel that each (tap, position) adds to; taps first, then positions.
Value target_pixels(ingot::Graph& g, const Sliding& s, const Dims& block, const Dims& padded) {
    size_t n = s.count();
    Value index;
    Dim stride = 1;
    for (size_t i = n; i-- > 0;) {
        Dim positions = floor_div(padded[i] - Dim(s.dilations[i]) * (block[i] - Dim(1)) - Dim(1),
                                  s.strides[i]) +
                        Dim(1);
        Dims taps(2 * n, Dim(1));
        Dims places = taps;
        taps[i] = block[i];
        places[n + i] = positions;
        auto axis = static_cast<int64_t>(i);
        Value tap = ops::iota(g, DType::I64, taps, axis);
        Value place = ops::iota(g, DType::I64, places, axis + static_cast<int64_t>(n));
        place = ops::mul(g, place, static_cast<double>(s.strides[i]));
        place = ops::add(g, place, ops::mul(g, tap, static_cast<double>(s.dilations[i])));
        place = ops::mul(g, place, ops::dim_scalar(g, stride));
        index = index.valid() ? ops::add(g, index, place) : place;
        stride = stride * padded[i];
    }
    return ops::flatten(g, index);
}

Values col2im(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Dims image = ops::dims_from(g, c.in(1));
    const Dims block = ops::dims_from(g, c.in(2));
    size_t n = image.size();
    c.ensure(block.size() == n, "block_shape has ", block.size(), " entries, image_shape ", n);
    Sliding s = sliding(c, image, std::vector<int64_t>(n, 1));
    Dims padded;
    for (size_t i = 0; i < n; ++i) {
        padded.push_back(image[i] + s.low[i] + s.high[i]);
    }
    Value index = target_pixels(g, s, block, padded);
    const Dims d = c.type(0).dims;
    c.ensure(d.size() == 3, "input is ", c.type(0), ", expected [N,C*block,positions]");
    Dim taps = product(block);
    Dim channels = floor_div(d[1], taps);
    Dim pixels = product(padded);
    Value updates = ops::reshape(g, c.in(0), {d[0], channels, taps, d[2]});
    updates = ops::permute(g, updates, {2, 3, 0, 1});
    updates = ops::reshape(g, updates, {ops::dims(g, index)[0], d[0], channels});
    Value sum = ops::scatter(g, ops::full(g, c.dtype(0), {pixels, d[0], channels}, 0), index,
                             updates, "add");
    Dims out = {d[0], channels};
    out.insert(out.end(), padded.begin(), padded.end());
    Value y = ops::reshape(g, ops::permute(g, sum, {1, 2, 0}), out);
    for (size_t i = 0; i < n; ++i) {
        y = ops::slice(g, y, static_cast<int64_t>(i + 2), s.low[i], image[i]);
    }
    return {y};
}

const ImporterRow rows[] = {
    {"", "Conv", 1, conv, no_shapes},
    {"", "ConvTranspose", 1, conv_transpose, no_shapes},
    {"com.microsoft", "ConvTransposeWithDynamicPads", 1, conv_transpose_with_pads,
     shape_inputs({2})},
    {"", "DeformConv", 19, deform_conv, no_shapes},
    {"", "CausalConvWithState", 27, causal_conv, no_shapes},
    {"com.microsoft", "CausalConvWithState", 1, causal_conv, no_shapes},
    {"", "Col2Im", 18, col2im, no_shapes},
};

} // namespace

extern const ImporterTable conv_importers;
const ImporterTable conv_importers = rows;

} // namespace ingot::onnx
