// SPDX-License-Identifier: Apache-2.0
// Pooling: MaxPool with indices, AveragePool, LpPool, their global forms, MaxUnpool.
#include "base/error.h"
#include "onnx/ops/support/pooling.h"

#include <array>

namespace ingot::onnx {

ops::Pool pool_attributes(const NodeContext& c, const Dims& spatial, std::string fn) {
    Sliding s = sliding(c, spatial);
    bool ceil =
        c.i("ceil_mode", 0) != 0 && !s.auto_pad.starts_with("SAME") && s.auto_pad != "VALID";
    ops::Pool p;
    p.fn = std::move(fn);
    p.sizes = s.kernel;
    p.strides = s.strides;
    p.dilations = s.dilations;
    p.low = s.low;
    p.high = s.high;
    p.extra.assign(s.count(), Dim(0));
    for (size_t i = 0; ceil && i < s.count(); ++i) {
        Dim padded = spatial[i] + s.low[i] + s.high[i];
        Dim span = s.span(i);
        Dim positions = ceil_div(padded - span, s.strides[i]) + Dim(1);
        bool may_start_in_padding =
            !s.high[i].is_const() || s.high[i].value() + s.strides[i] > s.span(i);
        if (may_start_in_padding) { // such windows are excluded
            positions = min(positions, ceil_div(spatial[i] + s.low[i], s.strides[i]));
        } else if (!padded.is_const()) {
            p.extra[i] = s.strides[i] - 1; // windows do not reach unneeded padding
            continue;
        }
        p.extra[i] = max((positions - Dim(1)) * Dim(s.strides[i]) + span - padded, 0);
    }
    p.count_padding = c.i("count_include_pad", 0) != 0;
    return p;
}

Value pool_windows(ingot::Graph& g, const ops::Pool& p, Value x, double padding) {
    Dims low(2, Dim(0));
    Dims high(2, Dim(0));
    Window w;
    for (size_t i = 0; i < p.sizes.size(); ++i) {
        low.push_back(p.low[i]);
        high.push_back(p.high[i] + p.extra[i]);
        w.axes.push_back(static_cast<int64_t>(i + 2));
    }
    w.sizes = p.sizes;
    w.strides = p.strides;
    w.dilations = p.dilations;
    return ops::window(g, ops::pad(g, x, low, high, padding), w);
}

std::vector<int64_t> tap_axes(size_t n) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < n; ++i) {
        axes.push_back(static_cast<int64_t>(2 + n + i));
    }
    return axes;
}

namespace {

// The index of each spatial element in the flattened tensor, [1,1,spatial...], with the last axis
// fastest or, if column_major, the first.
Value spatial_index(ingot::Graph& g, const Dims& spatial, bool column_major) {
    size_t n = spatial.size();
    if (!column_major) {
        Dims shape = {1, 1};
        shape.insert(shape.end(), spatial.begin(), spatial.end());
        return ops::reshape(g, ops::iota(g, DType::I64, {product(spatial)}, 0), shape);
    }
    Dims reversed(spatial.rbegin(), spatial.rend());
    std::vector<int64_t> perm;
    for (size_t i = n; i-- > 0;) {
        perm.push_back(static_cast<int64_t>(i));
    }
    Value v = ops::reshape(g, ops::iota(g, DType::I64, {product(spatial)}, 0), reversed);
    return ops::unsqueeze(g, ops::permute(g, v, perm), {0, 1});
}

// The index of each window's maximum in the whole input; padding is never chosen.
Value max_indices(NodeContext& c, const ops::Pool& p, Value y) {
    ingot::Graph& g = c.g;
    const Dims d = c.type(0).dims;
    const Dims spatial = spatial_dims(c.type(0));
    Value index = spatial_index(g, spatial, c.i("storage_order", 0) != 0);
    index = pool_windows(g, p, index, -1);
    Value x = pool_windows(g, p, c.in(0), 0);
    const Dims out = ops::dims(g, y);
    // Taps equal to the maximum keep their number; the smallest number is the first of them.
    Dims flat = out;
    flat.push_back(1);
    for (int64_t k : p.sizes) {
        flat.back() = flat.back() * Dim(k);
    }
    Value is_max = ops::equal(g, ops::reshape(g, x, flat), ops::unsqueeze(g, y, {-1}));
    Dims index_flat = flat;
    index_flat[0] = 1;
    index_flat[1] = 1;
    index = ops::reshape(g, index, index_flat);
    Value inside = ops::logical_not(g, ops::less(g, index, ops::scalar(g, DType::I64, 0)));
    Value chosen = ops::cast(g, ops::binary(g, ExprOp::And, is_max, inside), DType::I32);
    Value tap = ops::arg_reduce(g, "max", chosen, static_cast<int64_t>(flat.size()) - 1);
    Dims along(flat.size(), Dim(1));
    along.back() = flat.back();
    Value hit =
        ops::equal(g, ops::iota(g, DType::I64, along, static_cast<int64_t>(flat.size()) - 1),
                   ops::unsqueeze(g, tap, {-1}));
    Value place = ops::select(g, hit, index, ops::scalar(g, DType::I64, 0));
    place = ops::reduce_max(g, place, {-1});
    Dims planes(out.size(), Dim(1));
    planes[0] = d[0];
    planes[1] = d[1];
    Value plane = ops::reshape(g, ops::iota(g, DType::I64, {d[0] * d[1]}, 0), planes);
    return ops::add(g, place, ops::mul(g, plane, ops::dim_scalar(g, product(spatial))));
}

Values max_pool(NodeContext& c) {
    ops::Pool p = pool_attributes(c, spatial_dims(c.type(0)), "max");
    Value y = ops::pool(c.g, p, c.in(0));
    return {y, c.wants(1) ? max_indices(c, p, y) : Value{}};
}

Values average_pool(NodeContext& c) {
    return {ops::pool(c.g, pool_attributes(c, spatial_dims(c.type(0)), "average"), c.in(0))};
}

// |x|^p, and the p-th root.
Value raised(ingot::Graph& g, Value x, int64_t p) {
    if (p == 2) {
        return ops::mul(g, x, x);
    }
    x = ops::unary(g, ExprOp::Abs, x);
    return p == 1 ? x : ops::binary(g, ExprOp::Pow, x, static_cast<double>(p));
}

Value rooted(ingot::Graph& g, Value x, int64_t p) {
    if (p == 2) {
        return ops::sqrt(g, x);
    }
    return p == 1 ? x : ops::binary(g, ExprOp::Pow, x, 1.0 / static_cast<double>(p));
}

Values lp_pool(NodeContext& c) {
    int64_t p = c.i("p", 2);
    c.ensure(p >= 1, "attribute 'p' is ", p, ", expected a positive number");
    ops::Pool a = pool_attributes(c, spatial_dims(c.type(0)), "average");
    Value x = raised(c.g, ops::widen(c.g, c.in(0)), p);
    Value sum = ops::reduce_sum(c.g, pool_windows(c.g, a, x, 0), tap_axes(a.sizes.size()));
    return {ops::cast(c.g, rooted(c.g, sum, p), c.dtype(0))};
}

std::vector<int64_t> all_spatial(const NodeContext& c) {
    c.ensure(c.rank(0) >= 2, "input is ", c.type(0), ", expected [N,C,spatial...]");
    std::vector<int64_t> axes;
    for (int64_t i = 2; i < c.rank(0); ++i) {
        axes.push_back(i);
    }
    return axes;
}

Values global_average(NodeContext& c) {
    return {ops::reduce_mean(c.g, c.in(0), all_spatial(c), true)};
}

Values global_max(NodeContext& c) {
    return {ops::reduce_max(c.g, c.in(0), all_spatial(c), true)};
}

Values global_lp(NodeContext& c) {
    int64_t p = c.i("p", 2);
    c.ensure(p >= 1, "attribute 'p' is ", p, ", expected a positive number");
    Value x = raised(c.g, ops::widen(c.g, c.in(0)), p);
    Value sum = ops::reduce_sum(c.g, x, all_spatial(c), true);
    return {ops::cast(c.g, rooted(c.g, sum, p), c.dtype(0))};
}

// Scatters values by their indices into a tensor of the size before pooling; a larger output_shape
// appends zeros.
Values max_unpool(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Dims d = c.type(0).dims;
    Sliding s = sliding(c, spatial_dims(c.type(0)));
    Dims out = {d[0], d[1]};
    for (size_t i = 0; i < s.count(); ++i) {
        out.push_back((d[i + 2] - Dim(1)) * Dim(s.strides[i]) + Dim(s.kernel[i]) - s.low[i] -
                      s.high[i]);
    }
    Value y = ops::full(g, c.dtype(0), {product(out)}, 0);
    y = ops::scatter(g, y, ops::flatten(g, c.in(1)), ops::flatten(g, c.in(0)), "none");
    y = ops::reshape(g, y, out);
    if (!c.has(2)) {
        return {y};
    }
    const Dims wanted = ops::dims_from(g, c.in(2));
    c.ensure(wanted.size() == out.size(), "output_shape has ", wanted.size(), " entries, expected ",
             out.size());
    Dims more;
    for (size_t i = 0; i < out.size(); ++i) {
        more.push_back(max(wanted[i] - out[i], 0));
    }
    y = ops::pad(g, y, Dims(out.size(), Dim(0)), more);
    for (size_t i = 0; i < out.size(); ++i) {
        y = ops::slice(g, y, static_cast<int64_t>(i), 0, wanted[i]);
    }
    return {y};
}

const ImporterRow rows[] = {
    {"", "MaxPool", 1, max_pool, no_shapes},
    {"", "AveragePool", 1, average_pool, no_shapes},
    {"", "LpPool", 2, lp_pool, no_shapes},
    {"", "GlobalAveragePool", 1, global_average, no_shapes},
    {"", "GlobalMaxPool", 1, global_max, no_shapes},
    {"", "GlobalLpPool", 2, global_lp, no_shapes},
    {"", "MaxUnpool", 9, max_unpool, no_shapes},
};

} // namespace

extern const ImporterTable pool_importers;
const ImporterTable pool_importers = rows;

} // namespace ingot::onnx
