// SPDX-License-Identifier: Apache-2.0
// layer_norm: mean and variance over the trailing axes in f32 (f64 for f64), then scale and bias.
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::ops {

namespace {

Values expand_layer_norm(Graph& g, const LayerNorm& a, std::span<const Value> in) {
    require(in.size() == 2 || in.size() == 3, ErrorCode::InvalidModel,
            "layer_norm takes 2 or 3 inputs, got ", in.size());
    const Type t = g.type(in[0]);
    require(is_float(t.dtype), ErrorCode::InvalidModel, "layer_norm of ", t, ": expected floats");
    int64_t first = normalize_axis(a.axis, t.rank());
    std::vector<int64_t> axes;
    for (int64_t i = first; i < t.rank(); ++i) {
        axes.push_back(i);
    }
    Value x = widen(g, in[0]);
    DType wide = g.type(x).dtype;
    if (!a.rms) {
        x = sub(g, x, reduce_mean(g, x, axes, true));
    }
    Value variance = reduce_mean(g, mul(g, x, x), axes, true);
    Value y = div(g, x, sqrt(g, add(g, variance, a.epsilon)));
    y = mul(g, y, cast(g, in[1], wide));
    if (in.size() == 3) {
        y = add(g, y, cast(g, in[2], wide));
    }
    require(dims(g, y).size() == t.dims.size(), ErrorCode::InvalidModel, "layer_norm of ", t,
            ": scale ", g.type(in[1]), " or bias has more axes");
    return {cast(g, broadcast_to(g, y, t.dims), t.dtype)};
}

/// Whether v is the same for all rows: it has no other axes than the `count` normalised ones.
bool is_one_row(const Graph& g, Value v, int64_t count) {
    Dims d = dims(g, v);
    int64_t others = std::max<int64_t>(static_cast<int64_t>(d.size()) - count, 0);
    return std::all_of(d.begin(), d.begin() + others, [](const Dim& x) { return x.is_const(1); });
}

/// The norm alone, then a scale and a bias that differ from row to row.
Value norm_then_affine(Graph& g, const LayerNorm& a, Value x, Value scale, Value bias) {
    const Type t = g.type(x);
    x = widen(g, x);
    DType wide = g.type(x).dtype;
    Value one = full(g, wide, {t.dims.back()}, 1);
    Value y = mul(g, g.add1(layer_norm_def, a, {x, one}), cast(g, scale, wide));
    y = bias.valid() ? add(g, y, cast(g, bias, wide)) : y;
    return cast(g, broadcast_to(g, y, t.dims), t.dtype);
}

} // namespace

Value layer_norm(Graph& g, LayerNorm a, Value x, Value scale, Value bias) {
    int64_t rank = g.type(x).rank();
    a.axis = normalize_axis(a.axis, rank);
    int64_t count = rank - a.axis;
    if (!is_one_row(g, scale, count) || (bias.valid() && !is_one_row(g, bias, count))) {
        return norm_then_affine(g, a, x, scale, bias);
    }
    return bias.valid() ? g.add1(layer_norm_def, a, {x, scale, bias})
                        : g.add1(layer_norm_def, a, {x, scale});
}

const OpDef layer_norm_def =
    composite<LayerNorm>("layer_norm", {Rounding::Smooth, InHalf::Narrow, parameters_from(1)},
                         [](Graph& g, const LayerNorm& a, std::span<const Value> in) {
                             return expand_layer_norm(g, a, in);
                         });

} // namespace ingot::ops

namespace ingot {

extern const OpTable layer_norm_ops;
static const OpDef* const list[] = {&ops::layer_norm_def};
const OpTable layer_norm_ops = list;

} // namespace ingot
