// SPDX-License-Identifier: Apache-2.0
// group_norm: mean and variance over each group of channels and all positions, in f32 (f64 for
// f64), then scale and bias for each channel.
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/ops.h"

namespace ingot::ops {

namespace {

Values expand_group_norm(Graph& g, const GroupNorm& a, std::span<const Value> in) {
    require(in.size() == 3, ErrorCode::InvalidModel, "group_norm takes 3 inputs, got ", in.size());
    const Type t = g.type(in[0]);
    require(is_float(t.dtype) && t.rank() >= 2, ErrorCode::InvalidModel, "group_norm of ", t,
            ": expected floats [N,C,...]");
    require(a.groups >= 1 && (!t.dims[1].is_const() || t.dims[1].value() % a.groups == 0),
            ErrorCode::InvalidModel, "group_norm of ", t, ": ", t.dims[1],
            " channels do not divide into ", a.groups, " groups");
    Dim inner = floor_div(t.dims[1], a.groups);
    for (size_t i = 2; i < t.dims.size(); ++i) {
        inner = inner * t.dims[i];
    }
    Value x = widen(g, in[0]);
    DType wide = g.type(x).dtype;
    x = reshape(g, x, {t.dims[0], a.groups, inner});
    x = sub(g, x, reduce_mean(g, x, {2}, true));
    Value variance = reduce_mean(g, mul(g, x, x), {2}, true);
    Value y = reshape(g, div(g, x, sqrt(g, add(g, variance, a.epsilon))), t.dims);
    Dims channel(static_cast<size_t>(t.rank() - 1), Dim(1));
    channel[0] = t.dims[1];
    y = mul(g, y, reshape(g, cast(g, in[1], wide), channel));
    y = add(g, y, reshape(g, cast(g, in[2], wide), channel));
    return {cast(g, y, t.dtype)};
}

} // namespace

Value group_norm(Graph& g, GroupNorm a, Value x, Value scale, Value bias) {
    return g.add1(group_norm_def, a, {x, scale, bias});
}

const OpDef group_norm_def =
    composite<GroupNorm>("group_norm", {Rounding::Smooth, InHalf::Narrow, parameters_from(1)},
                         [](Graph& g, const GroupNorm& a, std::span<const Value> in) {
                             return expand_group_norm(g, a, in);
                         });

} // namespace ingot::ops

namespace ingot {

extern const OpTable group_norm_ops;
static const OpDef* const list[] = {&ops::group_norm_def};
const OpTable group_norm_ops = list;

} // namespace ingot
