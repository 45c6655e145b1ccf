// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft on images: the norms of Stable Diffusion, pooling of bytes with
// channels last and under a mask, and CropAndResize.
#include "base/error.h"
#include "onnx/ops/support/gates.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/pooling.h"
#include "ops/support/sampling.h"

#include <array>
#include <limits>

namespace ingot::onnx {

namespace {

// --- GroupNorm, SkipGroupNorm

bool is_channels_last(const NodeContext& c) {
    c.ensure(c.rank(0) >= 3, "input 0 is ", c.type(0), ", expected [N,spatial...,C] or [N,C,...]");
    return c.i("channels_last", 1) != 0;
}

// x lies as the node's input does; attribute activation is 0, or 1 for SiLU.
Value normalised(NodeContext& c, Value x) {
    ingot::Graph& g = c.g;
    int64_t activation = c.i("activation");
    c.ensure(activation == 0 || activation == 1, "attribute 'activation' is ", activation,
             ", expected 0 (none) or 1 (SiLU)");
    bool last = is_channels_last(c);
    ops::GroupNorm a{positive(c, "groups"), c.f("epsilon", 1e-5F)};
    Value y = ops::group_norm(g, a, last ? channels_first(g, x) : x, c.in(1), c.in(2));
    y = activation == 1 ? silu(g, y) : y;
    return last ? channels_last(g, y) : y;
}

Values group_norm(NodeContext& c) {
    return {normalised(c, c.in(0))};
}

// v [N,C] or [C] broadcasts to the node's input.
Value to_each_pixel(NodeContext& c, Value v, bool last) {
    std::vector<int64_t> axes;
    int64_t first = c.g.type(v).rank() - (last ? 1 : 0);
    for (int64_t i = 0; i < c.rank(0) - 2; ++i) {
        axes.push_back(first + i);
    }
    return ops::unsqueeze(c.g, v, axes);
}

// (x, gamma, beta, skip, [bias]) -> norm of the sum, the sum
Values skip_group_norm(NodeContext& c) {
    bool last = is_channels_last(c);
    c.ensure(c.rank(3) == 2 || c.rank(3) == c.rank(0), "skip is ", c.type(3),
             ", expected [N,C] or the rank of ", c.type(0));
    Value skip = c.rank(3) == 2 ? to_each_pixel(c, c.in(3), last) : c.in(3);
    Value sum = ops::add(c.g, c.in(0), skip);
    if (c.has(4)) {
        c.ensure(c.rank(4) == 1, "bias is ", c.type(4), ", expected [C]");
        sum = ops::add(c.g, sum, last ? c.in(4) : to_each_pixel(c, c.in(4), last));
    }
    return {normalised(c, sum), sum};
}

// --- pooling

Values nhwc_max_pool(NodeContext& c) {
    c.ensure(c.rank(0) >= 3, "input 0 is ", c.type(0), ", expected [N,spatial...,C]");
    Value x = channels_first(c.g, c.in(0));
    ops::Pool p = pool_attributes(c, spatial_dims(c.g.type(x)), "max");
    return {channels_last(c.g, ops::pool(c.g, p, x))};
}

// In each row of a window, the elements from the first masked one on are left out; the first
// element of a plane with two or more axes is never masked.
Values masked_max_pool(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Dims spatial = spatial_dims(c.type(0));
    c.ensure(c.rank(1) == c.rank(0), "the mask is ", c.type(1), ", expected rank ", c.rank(0));
    for (int64_t axis : {0, 1}) {
        const Dim& d = c.dim(1, axis);
        if (d.is_const() && !d.is_const(1)) {
            c.refuse(RefusalKind::Input, "the mask is ", c.type(1),
                     "; only one mask for all planes, [1,1,spatial...], is supported");
        }
    }
    ops::Pool p = pool_attributes(c, spatial, "max");
    Value counts = ops::binary(g, ExprOp::Eq, c.in(1), 0.0);
    counts = ops::reshape(g, ops::logical_not(g, counts), {product(spatial)});
    if (spatial.size() > 1) {
        Value first =
            ops::binary(g, ExprOp::Eq, ops::iota(g, DType::I64, {product(spatial)}, 0), 0.0);
        counts = ops::binary(g, ExprOp::Or, counts, first);
    }
    Dims plane = {1, 1};
    plane.insert(plane.end(), spatial.begin(), spatial.end());
    counts = ops::reshape(g, ops::cast(g, counts, DType::I32), plane);
    Value kept = pool_windows(g, p, counts, 1);
    int64_t last = g.type(kept).rank() - 1;
    kept = ops::scan(g, Scan{"min", last, false, false}, kept);
    double lowest = std::numeric_limits<float>::lowest();
    Value x = pool_windows(g, p, c.in(0), lowest);
    x = ops::select(g, ops::binary(g, ExprOp::Eq, kept, 0.0), ops::scalar(g, c.dtype(0), lowest),
                    x);
    return {ops::reduce_max(g, x, tap_axes(spatial.size()))};
}

// --- CropAndResize

// f32 or f64 [R,count]: places in an axis of `size` elements, from one edge of each box to the
// other, both given as fractions of the axis.
Value box_places(NodeContext& c, int64_t column, const Dim& count, const Dim& size) {
    ingot::Graph& g = c.g;
    auto edge = [&](int64_t k) {
        return ops::widen(g, ops::slice(g, c.in(1), 1, k, 1)); // [R,1]
    };
    Value from = edge(column);
    Value to = edge(column + 2);
    DType t = g.type(from).dtype;
    Value extent = ops::dim_scalar(g, size - Dim(1), t);
    Value middle = ops::mul(g, ops::mul(g, ops::add(g, from, to), 0.5), extent);
    if (count.is_const(1)) {
        return middle;
    }
    Value steps = ops::maximum(g, ops::dim_scalar(g, count - Dim(1), t), 1.0);
    Value step = ops::div(g, ops::mul(g, ops::sub(g, to, from), extent), steps);
    Value index = ops::iota(g, t, {1, count}, 1);
    Value inner = ops::add(g, ops::mul(g, from, extent), ops::mul(g, index, step));
    Value at_end = ops::equal(g, index, ops::dim_scalar(g, count - Dim(1), t));
    Value places = ops::select(g, at_end, ops::mul(g, to, extent), inner);
    if (count.is_const()) {
        return places;
    }
    Value single = ops::binary(g, ExprOp::Eq, ops::dim_scalar(g, count), 1.0);
    return ops::select(g, single, middle, places);
}

// The elements around `places`, or the nearest one; halves go up.
ops::Taps crop_taps(ingot::Graph& g, Value places, const Dim& size, bool nearest) {
    Value inside = ops::clamp_index(g, places, size);
    Value low = ops::unary(g, ExprOp::Floor, inside);
    Value high = ops::clamp_index(g, ops::add(g, low, 1.0), size);
    Value fraction = ops::sub(g, inside, low);
    if (nearest) {
        Value below = ops::binary(g, ExprOp::Lt, fraction, 0.5);
        return {{ops::select(g, below, low, high), Value{}}};
    }
    Value rest = ops::sub(g, ops::scalar(g, g.type(places).dtype, 1), fraction);
    return {{low, rest}, {high, fraction}};
}

Value outside(ingot::Graph& g, Value places, const Dim& size) {
    Value end = ops::dim_scalar(g, size - Dim(1), g.type(places).dtype);
    return ops::binary(g, ExprOp::Or, ops::binary(g, ExprOp::Lt, places, 0.0),
                       ops::less(g, end, places));
}

// (x [N,C,H,W], boxes [R,4] of y1, x1, y2, x2, images [R], crop size [2])
Values crop_and_resize(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::string mode = c.s("mode", "bilinear");
    c.ensure(mode == "bilinear" || mode == "nearest", "attribute 'mode' is '", mode,
             "', expected bilinear or nearest");
    c.ensure(c.rank(0) == 4 && c.rank(1) == 2, "inputs are ", c.type(0), " and ", c.type(1),
             ", expected [N,C,H,W] and [regions,4]");
    const Dims x = c.type(0).dims;
    const Dims crop = sizes_input(c, 3, 2);
    Dims sizes(x.begin() + 2, x.end());
    Value rows = ops::unsqueeze(g, box_places(c, 0, crop[0], sizes[0]), {2});    // [R,rows,1]
    Value columns = ops::unsqueeze(g, box_places(c, 1, crop[1], sizes[1]), {1}); // [R,1,columns]
    bool nearest = mode == "nearest";
    std::array axes = {crop_taps(g, rows, sizes[0], nearest),
                       crop_taps(g, columns, sizes[1], nearest)};
    Value image = ops::reshape(g, to_i64(g, c.in(2)), {c.dim(1, 0), 1, 1});
    Value base = ops::mul(g, image, ops::dim_scalar(g, product(sizes)));
    Value data = ops::point_rows(g, ops::widen(g, c.in(0)), 1);
    Value y = ops::sum_of(g, ops::neighbours(g, data, base, sizes, axes)); // [R,rows,columns,C]
    Value off =
        ops::binary(g, ExprOp::Or, outside(g, rows, sizes[0]), outside(g, columns, sizes[1]));
    Value fill = ops::scalar(g, g.type(y).dtype, c.f("extrapolation_value", 0));
    y = ops::select(g, ops::unsqueeze(g, off, {3}), fill, y);
    return {ops::cast(g, ops::permute(g, y, {0, 3, 1, 2}), c.dtype(0))};
}

const ImporterRow rows[] = {
    {"com.microsoft", "GroupNorm", 1, group_norm, no_shapes},
    {"com.microsoft", "SkipGroupNorm", 1, skip_group_norm, no_shapes},
    {"com.microsoft", "NhwcMaxPool", 1, nhwc_max_pool, no_shapes},
    {"com.microsoft", "MaxpoolWithMask", 1, masked_max_pool, no_shapes},
    {"com.microsoft", "CropAndResize", 1, crop_and_resize, shape_inputs({3})},
};

} // namespace

extern const ImporterTable contrib_images_importers;
const ImporterTable contrib_images_importers = rows;

} // namespace ingot::onnx
