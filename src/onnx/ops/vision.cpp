// SPDX-License-Identifier: Apache-2.0
// Sampling at computed coordinates and regions: GridSample, AffineGrid, RoiAlign, MaxRoiPool,
// NonMaxSuppression.
#include "base/error.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"
#include "ops/grid_sample.h"
#include "ops/support/sampling.h"

#include <array>
#include <limits>

namespace ingot::onnx {

namespace {

// --- GridSample

Values grid_sample(NodeContext& c) {
    ops::GridSample a;
    a.mode = c.s("mode", "linear");
    a.padding = c.s("padding_mode", "zeros");
    a.align_corners = c.i("align_corners", 0) != 0;
    a.mode = a.mode == "bilinear" ? "linear" : a.mode == "bicubic" ? "cubic" : a.mode;
    c.ensure(a.mode == "linear" || a.mode == "nearest" || a.mode == "cubic",
             "attribute 'mode' is '", a.mode, "', expected linear, nearest or cubic");
    c.ensure(a.padding == "zeros" || a.padding == "border" || a.padding == "reflection",
             "attribute 'padding_mode' is '", a.padding, "', expected zeros, border or reflection");
    const Dims x = c.type(0).dims;
    const Dims grid = c.type(1).dims;
    c.ensure(
        x.size() >= 3 && grid.size() == x.size() &&
            (!grid.back().is_const() || grid.back().is_const(static_cast<int64_t>(x.size() - 2))),
        "inputs are ", c.type(0), " and ", c.type(1),
        ", expected [N,C,spatial...] and [N,positions...,number of spatial axes]");
    return {ops::grid_sample(c.g, std::move(a), c.in(0), c.in(1))};
}

// --- AffineGrid

Values affine_grid(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Dims size = ops::dims_from(g, c.in(1));
    size_t n = size.size() - 2;
    c.ensure(size.size() == 4 || size.size() == 5, "size has ", size.size(),
             " entries, expected 4 or 5");
    bool align = c.i("align_corners", 0) != 0;
    DType stored = c.dtype(0);
    DType t = stored == DType::F64 ? DType::F64 : DType::F32;
    Dims points(size.begin() + 2, size.end());
    Values coordinates; // x first, then y, ..., then 1
    Dims column = points;
    column.emplace_back(1);
    for (size_t i = n; i-- > 0;) {
        Dims along(n, Dim(1));
        along[i] = points[i];
        Value p = ops::iota(g, t, along, static_cast<int64_t>(i));
        Value count = ops::dim_scalar(g, align ? points[i] - Dim(1) : points[i], t);
        p = align ? ops::mul(g, p, 2.0) : ops::add(g, ops::mul(g, p, 2.0), 1.0);
        p = ops::sub(g, ops::div(g, p, count), 1.0);
        coordinates.push_back(ops::unsqueeze(g, ops::broadcast_to(g, p, points), {-1}));
    }
    coordinates.push_back(ops::full(g, t, column, 1));
    Value homogeneous = ops::concat(g, coordinates, -1);
    Value flat = ops::reshape(g, homogeneous, {product(points), static_cast<int64_t>(n + 1)});
    // [N, n, n+1] . [P, n+1] -> [N, n, P] -> [N, P, n]
    Value y = ops::dot(g, Dot{{}, {}, {2}, {1}, t}, ops::cast(g, c.in(0), t), flat);
    y = ops::permute(g, y, {0, 2, 1});
    Dims out = {size[0]};
    out.insert(out.end(), points.begin(), points.end());
    out.emplace_back(static_cast<int64_t>(n));
    return {ops::cast(g, ops::reshape(g, y, out), stored)};
}

// --- RoiAlign

// Along one axis: the position of each bin's samples, and the number of samples that count.
struct RoiAxis {
    Value start; // f32 [R]
    Value bin;   // f32 [R]: size of one bin
    Value used;  // f32 [R]: samples in a bin
    int64_t bins = 1;
    Dim samples; // the largest of `used`
};

Value roi_edge(NodeContext& c, int64_t column, double shift) {
    ingot::Graph& g = c.g;
    Value v = ops::widen(g, ops::squeeze(g, ops::slice(g, c.in(1), 1, column, 1), {1}));
    return ops::sub(g, ops::mul(g, v, c.f("spatial_scale", 1)), shift);
}

RoiAxis roi_axis(NodeContext& c, int64_t column, int64_t bins, bool half_pixel) {
    ingot::Graph& g = c.g;
    RoiAxis a;
    a.bins = bins;
    a.start = roi_edge(c, column, half_pixel ? 0.5 : 0);
    Value extent = ops::sub(g, roi_edge(c, column + 2, half_pixel ? 0.5 : 0), a.start);
    extent = half_pixel ? extent : ops::maximum(g, extent, 1.0);
    a.bin = ops::div(g, extent, static_cast<double>(bins));
    int64_t ratio = c.i("sampling_ratio", 0);
    if (ratio > 0) {
        a.samples = ratio;
        a.used = ops::full(g, g.type(a.bin).dtype, ops::dims(g, a.bin), static_cast<double>(ratio));
        return a;
    }
    a.used = ops::maximum(g, ops::unary(g, ExprOp::Ceil, a.bin), 0.0);
    Value most = ops::maximum(g, ops::reduce_max(g, a.used, {0}), 1.0);
    Dims bound = ops::dims_from(g, ops::reshape(g, ops::cast(g, most, DType::I64), {1}));
    a.samples = bound[0];
    return a;
}

// Taps [R, bins, samples], with the axes `ones` of size 1 added; counts is 1 for samples that
// count, else 0.
struct RoiTaps {
    ops::Taps taps;
    Value counts;
};

RoiTaps roi_taps(ingot::Graph& g, const RoiAxis& a, const Dim& size,
                 const std::vector<int64_t>& ones) {
    DType t = g.type(a.bin).dtype;
    auto column = [&](Value v) { return ops::unsqueeze(g, v, {1, 2}); };
    Value bin = ops::iota(g, t, {1, a.bins, 1}, 1);
    Value sample = ops::iota(g, t, {1, 1, a.samples}, 2);
    Value part = ops::div(g, ops::add(g, sample, 0.5), ops::maximum(g, column(a.used), 1.0));
    Value x = ops::add(g, column(a.start), ops::mul(g, ops::add(g, bin, part), column(a.bin)));
    Value zero = ops::scalar(g, t, 0);
    Value one = ops::scalar(g, t, 1);
    Value outside = ops::binary(g, ExprOp::Or, ops::less(g, x, ops::scalar(g, t, -1)),
                                ops::less(g, ops::dim_scalar(g, size, t), x));
    Value inside = ops::clamp_index(g, x, size);
    Value low = ops::unary(g, ExprOp::Floor, inside);
    Value fraction = ops::sub(g, inside, low);
    Value counts = ops::select(g, ops::less(g, sample, column(a.used)), one, zero);
    auto spread = [&](Value v) { return ops::unsqueeze(g, v, ones); };
    RoiTaps r;
    r.taps.push_back(
        {spread(low), spread(ops::select(g, outside, zero, ops::sub(g, one, fraction)))});
    r.taps.push_back({spread(ops::clamp_index(g, ops::add(g, low, 1.0), size)),
                      spread(ops::select(g, outside, zero, fraction))});
    r.counts = spread(counts);
    return r;
}

Values roi_align(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::string transform = c.opset >= 16 ? "half_pixel" : "output_half_pixel";
    bool half_pixel = c.s("coordinate_transformation_mode", transform) == "half_pixel";
    std::string mode = c.s("mode", "avg");
    c.ensure(mode == "avg" || mode == "max", "attribute 'mode' is '", mode,
             "', expected avg or max");
    const Dims x = c.type(0).dims;
    c.ensure(x.size() == 4 && c.rank(1) == 2, "inputs are ", c.type(0), " and ", c.type(1),
             ", expected [N,C,H,W] and [regions,4]");
    Dims sizes(x.begin() + 2, x.end());
    RoiAxis rows = roi_axis(c, 1, positive(c, "output_height", 1), half_pixel);
    RoiAxis columns = roi_axis(c, 0, positive(c, "output_width", 1), half_pixel);
    // All indices are [R, rows, row samples, columns, column samples].
    RoiTaps down = roi_taps(g, rows, sizes[0], {3, 4});
    RoiTaps across = roi_taps(g, columns, sizes[1], {1, 2});
    Value image = ops::reshape(g, ops::cast(g, c.in(2), DType::I64), {c.dim(1, 0), 1, 1, 1, 1});
    Value base = ops::mul(g, image, ops::dim_scalar(g, product(sizes)));
    std::array axes = {down.taps, across.taps};
    Value data = ops::point_rows(g, ops::widen(g, c.in(0)), 1);
    std::vector<Value> parts =
        ops::neighbours(g, data, base, sizes, axes); // [R,rows,s,columns,s,C]
    Value counts = ops::unsqueeze(g, ops::mul(g, down.counts, across.counts), {-1});
    Value y;
    if (mode == "avg") {
        y = ops::reduce_sum(g, ops::mul(g, ops::sum_of(g, parts), counts), {2, 4});
        Value total = ops::maximum(g, ops::mul(g, rows.used, columns.used), 1.0);
        y = ops::div(g, y, ops::unsqueeze(g, total, {1, 2, 3}));
    } else { // the largest weighted neighbour: the operator's historical behaviour
        y = parts[0];
        for (Value p : parts) {
            y = ops::maximum(g, y, p);
        }
        Value none = ops::scalar(g, g.type(y).dtype, -std::numeric_limits<double>::infinity());
        Value counted = ops::less(g, ops::scalar(g, g.type(counts).dtype, 0), counts);
        y = ops::reduce_max(g, ops::select(g, counted, y, none), {2, 4});
        y = ops::select(g, ops::equal(g, y, none), ops::scalar(g, g.type(y).dtype, 0), y);
    }
    return {ops::cast(g, ops::permute(g, y, {0, 3, 1, 2}), c.dtype(0))};
}

// --- MaxRoiPool

// bool [R, bins, size]: the elements of an axis that each bin covers.
Value covered(NodeContext& c, int64_t column, int64_t bins, const Dim& size) {
    ingot::Graph& g = c.g;
    DType t = DType::F32;
    auto edge = [&](int64_t k) {
        Value v = ops::cast(g, ops::squeeze(g, ops::slice(g, c.in(1), 1, k, 1), {1}), t);
        v = ops::mul(g, v, c.f("spatial_scale", 1));
        return ops::unary(g, ExprOp::Floor, ops::add(g, v, 0.5));
    };
    Value start = edge(column);
    Value extent = ops::maximum(g, ops::add(g, ops::sub(g, edge(column + 2), start), 1.0), 1.0);
    Value width = ops::unsqueeze(g, ops::div(g, extent, static_cast<double>(bins)), {1});
    Value bin = ops::iota(g, t, {1, bins}, 1);
    start = ops::unsqueeze(g, start, {1});
    Value from = ops::unary(g, ExprOp::Floor, ops::mul(g, bin, width));
    Value to = ops::unary(g, ExprOp::Ceil, ops::mul(g, ops::add(g, bin, 1.0), width));
    from = ops::unsqueeze(g, ops::add(g, from, start), {2});
    to = ops::unsqueeze(g, ops::add(g, to, start), {2});
    Value at = ops::iota(g, t, {1, 1, size}, 2);
    return ops::binary(g, ExprOp::And, ops::logical_not(g, ops::less(g, at, from)),
                       ops::less(g, at, to));
}

Values max_roi_pool(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::vector<int64_t> shape = c.ints("pooled_shape");
    c.ensure(shape.size() == 2 && shape[0] > 0 && shape[1] > 0 && c.rank(0) == 4 && c.rank(1) == 2,
             "inputs are ", c.type(0), " and ", c.type(1), " and pooled_shape ", shape,
             ", expected [N,C,H,W], [regions,5] and 2 sizes");
    const Dims x = c.type(0).dims;
    Value image = ops::squeeze(g, ops::slice(g, c.in(1), 1, 0, 1), {1});
    Value y = ops::gather(g, c.in(0), ops::cast(g, image, DType::I64), 0); // [R,C,H,W]
    Value none = ops::scalar(g, c.dtype(0), -std::numeric_limits<double>::infinity());
    Value columns = ops::unsqueeze(g, covered(c, 1, shape[1], x[3]), {1, 2}); // [R,1,1,PW,W]
    y = ops::select(g, columns, ops::unsqueeze(g, y, {3}), none);
    y = ops::reduce_max(g, y, {4});                                        // [R,C,H,PW]
    Value rows = ops::unsqueeze(g, covered(c, 2, shape[0], x[2]), {1, 4}); // [R,1,PH,H,1]
    y = ops::select(g, rows, ops::unsqueeze(g, y, {2}), none);
    y = ops::reduce_max(g, y, {3}); // [R,C,PH,PW]
    return {ops::select(g, ops::equal(g, y, none), ops::scalar(g, c.dtype(0), 0), y)};
}

// --- NonMaxSuppression

Values nms(NodeContext& c) {
    ingot::Graph& g = c.g;
    Value most = c.has(2) ? to_scalar(g, to_i64(g, c.in(2))) : ops::scalar_i64(g, DType::I64, 0);
    Value iou = c.has(3) ? to_scalar(g, c.in(3)) : ops::scalar(g, DType::F32, 0);
    Value score = c.has(4) ? to_scalar(g, c.in(4))
                           : ops::scalar(g, DType::F32, -std::numeric_limits<double>::infinity());
    Nms a{c.i("center_point_box", 0) != 0, g.fresh_symbol()};
    return {g.add1(nms_def, a, {c.in(0), c.in(1), most, iou, score})};
}

const ImporterRow rows[] = {
    {"", "GridSample", 16, grid_sample, no_shapes},
    {"com.microsoft", "GridSample", 1, grid_sample, no_shapes},
    {"", "AffineGrid", 20, affine_grid, no_shapes},
    {"", "RoiAlign", 10, roi_align, no_shapes},
    {"", "MaxRoiPool", 1, max_roi_pool, no_shapes},
    {"", "NonMaxSuppression", 10, nms, no_shapes},
};

} // namespace

extern const ImporterTable vision_importers;
const ImporterTable vision_importers = rows;

} // namespace ingot::onnx
