// SPDX-License-Identifier: Apache-2.0
// conv: pad, window, one contraction, permute. Groups are a batch axis of the contraction.
#include "ops/op_table.h"
#include "ops/spatial.h"

namespace ingot::ops {

namespace {

void check_conv(const Conv& a, const Type& x, const Type& w) {
    require(x.rank() >= 3 && w.rank() == x.rank(), ErrorCode::InvalidModel, "conv of ", x, " with ",
            w, ": expected [N,C,spatial...] and a kernel of the same rank");
    require_spatial("conv", x, "strides", a.strides.size());
    require_spatial("conv", x, "dilations", a.dilations.size());
    require_spatial("conv", x, "low pads", a.low.size());
    require_spatial("conv", x, "high pads", a.high.size());
    require(a.groups >= 1, ErrorCode::InvalidModel, "conv has ", a.groups,
            " groups, expected at least 1");
    Dim channels = w.dims[1] * Dim(a.groups);
    require(!(channels - x.dims[1]).is_const() || channels == x.dims[1], ErrorCode::InvalidModel,
            "conv of ", x, " with ", w, " in ", a.groups, " groups: the input has ", x.dims[1],
            " channels, the kernel expects ", channels);
    require(!w.dims[0].is_const() || w.dims[0].value() % a.groups == 0, ErrorCode::InvalidModel,
            "conv kernel ", w, ": its ", w.dims[0], " output channels do not divide into ",
            a.groups, " groups");
    for (size_t i = 2; i < w.dims.size(); ++i) {
        if (!w.dims[i].is_const()) {
            refuse(RefusalKind::Dynamic, "conv kernel ", w, ": the kernel's size along axis ", i,
                   " is not known while compiling");
        }
    }
}

// x with windows along axes whose kernel is larger than 1, and strides on the others.
Value windows(Graph& g, const Conv& a, Value x, const Dims& kernel, Dims& taps) {
    Window w;
    for (size_t i = 0; i < a.strides.size(); ++i) {
        auto axis = static_cast<int64_t>(i + 2);
        int64_t size = kernel[i + 2].value();
        if (size == 1) {
            x = every(g, x, axis, a.strides[i]);
            continue;
        }
        w.axes.push_back(axis);
        w.sizes.push_back(size);
        w.strides.push_back(a.strides[i]);
        w.dilations.push_back(a.dilations[i]);
        taps.emplace_back(size);
    }
    return w.axes.empty() ? x : window(g, x, w);
}

std::vector<int64_t> run(int64_t from, int64_t count) {
    std::vector<int64_t> v;
    for (int64_t i = 0; i < count; ++i) {
        v.push_back(from + i);
    }
    return v;
}

Values expand_conv(Graph& g, const Conv& a, std::span<const Value> in) {
    require(in.size() == 2, ErrorCode::InvalidModel, "conv takes 2 inputs, got ", in.size());
    check_conv(a, g.type(in[0]), g.type(in[1]));
    const Dims kernel = dims(g, in[1]);
    Dims taps;
    Value x = windows(g, a, pad_spatial(g, in[0], a.low, a.high, 0), kernel, taps);
    auto spatial = static_cast<int64_t>(a.strides.size());
    auto tap_count = static_cast<int64_t>(taps.size());
    bool grouped = a.groups != 1;
    int64_t lead = grouped ? 1 : 0;

    Dims wd = {kernel[0], kernel[1]};
    if (grouped) {
        wd = {a.groups, floor_div(kernel[0], a.groups), kernel[1]};
        Dims xd = dims(g, x);
        xd[1] = kernel[1];
        xd.insert(xd.begin() + 1, Dim(a.groups));
        x = reshape(g, x, xd);
    }
    wd.insert(wd.end(), taps.begin(), taps.end());
    Value w = reshape(g, in[1], wd);

    Dot d;
    d.a_contract = run(1 + lead, 1 + tap_count);
    d.b_contract = run(1 + lead, 1);
    for (int64_t t : run(2 + lead + spatial, tap_count)) {
        d.b_contract.push_back(t);
    }
    if (grouped) {
        d.a_batch = {0};
        d.b_batch = {1};
    }
    d.dtype = a.dtype;
    Value y = dot(g, d, w, x); // [groups], O/groups, N, positions...
    std::vector<int64_t> perm =
        grouped ? std::vector<int64_t>{2, 0, 1} : std::vector<int64_t>{1, 0};
    for (int64_t p : run(2 + lead, spatial)) {
        perm.push_back(p);
    }
    y = permute(g, y, perm);
    if (grouped) {
        Dims out = dims(g, y);
        out.erase(out.begin() + 1);
        out[1] = kernel[0];
        y = reshape(g, y, out);
    }
    return {y};
}

} // namespace

Value conv(Graph& g, Conv a, Value x, Value w) {
    return g.add1(conv_def, std::move(a), {x, w});
}

const OpDef conv_def = composite<Conv>(
    "conv", {Rounding::Smooth, InHalf::Narrow, like_result},
    [](Graph& g, const Conv& a, std::span<const Value> in) { return expand_conv(g, a, in); });

} // namespace ingot::ops

namespace ingot {

extern const OpTable conv_ops;
static const OpDef* const list[] = {&ops::conv_def};
const OpTable conv_ops = list;

} // namespace ingot
