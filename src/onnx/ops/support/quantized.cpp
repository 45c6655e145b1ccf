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

Value exact_conv(ingot::Graph& g, ops::Conv a, const Quantized& x, const Quantized& w) {
    a.dtype = DType::I32;
    if (!is_known_zero(g, w.zero)) {
        int rank = g.type(w.v).rank();
        Value wi = ops::sub(g, wide(g, w.v), leading(g, wide(g, w.zero), rank));
        Value xi = wide(g, x.v);
        if (!is_known_zero(g, x.zero)) {
            xi = ops::sub(g, xi, ops::reshape(g, wide(g, x.zero), {}));
        }
        return ops::conv(g, a, xi, wi);
    }
    if (is_known_zero(g, x.zero)) {
        return ops::conv(g, a, x.v, w.v);
    }
    // The border is filled with the zero point, so its share of every sum is constant.
    Dims low(2, Dim(0));
    Dims high(2, Dim(0));
    low.insert(low.end(), a.low.begin(), a.low.end());
    high.insert(high.end(), a.high.begin(), a.high.end());
    Value zero = ops::reshape(g, x.zero, {});
    Value padded = ops::pad(g, x.v, low, high, zero, "constant");
    std::fill(a.low.begin(), a.low.end(), Dim(0));
    std::fill(a.high.begin(), a.high.end(), Dim(0));
    Value y = ops::conv(g, a, padded, w.v);
    int rank = g.type(w.v).rank();
    Value sums = leading_sums(g, w.v);
    return ops::sub(g, y, leading(g, ops::mul(g, sums, wide(g, zero)), rank - 1));
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
