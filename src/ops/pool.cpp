// SPDX-License-Identifier: Apache-2.0
// pool: pad, window, reduce; averages divide by the number of elements in each window.
#include "ops/op_table.h"
#include "ops/spatial.h"

#include <cmath>
#include <limits>

namespace ingot::ops {

namespace {

double lowest(DType t) {
    if (is_float(t)) {
        return -std::numeric_limits<double>::infinity();
    }
    return is_signed(t) && t != DType::I64 ? -std::ldexp(1.0, bit_width(t) - 1)
           : is_signed(t)                  ? static_cast<double>(INT64_MIN)
                                           : 0;
}

Value windows(Graph& g, const Pool& a, Value x, int64_t first_axis) {
    Window w;
    for (size_t i = 0; i < a.sizes.size(); ++i) {
        w.axes.push_back(first_axis + static_cast<int64_t>(i));
    }
    w.sizes = a.sizes;
    w.strides = a.strides;
    w.dilations = a.dilations;
    return window(g, x, w);
}

std::vector<int64_t> tap_axes(size_t n) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < n; ++i) {
        axes.push_back(static_cast<int64_t>(2 + n + i));
    }
    return axes;
}

// The number of elements under each position of spatial axis i: f32 or f64 [positions].
Value counts(Graph& g, const Pool& a, size_t i, const Dim& size, DType t) {
    Value ones = full(g, t, {size}, 1);
    double inside = a.count_padding ? 1 : 0;
    ones = pad(g, ones, {a.low[i]}, {a.high[i]}, inside);
    ones = pad(g, ones, {Dim(0)}, {a.extra[i]}, 0.0);
    Value w = window(g, ones, Window{{0}, {a.sizes[i]}, {a.strides[i]}, {a.dilations[i]}});
    return reduce_sum(g, w, {1});
}

// x (sums of windows) divided by the element counts.
Value averaged(Graph& g, const Pool& a, Value sums, const Dims& in) {
    DType t = g.type(sums).dtype;
    double fixed = 1;
    size_t n = a.sizes.size();
    for (size_t i = 0; i < n; ++i) {
        bool whole = a.extra[i].is_const(0) &&
                     (a.count_padding || (a.low[i].is_const(0) && a.high[i].is_const(0)));
        if (whole) {
            fixed *= static_cast<double>(a.sizes[i]);
            continue;
        }
        std::vector<int64_t> trailing;
        for (size_t k = i + 1; k < n; ++k) {
            trailing.push_back(static_cast<int64_t>(k - i));
        }
        sums = div(g, sums, unsqueeze(g, counts(g, a, i, in[i + 2], t), trailing));
    }
    return fixed == 1 ? sums : div(g, sums, fixed);
}

Values expand_pool(Graph& g, const Pool& a, std::span<const Value> in) {
    require(in.size() == 1, ErrorCode::InvalidModel, "pool takes 1 input, got ", in.size());
    const Type x = g.type(in[0]);
    bool max = a.fn == "max";
    require(max || a.fn == "average", ErrorCode::InvalidModel, "pool fn is '", a.fn,
            "', expected 'max' or 'average'");
    require_spatial("pool", x, "sizes", a.sizes.size());
    require_spatial("pool", x, "strides", a.strides.size());
    require_spatial("pool", x, "dilations", a.dilations.size());
    require_spatial("pool", x, "low pads", a.low.size());
    require_spatial("pool", x, "high pads", a.high.size());
    require_spatial("pool", x, "extra pads", a.extra.size());
    require(max || is_float(x.dtype), ErrorCode::InvalidModel, "average pool of ", x,
            ": expected floats");
    Dims high;
    for (size_t i = 0; i < a.high.size(); ++i) {
        high.push_back(a.high[i] + a.extra[i]);
    }
    Value v = max ? in[0] : widen(g, in[0]);
    v = windows(g, a, pad_spatial(g, v, a.low, high, max ? lowest(x.dtype) : 0), 2);
    v = reduce(g, max ? "max" : "sum", v, tap_axes(a.sizes.size()));
    return {max ? v : cast(g, averaged(g, a, v, x.dims), x.dtype)};
}

} // namespace

Value pool(Graph& g, Pool a, Value x) {
    return g.add1(pool_def, std::move(a), {x});
}

const OpDef pool_def = composite<Pool>(
    "pool", {Rounding::Smooth, InHalf::Narrow, like_result},
    [](Graph& g, const Pool& a, std::span<const Value> in) { return expand_pool(g, a, in); });

} // namespace ingot::ops

namespace ingot {

extern const OpTable pool_ops;
static const OpDef* const list[] = {&ops::pool_def};
const OpTable pool_ops = list;

} // namespace ingot
