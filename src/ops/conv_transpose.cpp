// SPDX-License-Identifier: Apache-2.0
// conv_transpose: where kernel and stride are equal, one contraction whose taps are the output
// pixels; else zeros between the elements and a convolution with the mirrored kernel.
#include "ops/op_table.h"
#include "ops/spatial.h"

namespace ingot::ops {

namespace {

void check_conv_transpose(const ConvTranspose& a, const Type& x, const Type& w) {
    require(x.rank() >= 3 && w.rank() == x.rank(), ErrorCode::InvalidModel, "conv_transpose of ", x,
            " with ", w, ": expected [N,C,spatial...] and a kernel of the same rank");
    require_spatial("conv_transpose", x, "strides", a.strides.size());
    require_spatial("conv_transpose", x, "dilations", a.dilations.size());
    require_spatial("conv_transpose", x, "low pads", a.low.size());
    require_spatial("conv_transpose", x, "high pads", a.high.size());
    require(a.groups >= 1 && (!w.dims[0].is_const() || w.dims[0].value() % a.groups == 0),
            ErrorCode::InvalidModel, "conv_transpose kernel ", w, " has ", w.dims[0],
            " input channels, which do not divide into ", a.groups, " groups");
    require(!(w.dims[0] - x.dims[1]).is_const() || w.dims[0] == x.dims[1], ErrorCode::InvalidModel,
            "conv_transpose of ", x, " with ", w, ": the input has ", x.dims[1],
            " channels, the kernel expects ", w.dims[0]);
    for (size_t i = 0; i < a.strides.size(); ++i) {
        if (!w.dims[i + 2].is_const()) {
            refuse(RefusalKind::Dynamic, "conv_transpose kernel ", w,
                   ": the kernel's size along axis ", i + 2, " is not known while compiling");
        }
        require(a.strides[i] > 0 && a.dilations[i] > 0, ErrorCode::InvalidModel,
                "conv_transpose stride ", a.strides[i], " and dilation ", a.dilations[i],
                " must be positive");
    }
}

// Adds `d` zeros at an end of a spatial axis, or removes -d elements when d is negative.
Value grow(Graph& g, Value x, const Dims& low, const Dims& high) {
    Dims pad_low;
    Dims pad_high;
    for (size_t i = 0; i < low.size(); ++i) {
        pad_low.push_back(max(low[i], 0));
        pad_high.push_back(max(high[i], 0));
    }
    x = pad_spatial(g, x, pad_low, pad_high, 0);
    for (size_t i = 0; i < low.size(); ++i) {
        Dim cut_low = max(Dim(0) - low[i], 0);
        Dim cut_high = max(Dim(0) - high[i], 0);
        const Dim size = dims(g, x)[i + 2];
        x = slice(g, x, static_cast<int64_t>(i + 2), cut_low, size - cut_low - cut_high);
    }
    return x;
}

// Inserts stride - 1 zeros between neighbours of each spatial axis.
Value spread(Graph& g, Value x, const std::vector<int64_t>& strides) {
    for (size_t i = 0; i < strides.size(); ++i) {
        if (strides[i] == 1) {
            continue;
        }
        const Dims d = dims(g, x);
        auto axis = static_cast<int64_t>(i + 2);
        Value wide = unsqueeze(g, x, {axis + 1});
        Dims zero(d.size() + 1, Dim(0));
        Dims more = zero;
        more[i + 3] = strides[i] - 1;
        wide = pad(g, wide, zero, more);
        Dims flat = d;
        flat[i + 2] = d[i + 2] * Dim(strides[i]);
        x = slice(g, reshape(g, wide, flat), axis, 0, flat[i + 2] - Dim(strides[i] - 1));
    }
    return x;
}

Dims without_channels(const Dims& kernel) {
    return Dims(kernel.begin() + 2, kernel.end());
}

// w [C,O/g,k...] -> [O,C/g,k... mirrored]: the kernel of the equivalent convolution.
Value mirrored(Graph& g, Value w, int64_t groups) {
    const Dims d = dims(g, w);
    Dims split = {groups, floor_div(d[0], groups), d[1]};
    Dims spatial = without_channels(d);
    split.insert(split.end(), spatial.begin(), spatial.end());
    std::vector<int64_t> perm = {0, 2, 1};
    for (int64_t i = 3; i < static_cast<int64_t>(split.size()); ++i) {
        perm.push_back(i);
    }
    Value v = permute(g, reshape(g, w, split), perm);
    Dims out = {d[1] * Dim(groups), floor_div(d[0], groups)};
    out.insert(out.end(), spatial.begin(), spatial.end());
    v = reshape(g, v, out);
    for (size_t i = 0; i < spatial.size(); ++i) {
        v = spatial[i].is_const(1) ? v : reverse(g, v, static_cast<int64_t>(i + 2));
    }
    return v;
}

// Kernel equal to stride: every output element comes from one input element.
Value tiled(Graph& g, const ConvTranspose& a, Value x, Value w) {
    const Dims xd = dims(g, x);
    const Dims wd = dims(g, w);
    auto n = static_cast<int64_t>(a.strides.size());
    Dim in_channels = floor_div(wd[0], a.groups);
    Dims xs = {xd[0], a.groups, in_channels};
    xs.insert(xs.end(), xd.begin() + 2, xd.end());
    Dims ws = {a.groups, in_channels};
    ws.insert(ws.end(), wd.begin() + 1, wd.end());
    Dot d{{0}, {1}, {1}, {2}, g.type(x).dtype};
    // [groups, O/groups, k..., N, in...] -> [N, groups, O/groups, in0, k0, in1, k1, ...]
    Value y = dot(g, d, reshape(g, w, ws), reshape(g, x, xs));
    std::vector<int64_t> perm = {2 + n, 0, 1};
    Dims out = {xd[0], wd[1] * Dim(a.groups)};
    for (int64_t i = 0; i < n; ++i) {
        perm.push_back(3 + n + i);
        perm.push_back(2 + i);
        out.push_back(xd[static_cast<size_t>(i + 2)] * Dim(a.strides[static_cast<size_t>(i)]));
    }
    return reshape(g, permute(g, y, perm), out);
}

Values expand_conv_transpose(Graph& g, const ConvTranspose& a, std::span<const Value> in) {
    require(in.size() == 2, ErrorCode::InvalidModel, "conv_transpose takes 2 inputs, got ",
            in.size());
    check_conv_transpose(a, g.type(in[0]), g.type(in[1]));
    const Dims kernel = without_channels(dims(g, in[1]));
    size_t n = kernel.size();
    bool equal = true;
    for (size_t i = 0; i < n; ++i) {
        equal = equal && kernel[i].is_const(a.strides[i]) && a.dilations[i] == 1;
    }
    Dims low;
    Dims high;
    for (size_t i = 0; i < n; ++i) {
        low.push_back(Dim(0) - a.low[i]);
        high.push_back(Dim(0) - a.high[i]);
    }
    if (equal) {
        return {grow(g, tiled(g, a, in[0], in[1]), low, high)};
    }
    for (size_t i = 0; i < n; ++i) {
        Dim reach = (kernel[i] - Dim(1)) * Dim(a.dilations[i]);
        low[i] = low[i] + reach;
        high[i] = high[i] + reach;
    }
    Value x = grow(g, spread(g, in[0], a.strides), low, high);
    Conv c;
    c.strides.assign(n, 1);
    c.dilations = a.dilations;
    c.low.assign(n, Dim(0));
    c.high.assign(n, Dim(0));
    c.groups = a.groups;
    c.dtype = g.type(x).dtype;
    return {conv(g, c, x, mirrored(g, in[1], a.groups))};
}

} // namespace

Value conv_transpose(Graph& g, ConvTranspose a, Value x, Value w) {
    return g.add1(conv_transpose_def, std::move(a), {x, w});
}

const OpDef conv_transpose_def =
    composite<ConvTranspose>("conv_transpose", {Rounding::Smooth, InHalf::Narrow, like_result},
                             [](Graph& g, const ConvTranspose& a, std::span<const Value> in) {
                                 return expand_conv_transpose(g, a, in);
                             });

} // namespace ingot::ops

namespace ingot {

extern const OpTable conv_transpose_ops;
static const OpDef* const list[] = {&ops::conv_transpose_def};
const OpTable conv_transpose_ops = list;

} // namespace ingot
