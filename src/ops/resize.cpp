// SPDX-License-Identifier: Apache-2.0
// resize: axis by axis, a gather for "nearest", else a weighted sum of neighbours. Coordinates are
// f64 (vectors of the axis's size); elements are combined in f32 (f64 for f64). Repeated elements
// are a broadcast.
#include "ops/resize.h"

#include "base/error.h"
#include "ops/op_table.h"

#include <algorithm>
#include <cmath>

namespace ingot::ops {

namespace {

constexpr DType f64 = DType::F64;

// One axis of a resize: its sizes and scale factor, as f64 scalars of the graph.
struct Axis {
    size_t entry; // index into the attribute lists
    int64_t axis;
    Dim in;
    Dim out;
    Value in_size;
    Value out_size;
    Value scale;
    Value full_size; // in * scale: may have a fraction
};

Value element(Graph& g, Value list, size_t i) {
    Value one = slice(g, list, 0, static_cast<int64_t>(i), 1);
    return cast(g, reshape(g, one, {}), f64);
}

Axis axis_of(Graph& g, const Resize& a, size_t entry, Value x, Value scales) {
    Axis s;
    s.entry = entry;
    s.axis = a.axes[entry];
    s.in = dims(g, x)[static_cast<size_t>(s.axis)];
    s.out = a.sizes[entry];
    s.in_size = dim_scalar(g, s.in, f64);
    s.out_size = dim_scalar(g, s.out, f64);
    double scale = a.scales.empty() ? 0 : a.scales[entry];
    Value ratio = div(g, s.out_size, s.in_size);
    if (scales.valid()) {
        Value given = element(g, scales, entry);
        Value zero = scalar(g, f64, 0);
        s.scale = select(g, less(g, zero, given), given, ratio);
        s.full_size = select(g, less(g, zero, given), mul(g, s.in_size, given), s.out_size);
        return s;
    }
    s.scale = scale > 0 ? scalar(g, f64, scale) : ratio;
    s.full_size = scale > 0 ? mul(g, s.in_size, scale) : s.out_size;
    return s;
}

// `alone` when the result has one element along the axis, else `usual`.
Value unless_single(Graph& g, const Axis& s, Value usual, Value alone) {
    return select(g, equal(g, s.full_size, scalar(g, f64, 1)), alone, usual);
}

Value half_pixel(Graph& g, const Axis& s, Value y) {
    return sub(g, div(g, add(g, y, 0.5), s.scale), 0.5);
}

// The source coordinate of every result position: f64[out].
Value coordinates(Graph& g, const Resize& a, const Axis& s, Value roi) {
    Value y = iota(g, f64, {s.out}, 0);
    Value last = sub(g, s.in_size, 1.0);
    const std::string& c = a.coordinates;
    if (c == "half_pixel") {
        return half_pixel(g, s, y);
    }
    if (c == "asymmetric") {
        return div(g, y, s.scale);
    }
    if (c == "tf_half_pixel_for_nn") {
        return div(g, add(g, y, 0.5), s.scale);
    }
    if (c == "pytorch_half_pixel") {
        // By the operator's text and ONNX Runtime; ONNX's reference code has -0.5, which differs
        // for cubic taps.
        return unless_single(g, s, half_pixel(g, s, y), scalar(g, f64, 0));
    }
    if (c == "align_corners") {
        Value x = div(g, mul(g, y, last), sub(g, s.full_size, 1.0));
        return unless_single(g, s, x, scalar(g, f64, 0));
    }
    if (c == "half_pixel_symmetric") {
        Value excess = sub(g, scalar(g, f64, 1), div(g, s.out_size, s.full_size));
        return add(g, half_pixel(g, s, y), mul(g, mul(g, s.in_size, 0.5), excess));
    }
    require(c == "tf_crop_and_resize", ErrorCode::InvalidModel, "resize coordinates '", c,
            "' are not known");
    auto edge = [&](size_t i) {
        return roi.valid() ? element(g, roi, i) : scalar(g, f64, a.roi[i]);
    };
    Value from = edge(s.entry);
    Value extent = sub(g, edge(a.axes.size() + s.entry), from);
    Value x = div(g, mul(g, mul(g, y, extent), last), sub(g, s.full_size, 1.0));
    x = unless_single(g, s, x, mul(g, last, mul(g, extent, 0.5)));
    return add(g, x, mul(g, last, from));
}

// Integral coordinates as valid indices: i64, clamped to [0, in).
Value as_indices(Graph& g, const Axis& s, Value x) {
    Value inside = minimum(g, maximum(g, x, 0.0), sub(g, s.in_size, 1.0));
    return cast(g, inside, DType::I64);
}

Value nearest_axis(Graph& g, const Resize& a, const Axis& s, Value x, Value at) {
    const std::string& n = a.nearest;
    Value index;
    if (n == "round_prefer_floor") {
        index = unary(g, ExprOp::Ceil, sub(g, at, 0.5));
    } else if (n == "round_prefer_ceil") {
        index = unary(g, ExprOp::Floor, add(g, at, 0.5));
    } else {
        require(n == "floor" || n == "ceil", ErrorCode::InvalidModel, "resize nearest mode '", n,
                "' is not known");
        index = unary(g, n == "floor" ? ExprOp::Floor : ExprOp::Ceil, at);
    }
    return gather(g, x, as_indices(g, s, index), s.axis);
}

// max(0, 1 - |d|), or the cubic convolution kernel with parameter c.
Value kernel(Graph& g, const Resize& a, Value d) {
    d = unary(g, ExprOp::Abs, d);
    if (a.mode == "linear") {
        return maximum(g, sub(g, scalar(g, f64, 1), d), 0.0);
    }
    double c = a.cubic;
    auto polynomial = [&](double p3, double p2, double p1, double p0) {
        Value v = add(g, mul(g, d, p3), p2);
        return add(g, mul(g, add(g, mul(g, v, d), p1), d), p0);
    };
    Value inner = polynomial(c + 2, -(c + 3), 0, 1);
    Value outer = polynomial(c, -5 * c, 8 * c, -4 * c);
    Value one = scalar(g, f64, 1);
    Value two = scalar(g, f64, 2);
    Value beyond = select(g, less(g, d, two), outer, scalar(g, f64, 0));
    return select(g, less(g, one, d), beyond, inner);
}

// The number of neighbours that contribute to one result position.
Dim tap_count(const Resize& a, const Axis& s) {
    int64_t reach = a.mode == "linear" ? 1 : 2;
    if (!a.antialias) {
        return 2 * reach;
    }
    double scale = a.scales.empty() ? 0 : a.scales[s.entry];
    if (scale > 0) {
        require(scale >= 0x1p-31, ErrorCode::InvalidModel, "resize scale ", scale, " is too small");
        auto wide =
            static_cast<int64_t>(std::ceil(static_cast<double>(reach) / std::min(scale, 1.0)));
        return 2 * wide;
    }
    return Dim(2) * max(ceil_div(Dim(reach) * s.in, s.out), reach);
}

Value weighted_axis(Graph& g, const Resize& a, const Axis& s, Value x, Value at) {
    Dim taps = tap_count(a, s);
    Value floor = unary(g, ExprOp::Floor, at);
    Value fraction = unsqueeze(g, sub(g, at, floor), {1});
    // Neighbour j is at floor + 1 - taps / 2 + j.
    Value first = dim_scalar(g, Dim(1) - floor_div(taps, 2), f64);
    Value offset = add(g, iota(g, f64, {1, taps}, 1), first);
    Value place = add(g, unsqueeze(g, floor, {1}), offset);
    Value distance = sub(g, offset, fraction);
    if (a.antialias) {
        distance = mul(g, distance, minimum(g, s.scale, 1.0));
    }
    Value weight = kernel(g, a, distance);
    if (a.exclude_outside) {
        Value zero = scalar(g, f64, 0);
        weight = select(g, less(g, place, zero), zero, weight);
        weight = select(g, less(g, place, s.in_size), weight, zero);
    }
    if (a.exclude_outside || a.antialias) {
        weight = div(g, weight, reduce_sum(g, weight, {1}, true));
    }
    DType t = g.type(x).dtype;
    Value neighbours = gather(g, x, as_indices(g, s, place), s.axis);
    Dims shape = {s.out, taps};
    shape.resize(static_cast<size_t>(g.type(neighbours).rank() - s.axis), Dim(1));
    Value w = reshape(g, cast(g, weight, t), shape);
    return reduce_sum(g, mul(g, neighbours, w), {s.axis + 1});
}

// Positions whose coordinate lies outside the input get the extrapolation value.
Value extrapolated(Graph& g, const Resize& a, const Axis& s, Value x, Value at) {
    Value outside =
        binary(g, ExprOp::Or, less(g, at, scalar(g, f64, 0)), less(g, sub(g, s.in_size, 1.0), at));
    Dims shape(static_cast<size_t>(g.type(x).rank() - s.axis), Dim(1));
    shape[0] = s.out;
    Value fill = scalar(g, g.type(x).dtype, a.extrapolation);
    return select(g, reshape(g, outside, shape), fill, x);
}

void check_resize(const Resize& a, const Type& x, bool roi_given) {
    require(a.mode == "nearest" || a.mode == "linear" || a.mode == "cubic", ErrorCode::InvalidModel,
            "resize mode '", a.mode, "' is not known");
    size_t n = a.axes.size();
    require(a.sizes.size() == n && (a.scales.empty() || a.scales.size() == n),
            ErrorCode::InvalidModel, "resize of ", n, " axes: got ", a.sizes.size(), " sizes and ",
            a.scales.size(), " scales");
    require(a.coordinates != "tf_crop_and_resize" || roi_given || a.roi.size() == 2 * n,
            ErrorCode::InvalidModel, "resize of ", n, " axes: got ", a.roi.size(),
            " numbers of a region, expected ", 2 * n);
    for (int64_t axis : a.axes) {
        require(axis >= 0 && axis < x.rank(), ErrorCode::InvalidModel, "resize of ", x,
                " along axis ", axis, ", which it does not have");
    }
}

// Whether the nearest neighbour of y is floor(y / scale) for every y when the scale is an integer.
bool rounds_down(const Resize& a) {
    const std::string& c = a.coordinates;
    const std::string& n = a.nearest;
    // Centres: (y + 0.5) / scale - 0.5 is less than a half away from floor(y / scale).
    bool centred = c == "half_pixel" || c == "half_pixel_symmetric" || c == "pytorch_half_pixel";
    return (centred && (n == "round_prefer_floor" || n == "round_prefer_ceil")) ||
           (n == "floor" && (c == "asymmetric" || c == "tf_half_pixel_for_nn"));
}

Value repeat(Graph& g, const Resize& a, const std::vector<int64_t>& times, Value x) {
    Dims whole = g.type(x).dims;
    std::vector<int64_t> of_axis(whole.size(), 1);
    for (size_t i = 0; i < times.size(); ++i) {
        auto axis = static_cast<size_t>(a.axes[i]);
        of_axis[axis] = times[i];
        whole[axis] = a.sizes[i];
    }
    Dims single;
    Dims repeated;
    for (size_t i = 0; i < whole.size(); ++i) {
        single.push_back(g.type(x).dims[i]);
        repeated.push_back(single.back());
        if (of_axis[i] > 1) {
            single.emplace_back(1);
            repeated.emplace_back(of_axis[i]);
        }
    }
    return reshape(g, broadcast_to(g, reshape(g, x, single), repeated), whole);
}

Values expand_resize(Graph& g, const Resize& a, std::span<const Value> in) {
    require(!in.empty() && in.size() <= 3, ErrorCode::InvalidModel,
            "resize takes 1 to 3 inputs, got ", in.size());
    const DType t = g.type(in[0]).dtype;
    check_resize(a, g.type(in[0]), in.size() > 2);
    Value scales = in.size() > 1 ? in[1] : Value{};
    Value roi = in.size() > 2 ? in[2] : Value{};
    bool nearest = a.mode == "nearest";
    Value x = in[0];
    if (std::vector<int64_t> times = repeats(a, g.type(x)); in.size() == 1 && !times.empty()) {
        return {repeat(g, a, times, x)};
    }
    if (!nearest) {
        x = cast(g, x, t == f64 ? f64 : DType::F32);
    }
    for (size_t i = 0; i < a.axes.size(); ++i) {
        Axis s = axis_of(g, a, i, x, scales);
        Value at = coordinates(g, a, s, roi);
        x = nearest ? nearest_axis(g, a, s, x, at) : weighted_axis(g, a, s, x, at);
        if (a.coordinates == "tf_crop_and_resize") {
            x = extrapolated(g, a, s, x, at);
        }
    }
    if (is_integer(t) && !nearest) {
        x = unary(g, ExprOp::Round, x);
        x = is_signed(t) ? x : maximum(g, x, 0.0); // a cast saturates above and wraps below 0
    }
    return {cast(g, x, t, !is_float(t))};
}

} // namespace

std::vector<int64_t> repeats(const Resize& a, const Type& x) {
    constexpr int64_t most = int64_t{1} << 20;
    std::vector<int64_t> times;
    std::vector<int64_t> axes = a.axes;
    std::sort(axes.begin(), axes.end());
    bool once = std::adjacent_find(axes.begin(), axes.end()) == axes.end();
    if (a.mode != "nearest" || !once || !rounds_down(a)) {
        return {};
    }
    for (size_t i = 0; i < a.axes.size(); ++i) {
        const Dim& from = x.dims[static_cast<size_t>(a.axes[i])];
        double scale = a.scales.empty() ? 0 : a.scales[i];
        int64_t n = 1;
        if (scale > 0) {
            bool whole = scale >= 1 && scale <= most && std::floor(scale) == scale;
            n = whole ? static_cast<int64_t>(scale) : 0;
        } else if (from.is_const() && a.sizes[i].is_const() && from.value() > 0) {
            n = a.sizes[i].value() / from.value();
        }
        if (n < 1 || n > most || !(from * Dim(n) == a.sizes[i])) {
            return {};
        }
        times.push_back(n);
    }
    return times;
}

Value resize(Graph& g, Resize a, Value x, Value scales, Value roi) {
    if (a.axes.empty()) {
        return x;
    }
    Values in = {x};
    for (Value v : {scales, roi}) {
        if (v.valid()) {
            in.push_back(v);
        }
    }
    return g.add1(resize_def, std::move(a), in);
}

const OpDef resize_def = composite<Resize>(
    "resize", {Rounding::Smooth, InHalf::Narrow, like_result},
    [](Graph& g, const Resize& a, std::span<const Value> in) { return expand_resize(g, a, in); });

} // namespace ingot::ops

namespace ingot {

extern const OpTable resize_ops;
static const OpDef* const list[] = {&ops::resize_def};
const OpTable resize_ops = list;

} // namespace ingot
