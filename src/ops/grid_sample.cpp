// SPDX-License-Identifier: Apache-2.0
// grid_sample: gathers of rows of channels, weighted and added up.
#include "ops/grid_sample.h"

#include "base/error.h"
#include "ops/op_table.h"
#include "ops/support/sampling.h"

namespace ingot::ops {

namespace {

// Folds a coordinate back and forth between the borders of an axis.
Value reflected(Graph& g, const GridSample& s, Value x, const Dim& size) {
    DType t = g.type(x).dtype;
    double low = s.align_corners ? 0 : -0.5;
    Value range = dim_scalar(g, s.align_corners ? size - Dim(1) : size, t);
    range = maximum(g, range, 1.0);
    Value distance = unary(g, ExprOp::Abs, sub(g, x, low));
    Value turns = unary(g, ExprOp::Floor, div(g, distance, range));
    Value rest = sub(g, distance, mul(g, turns, range));
    Value odd = less(g, scalar(g, t, 0.5), binary(g, ExprOp::Mod, turns, 2.0));
    return add(g, select(g, odd, sub(g, range, rest), rest), low);
}

// A coordinate in [-1, 1] as a position along an axis, with padding applied. Cubic positions may
// stay outside, as in PyTorch and ONNX Runtime.
Value position(Graph& g, const GridSample& s, Value normalized, const Dim& size) {
    DType t = g.type(normalized).dtype;
    Value x = add(g, normalized, 1.0);
    if (s.align_corners) {
        x = mul(g, mul(g, x, 0.5), dim_scalar(g, size - Dim(1), t));
    } else {
        x = mul(g, sub(g, mul(g, x, dim_scalar(g, size, t)), 1.0), 0.5);
    }
    if (s.mode == "nearest") {
        x = unary(g, ExprOp::Round, x);
    }
    if (s.mode == "cubic" || s.padding == "zeros") {
        return x;
    }
    return s.padding == "border" ? clamp_index(g, x, size) : reflected(g, s, x, size);
}

Value cubic_weight(Graph& g, Value d) {
    const double a = -0.75;
    d = unary(g, ExprOp::Abs, d);
    auto polynomial = [&](double p3, double p2, double p1, double p0) {
        Value v = add(g, mul(g, d, p3), p2);
        return add(g, mul(g, add(g, mul(g, v, d), p1), d), p0);
    };
    Value inner = polynomial(a + 2, -(a + 3), 0, 1);
    Value outer = polynomial(a, -5 * a, 8 * a, -4 * a);
    return select(g, less(g, scalar(g, g.type(d).dtype, 1), d), outer, inner);
}

// An integral position as a valid index, by the padding mode; weight 0 when there is none.
Tap padded_tap(Graph& g, const GridSample& s, Value at, Value weight, const Dim& size) {
    Value index = s.padding == "reflection" ? reflected(g, s, at, size) : at;
    index = clamp_index(g, index, size);
    if (s.padding != "zeros") {
        return {index, weight};
    }
    DType t = g.type(at).dtype;
    Value used = weight.valid() ? weight : scalar(g, t, 1);
    return {index, select(g, equal(g, at, index), used, scalar(g, t, 0))};
}

Taps taps_at(Graph& g, const GridSample& s, Value x, const Dim& size) {
    if (s.mode == "nearest") {
        return {padded_tap(g, s, x, {}, size)};
    }
    Value low = unary(g, ExprOp::Floor, x);
    Value fraction = sub(g, x, low);
    Taps taps;
    if (s.mode == "linear") {
        Value rest = sub(g, scalar(g, g.type(x).dtype, 1), fraction);
        taps.push_back(padded_tap(g, s, low, rest, size));
        taps.push_back(padded_tap(g, s, add(g, low, 1.0), fraction, size));
        return taps;
    }
    for (int64_t k = -1; k <= 2; ++k) {
        auto offset = static_cast<double>(k);
        Value weight = cubic_weight(g, sub(g, fraction, offset));
        taps.push_back(padded_tap(g, s, add(g, low, offset), weight, size));
    }
    return taps;
}

void check_grid_sample(const Graph& g, const GridSample& a, std::span<const Value> in) {
    require(in.size() == 2, ErrorCode::InvalidModel, "grid_sample takes 2 inputs, got ", in.size());
    require(a.mode == "linear" || a.mode == "nearest" || a.mode == "cubic", ErrorCode::InvalidModel,
            "grid_sample mode '", a.mode, "' is not known");
    require(a.padding == "zeros" || a.padding == "border" || a.padding == "reflection",
            ErrorCode::InvalidModel, "grid_sample padding '", a.padding, "' is not known");
    const Type& x = g.type(in[0]);
    const Type& grid = g.type(in[1]);
    require(x.rank() >= 3 && grid.rank() == x.rank() && is_float(grid.dtype) &&
                (!grid.dims.back().is_const() || grid.dims.back().is_const(x.rank() - 2)),
            ErrorCode::InvalidModel, "grid_sample of ", x, " and ", grid,
            ", expected [N,C,spatial...] and floats [N,out...,number of spatial axes]");
}

Values expand_grid_sample(Graph& g, const GridSample& s, std::span<const Value> in) {
    check_grid_sample(g, s, in);
    const Dims x = dims(g, in[0]);
    const DType t = g.type(in[0]).dtype;
    Dims sizes(x.begin() + 2, x.end());
    auto n = static_cast<int64_t>(sizes.size());
    Value places = widen(g, in[1]);
    std::vector<Taps> axes;
    for (int64_t i = 0; i < n; ++i) { // the last axis comes first in the grid
        Value v = squeeze(g, slice(g, places, -1, n - 1 - i, 1), {-1});
        const Dim& size = sizes[static_cast<size_t>(i)];
        axes.push_back(taps_at(g, s, position(g, s, v, size), size));
    }
    bool exact = !is_float(t) && s.mode != "nearest";
    Value data = exact ? cast(g, in[0], DType::F32) : widen(g, in[0]);
    Value base = lead_base(g, {x[0]}, sizes, x.size() - 1);
    std::vector<Value> all = neighbours(g, point_rows(g, data, 1), base, sizes, axes);
    return {cast(g, channels_after(g, sum_of(g, all), 1), t)};
}

} // namespace

Value grid_sample(Graph& g, GridSample a, Value x, Value grid) {
    return g.add1(grid_sample_def, std::move(a), {x, grid});
}

const OpDef grid_sample_def = composite<GridSample>(
    "grid_sample",
    {[](const Node& n) {
         return n.as<GridSample>().mode == "nearest" ? Rounding::Matters : Rounding::Smooth;
     },
     InHalf::Narrow, parameters_from(1)},
    [](Graph& g, const GridSample& a, std::span<const Value> in) {
        return expand_grid_sample(g, a, in);
    });

} // namespace ingot::ops

namespace ingot {

extern const OpTable grid_sample_ops;
static const OpDef* const list[] = {&ops::grid_sample_def};
const OpTable grid_sample_ops = list;

} // namespace ingot
