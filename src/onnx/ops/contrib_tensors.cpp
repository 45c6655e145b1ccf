// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft on plain tensors: distances, products of complex numbers and of small
// integers, slices side by side, checks, hashes.
#include "base/error.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

// --- distances and complex numbers

// |a|^2 + |b|^2 - 2ab in f64, since little is left of it for short distances: differences of all
// rows would need much memory.
Values cdist(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::string metric = c.s("metric", "sqeuclidean");
    if (metric != "euclidean" && metric != "sqeuclidean") {
        c.refuse(RefusalKind::Attribute, "attribute 'metric' is '", metric,
                 "'; only euclidean and sqeuclidean are supported");
    }
    c.ensure(c.rank(0) == 2 && c.rank(1) == 2, "inputs are ", c.type(0), " and ", c.type(1),
             ", expected [M,N] and [K,N]");
    Value a = ops::cast(g, c.in(0), DType::F64);
    Value b = ops::cast(g, c.in(1), DType::F64);
    auto squares = [&](Value v, bool keep) {
        return ops::reduce_sum(g, ops::mul(g, v, v), {1}, keep);
    };
    Value product = ops::dot(g, Dot{{}, {}, {1}, {1}, DType::F64}, a, b);
    Value y =
        ops::sub(g, ops::add(g, squares(a, true), squares(b, false)), ops::mul(g, product, 2));
    y = ops::maximum(g, y, 0.0);
    return {ops::cast(g, metric == "euclidean" ? ops::sqrt(g, y) : y, c.dtype(0))};
}

// Real and imaginary parts lie side by side on the last axis. One part of b multiplies a, the other
// one a with its parts exchanged and one sign changed.
template <bool conjugate>
Values complex_mul(NodeContext& c) {
    ingot::Graph& g = c.g;
    for (int i : {0, 1}) {
        c.ensure(c.rank(i) >= 1 &&
                     (!c.type(i).dims.back().is_const() || c.type(i).dims.back().is_const(2)),
                 "input ", i, " is ", c.type(i), ", expected 2 parts on the last axis");
    }
    DType stored = c.dtype(0);
    Value a = ops::widen(g, c.in(0));
    Value b = ops::widen(g, c.in(1));
    DType t = g.type(a).dtype;
    int64_t last = c.rank(1) - 1;
    const std::array<double, 2> signs = {conjugate ? 1.0 : -1.0, conjugate ? -1.0 : 1.0};
    Value sign = ops::constant(g, ingot::Tensor::of<double>(t, {2}, signs));
    Value turned = ops::mul(g, ops::reverse(g, a, c.rank(0) - 1), sign);
    Value y = ops::add(g, ops::mul(g, a, ops::slice(g, b, last, 0, 1)),
                       ops::mul(g, turned, ops::slice(g, b, last, 1, 1)));
    return {ops::cast(g, y, stored)};
}

// --- integers

// (a, [a zero], b, [b zero]): the product of the differences in i32
Values mul_integer(NodeContext& c) {
    ingot::Graph& g = c.g;
    auto operand = [&](int i) {
        Value v = ops::cast(g, c.in(i), DType::I32);
        return c.has(i + 1) ? ops::sub(g, v, to_scalar(g, ops::cast(g, c.in(i + 1), DType::I32)))
                            : v;
    };
    return {ops::mul(g, operand(0), operand(2))};
}

Values reduce_sum_integer(NodeContext& c) {
    std::vector<int64_t> axes = normalize_axes(c.ints("axes"), c.rank(0));
    for (int64_t i = 0; axes.empty() && i < c.rank(0); ++i) {
        axes.push_back(i);
    }
    DType t = is_signed(c.dtype(0)) ? DType::I32 : DType::U32;
    return {ops::reduce_sum(c.g, ops::cast(c.g, c.in(0), t), axes, c.i("keepdims", 1) != 0)};
}

Values matmul_integer16(NodeContext& c) {
    bool positive = !is_signed(c.dtype(0)) && !is_signed(c.dtype(1));
    DType t = positive ? DType::U32 : DType::I32;
    return {ops::matmul(c.g, ops::cast(c.g, c.in(0), t), ops::cast(c.g, c.in(1), t), t)};
}

// --- slices, rows, checks

Values unfold(NodeContext& c) {
    int64_t axis = normalize_axis(c.i("dim", -1), c.rank(0));
    return {ops::window(c.g, c.in(0),
                        Window{{axis}, {positive(c, "size")}, {positive(c, "step", 1)}, {1}})};
}

// The inputs behind the indices change gradients alone.
Values embedding(NodeContext& c) {
    c.ensure(c.rank(0) == 2, "the weight is ", c.type(0), ", expected a matrix");
    return {ops::gather(c.g, c.in(0), c.in(1), 0)};
}

Values is_all_finite(NodeContext& c) {
    ingot::Graph& g = c.g;
    bool only_nan = c.i("isnan_only", 0) != 0;
    bool only_inf = c.i("isinf_only", 0) != 0;
    c.ensure(!only_nan || !only_inf,
             "attributes 'isnan_only' and 'isinf_only' are both set, expected one at most");
    Value found;
    for (int i = 0; i < c.input_count(); ++i) {
        Value x = ops::flatten(g, c.in(i));
        Value bad = only_nan ? Value{} : ops::unary(g, ExprOp::IsInf, x);
        if (!only_inf) {
            Value nan = ops::unary(g, ExprOp::IsNan, x);
            bad = bad.valid() ? ops::binary(g, ExprOp::Or, bad, nan) : nan;
        }
        bad = ops::reduce_max(g, bad, {0});
        found = found.valid() ? ops::binary(g, ExprOp::Or, found, bad) : bad;
    }
    c.ensure(found.valid(), "there are no inputs");
    return {ops::logical_not(g, found)};
}

Values sample(NodeContext& c) {
    return {c.in(0)};
}

// --- MurmurHash3, of 32 bits

Value bits(ingot::Graph& g, uint32_t v) {
    return ops::scalar_i64(g, DType::U32, v);
}

Value times(ingot::Graph& g, Value x, uint32_t v) {
    return ops::binary(g, ExprOp::Mul, x, bits(g, v));
}

Value mixed_with(ingot::Graph& g, Value a, Value b) {
    return ops::binary(g, ExprOp::Xor, a, b);
}

Value shifted_right(ingot::Graph& g, Value x, uint32_t by) {
    return ops::binary(g, ExprOp::Shr, x, bits(g, by));
}

Value rotated(ingot::Graph& g, Value x, uint32_t by) {
    Value up = ops::binary(g, ExprOp::Shl, x, bits(g, by));
    return ops::binary(g, ExprOp::Or, up, shifted_right(g, x, 32 - by));
}

Value hash_of(ingot::Graph& g, std::span<const Value> words, uint32_t seed) {
    Value h = bits(g, seed);
    for (Value k : words) {
        k = times(g, rotated(g, times(g, k, 0xcc9e2d51), 15), 0x1b873593);
        h = rotated(g, mixed_with(g, h, k), 13);
        h = ops::binary(g, ExprOp::Add, times(g, h, 5), bits(g, 0xe6546b64));
    }
    h = mixed_with(g, h, bits(g, static_cast<uint32_t>(4 * words.size())));
    h = times(g, mixed_with(g, h, shifted_right(g, h, 16)), 0x85ebca6b);
    h = times(g, mixed_with(g, h, shifted_right(g, h, 13)), 0xc2b2ae35);
    return mixed_with(g, h, shifted_right(g, h, 16));
}

Values murmur_hash(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t width = bit_width(c.dtype(0)) / 32;
    c.ensure(bit_width(c.dtype(0)) % 32 == 0 && width >= 1, "input 0 is ", c.type(0),
             ", expected elements of 32 or 64 bits");
    Value x = ops::bitcast(g, ops::unsqueeze(g, c.in(0), {c.rank(0)}), DType::U32);
    Values words;
    for (int64_t i = 0; i < width; ++i) {
        words.push_back(ops::squeeze(g, ops::slice(g, x, c.rank(0), i, 1), {c.rank(0)}));
    }
    Value h = hash_of(g, words, static_cast<uint32_t>(c.i("seed", 0)));
    return {c.i("positive", 1) != 0 ? h : ops::bitcast(g, h, DType::I32)};
}

const ImporterRow rows[] = {
    {"com.microsoft", "CDist", 1, cdist, no_shapes},
    {"com.microsoft", "ComplexMul", 1, complex_mul<false>, no_shapes},
    {"com.microsoft", "ComplexMulConj", 1, complex_mul<true>, no_shapes},
    {"com.microsoft", "MulInteger", 1, mul_integer, no_shapes},
    {"com.microsoft", "ReduceSumInteger", 1, reduce_sum_integer, no_shapes},
    {"com.microsoft", "MatMulInteger16", 1, matmul_integer16, no_shapes},
    {"com.microsoft", "UnfoldTensor", 1, unfold, no_shapes},
    {"com.microsoft", "TorchEmbedding", 1, embedding, no_shapes},
    {"com.microsoft", "IsAllFinite", 1, is_all_finite, no_shapes},
    {"com.microsoft", "SampleOp", 1, sample, no_shapes},
    {"com.microsoft", "MurmurHash3", 1, murmur_hash, no_shapes},
};

} // namespace

extern const ImporterTable contrib_tensors_importers;
const ImporterTable contrib_tensors_importers = rows;

} // namespace ingot::onnx
