// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/quantized.h"

#include "base/error.h"

#include <algorithm>
#include <numeric>

namespace ingot::onnx {

bool is_known_zero(const ingot::Graph& g, Value v) {
    if (!v.valid()) {
        return true;
    }
    const ingot::Tensor* t = g.constant(v);
    for (int64_t i = 0; t != nullptr && i < t->count(); ++i) {
        if (t->get_i64(i) != 0) {
            return false;
        }
    }
    return t != nullptr;
}

namespace {

bool single(const ingot::Graph& g, Value v) {
    return product(ops::dims(g, v)).is_const(1);
}

Value wide(ingot::Graph& g, Value v) {
    return ops::cast(g, v, DType::I32);
}

std::vector<int64_t> axes_after(int64_t first, int rank) {
    std::vector<int64_t> axes(static_cast<size_t>(rank - first));
    std::iota(axes.begin(), axes.end(), first);
    return axes;
}

// v [O] as [O,1,...] of the given rank; a scalar is unchanged.
Value leading(ingot::Graph& g, Value v, int rank) {
    if (single(g, v)) {
        return ops::reshape(g, v, {});
    }
    Dims d(static_cast<size_t>(rank), Dim(1));
    d[0] = ops::dims(g, v)[0];
    return ops::reshape(g, v, d);
}

// Zero points of rows: [M] becomes [M,1]; other shapes already broadcast.
Value row_zero(ingot::Graph& g, Value zero) {
    zero = wide(g, zero);
    if (single(g, zero)) {
        return ops::reshape(g, zero, {});
    }
    return g.type(zero).rank() == 1 ? ops::unsqueeze(g, zero, {1}) : zero;
}

Value column_zero(ingot::Graph& g, Value zero) {
    zero = wide(g, zero);
    return single(g, zero) ? ops::reshape(g, zero, {}) : zero;
}

/// Ones of 8 bits: a product with them sums bytes and, unlike a sum of widened bytes, is folded for
/// constants.
Value ones(ingot::Graph& g, const Shape& shape) {
    ingot::Tensor t = ingot::Tensor::empty(DType::I8, shape);
    std::fill_n(t.mutable_bytes().data(), t.count(), std::byte{1});
    return ops::constant(g, std::move(t));
}

/// [..., K, N] -> i32[..., 1, N]
Value column_sums(ingot::Graph& g, Value v) {
    const ingot::Tensor* t = g.constant(v);
    if (t != nullptr && t->rank() == 2 && bit_width(t->dtype()) == 8) {
        return ops::matmul(g, ones(g, {1, t->shape()[0]}), v, DType::I32);
    }
    return ops::reduce_sum(g, wide(g, v), {-2}, true);
}

/// [O, ...] -> i32[O]
Value leading_sums(ingot::Graph& g, Value v) {
    const ingot::Tensor* t = g.constant(v);
    if (t != nullptr && t->count() > 0 && bit_width(t->dtype()) == 8) {
        int64_t count = t->shape()[0];
        int64_t rest = t->count() / count;
        Value rows = ops::reshape(g, v, {count, rest});
        return ops::reshape(g, ops::matmul(g, rows, ones(g, {rest, 1}), DType::I32), {count});
    }
    return ops::reduce_sum(g, wide(g, v), axes_after(1, g.type(v).rank()));
}

/// Constant weights less their constant zero points, where the differences fit in a signed byte;
/// others as they are.
Quantized centred(ingot::Graph& g, const Quantized& w) {
    const ingot::Tensor* v = g.constant(w.v);
    const ingot::Tensor* zero = w.zero.valid() ? g.constant(w.zero) : nullptr;
    if (v == nullptr || zero == nullptr || v->count() == 0 || is_known_zero(g, w.zero) ||
        (zero->count() != 1 && zero->count() != v->shape()[0])) {
        return w;
    }
    ingot::Tensor out = ingot::Tensor::empty(DType::I8, v->shape());
    std::span<int8_t> to = out.as_mutable<int8_t>();
    int64_t each = v->count() / zero->count();
    for (int64_t i = 0; i < v->count(); ++i) {
        int64_t difference = v->get_i64(i) - zero->get_i64(i / each);
        if (difference < -128 || difference > 127) {
            return w;
        }
        to[static_cast<size_t>(i)] = static_cast<int8_t>(difference);
    }
    return {ops::constant(g, std::move(out)), w.scale, {}};
}

bool has_const_shape(const ingot::Graph& g, Value v) {
    const Dims& d = ops::dims(g, v);
    return std::all_of(d.begin(), d.end(), [](const Dim& n) { return n.is_const(); });
}

/// Elements under one window of one group: w is [O, C/groups, kernel...] of known sizes.
int64_t window_size(const ingot::Graph& g, Value w) {
    const Dims& d = ops::dims(g, w);
    int64_t n = 1;
    for (size_t i = 1; i < d.size(); ++i) {
        n *= d[i].value();
    }
    return n;
}

/// For weights whose shape is known only at run time: both sides widened before the product.
Value conv_of_differences(ingot::Graph& g, const ops::Conv& a, const Quantized& x,
                          const Quantized& w) {
    Value wi = ops::sub(g, wide(g, w.v), leading(g, wide(g, w.zero), g.type(w.v).rank()));
    Value xi = wide(g, x.v);
    if (!is_known_zero(g, x.zero)) {
        xi = ops::sub(g, xi, ops::reshape(g, wide(g, x.zero), {}));
    }
    return ops::conv(g, a, xi, wi);
}

/// y [N,O,positions...] less the weights' zero points times the sums of x under each window.
Value subtract_window_sums(ingot::Graph& g, const ops::Conv& a, Value y, Value x,
                           const Quantized& w) {
    Shape window{a.groups};
    for (size_t i = 1; i < ops::dims(g, w.v).size(); ++i) {
        window.push_back(ops::dims(g, w.v)[i].value());
    }
    Value sums = ops::conv(g, a, x, ones(g, window));
    int rank = g.type(w.v).rank();
    Value zero = leading(g, wide(g, w.zero), rank - 1);
    int64_t results = ops::dims(g, w.v)[0].value();
    if (a.groups == 1 || a.groups == results) {
        return ops::sub(g, y, ops::mul(g, sums, zero));
    }
    const Dims whole = ops::dims(g, y);
    Dims parts = whole; // [N, groups, O/groups, positions...]
    parts[1] = Dim(results / a.groups);
    parts.insert(parts.begin() + 1, Dim(a.groups));
    if (g.type(zero).rank() > 0) {
        Dims split(static_cast<size_t>(rank), Dim(1));
        split[0] = parts[1];
        split[1] = parts[2];
        zero = ops::reshape(g, zero, split);
    }
    Value share = ops::mul(g, ops::unsqueeze(g, sums, {2}), zero);
    return ops::reshape(g, ops::sub(g, ops::reshape(g, y, parts), share), whole);
}

} // namespace

Quantized quantized_input(const NodeContext& c, int value, int scale, int zero) {
    return {c.in(value), c.optional(scale), c.optional(zero)};
}

Value dequantized(ingot::Graph& g, const Quantized& q, int64_t axis) {
    if (is_float(g.type(q.v).dtype)) {
        return q.v;
    }
    return ops::dequantize(g, {axis, 0, DType::F32}, q.v, q.scale, q.zero);
}

Value requantized(ingot::Graph& g, Value x, Value scale, Value zero, DType fallback) {
    DType t = zero.valid() ? g.type(zero).dtype : fallback;
    return ops::quantize(g, {1, 0, t, true}, x, scale, zero);
}

Quantized quantized_now(ingot::Graph& g, Value x, bool each) {
    std::vector<int64_t> axes = axes_after(each ? 1 : 0, g.type(x).rank());
    Value low = ops::minimum(g, ops::reduce(g, "min", x, axes), 0.0);
    Value high = ops::maximum(g, ops::reduce_max(g, x, axes), 0.0);
    Value scale = ops::div(g, ops::sub(g, high, low), 255.0);
    scale = ops::select(g, ops::equal(g, high, low), ops::scalar(g, DType::F32, 1), scale);
    Value zero = ops::unary(g, ExprOp::Round, ops::unary(g, ExprOp::Neg, ops::div(g, low, scale)));
    zero = ops::cast(g, zero, DType::U8, true);
    return {ops::quantize(g, {0, 0, DType::U8, true}, x, scale, zero), scale, zero};
}

Value exact_conv(ingot::Graph& g, ops::Conv a, const Quantized& x, const Quantized& weights) {
    a.dtype = DType::I32;
    Quantized w = centred(g, weights);
    bool offset_x = !is_known_zero(g, x.zero);
    bool offset_w = !is_known_zero(g, w.zero);
    if (offset_w && !has_const_shape(g, w.v)) {
        return conv_of_differences(g, a, x, w);
    }
    int rank = g.type(w.v).rank();
    Value in = x.v;
    Value zero;
    if (offset_x) {
        // The border is filled with the zero point, so its share of every sum is constant.
        zero = ops::reshape(g, x.zero, {});
        Dims low(2, Dim(0));
        Dims high(2, Dim(0));
        low.insert(low.end(), a.low.begin(), a.low.end());
        high.insert(high.end(), a.high.begin(), a.high.end());
        in = ops::pad(g, x.v, low, high, zero, "constant");
        std::fill(a.low.begin(), a.low.end(), Dim(0));
        std::fill(a.high.begin(), a.high.end(), Dim(0));
        zero = wide(g, zero);
    }
    Value y = ops::conv(g, a, in, w.v);
    Value sums = offset_x ? leading_sums(g, w.v) : Value{};
    if (offset_w) {
        y = subtract_window_sums(g, a, y, in, w);
        if (offset_x) {
            Value window = ops::scalar(g, DType::I32, static_cast<double>(window_size(g, w.v)));
            sums = ops::sub(g, sums, ops::mul(g, leading(g, wide(g, w.zero), 1), window));
        }
    }
    return offset_x ? ops::sub(g, y, leading(g, ops::mul(g, sums, zero), rank - 1)) : y;
}

Value exact_matmul(ingot::Graph& g, const Quantized& a, const Quantized& b) {
    int rank_a = g.type(a.v).rank();
    int rank_b = g.type(b.v).rank();
    bool offset_a = !is_known_zero(g, a.zero);
    bool offset_b = !is_known_zero(g, b.zero);
    if (rank_a < 2 || rank_b < 2) {
        Value x = offset_a ? ops::sub(g, wide(g, a.v), column_zero(g, a.zero)) : wide(g, a.v);
        Value y = wide(g, b.v);
        y = offset_b ? ops::sub(g, y, rank_b < 2 ? row_zero(g, b.zero) : column_zero(g, b.zero))
                     : y;
        return ops::matmul(g, x, y);
    }
    Value y = ops::matmul(g, a.v, b.v, DType::I32);
    if (offset_a) {
        y = ops::sub(g, y, ops::mul(g, column_sums(g, b.v), row_zero(g, a.zero)));
    }
    if (offset_b) {
        Value rows = ops::reduce_sum(g, wide(g, a.v), {-1}, true);
        if (offset_a) {
            Value depth = ops::dim_scalar(g, ops::dims(g, a.v).back(), DType::I32);
            rows = ops::sub(g, rows, ops::mul(g, row_zero(g, a.zero), depth));
        }
        y = ops::sub(g, y, ops::mul(g, rows, column_zero(g, b.zero)));
    }
    return y;
}

} // namespace ingot::onnx
