// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/experts.h"

#include "base/error.h"

#include <array>

namespace ingot::onnx {

namespace {

/// A quantised matrix [R,K] in the form that products read.
struct Matrix {
    Value q;
    Value scale;
    Value zero; // invalid: 2^(bits-1)
    int64_t axis = 0;
    int64_t block = 0;
};

/// v [E,..] of the chosen experts; an invalid value stays one.
Value of_chosen(ingot::Graph& g, Value v, const ChosenExperts& chosen) {
    return chosen.experts.valid() && v.valid() ? ops::gather(g, v, chosen.experts, 0) : v;
}

/// The zero points as numbers of q's type: [E,N], or [E,N,K/block] for blocks.
Value zero_points(ingot::Graph& g, const ExpertWeights& w) {
    Value zero = unpacked_numbers(g, w.zero, w.bits);
    int64_t last = g.type(zero).rank() - 1;
    return ops::slice(g, zero, last, 0, ops::dims(g, w.scale).back());
}

/// The matrices of w below each other: [E*N,K].
Matrix stacked(ingot::Graph& g, const ExpertWeights& w) {
    Value q = unpacked_numbers(g, w.v, w.bits);
    Dims d = ops::dims(g, q);
    Dim rows = d[0] * d[1];
    Dims small = {rows};
    if (w.block != 0) {
        small.push_back(ops::dims(g, w.scale)[2]);
    }
    Matrix m{ops::reshape(g, q, {rows, d[2]}),
             ops::reshape(g, w.scale, small),
             {},
             w.block != 0 ? 1 : 0,
             w.block};
    if (w.zero.valid()) {
        m.zero = ops::reshape(g, zero_points(g, w), small);
    }
    return m;
}

/// v [E,N,..] of the chosen experts as [N,S,..].
Value beside(ingot::Graph& g, Value v, const ChosenExperts& chosen) {
    Dims d = ops::dims(g, v);
    if (!chosen.experts.valid()) {
        std::vector<int64_t> perm = {1, 0};
        for (int64_t i = 2; i < static_cast<int64_t>(d.size()); ++i) {
            perm.push_back(i);
        }
        return ops::permute(g, v, perm);
    }
    // One gather of rows, not one of matrices and a transposition.
    Dim rows = d[1];
    Value first = ops::mul(g, chosen.experts, ops::dim_scalar(g, rows));
    Value at = ops::add(g, ops::iota(g, DType::I64, {rows, 1}, 0), first);
    Dims flat = {d[0] * rows};
    flat.insert(flat.end(), d.begin() + 2, d.end());
    return ops::gather(g, ops::reshape(g, v, flat), at, 0);
}

/// The matrices of the chosen experts beside each other: [N,S*K].
Matrix joined(ingot::Graph& g, const ExpertWeights& w, const ChosenExperts& chosen) {
    auto joined_rows = [&](Value v) { // [N,S] or [N,S,M] as a matrix
        Dims d = ops::dims(g, v);
        return ops::reshape(g, v, {d[0], d.size() == 3 ? d[1] * d[2] : d[1]});
    };
    Value q = unpacked_numbers(g, beside(g, w.v, chosen), w.bits);
    Matrix m{joined_rows(q), joined_rows(beside(g, w.scale, chosen)), {}, 1, w.block};
    if (m.block == 0) { // one scale for a row of a matrix: a block is as long as it
        m.block = ops::dims(g, q)[2].value();
    }
    if (w.zero.valid()) {
        Value zero = ops::cast(g, zero_points(g, w), DType::U8);
        m.zero = ops::cast(g, joined_rows(beside(g, zero, chosen)), g.type(q).dtype);
    }
    return m;
}

/// The matrix in floats of type t.
Value floats_of(ingot::Graph& g, const Matrix& m, int64_t bits, DType t) {
    Value zero = m.zero;
    if (!zero.valid()) {
        auto middle = static_cast<double>(int64_t{1} << (bits - 1));
        zero = ops::full(g, g.type(m.q).dtype, ops::dims(g, m.scale), middle);
    }
    return ops::dequantize(g, {m.axis, m.block, t}, m.q, m.scale, zero);
}

} // namespace

Value unpacked_numbers(ingot::Graph& g, Value bytes, int64_t bits) {
    if (bits == 8) {
        return bytes;
    }
    Dims d = ops::dims(g, bytes);
    if (bits == 4) { // as u4 [.., 1]: the last axis of packed numbers is the one that grows
        Value flat = ops::reshape(g, bytes, {product(d), 1});
        d.back() = d.back() * Dim(2);
        return ops::reshape(g, ops::bitcast(g, flat, DType::U4), d);
    }
    Dims each = d;
    each.emplace_back(1);
    auto count = static_cast<size_t>(8 / bits);
    std::vector<uint8_t> shifts;
    for (size_t i = 0; i < count; ++i) {
        shifts.push_back(static_cast<uint8_t>(i * static_cast<size_t>(bits)));
    }
    Value shift = ops::constant(g, ingot::Tensor::of(DType::U8, {static_cast<int64_t>(count)},
                                                     std::span<const uint8_t>(shifts)));
    Value low = ops::binary(g, ExprOp::Shr, ops::reshape(g, bytes, each), shift);
    low = ops::binary(g, ExprOp::And, low, static_cast<double>((1 << bits) - 1));
    d.back() = d.back() * Dim(static_cast<int64_t>(count));
    return ops::reshape(g, low, d);
}

ChosenExperts chosen_experts(ingot::Graph& g, Value experts, Value weights, const Dim& count) {
    const Dims d = ops::dims(g, experts); // [T,k]
    Dim choices = d[0] * d[1];
    Dim slots = min(choices, count);
    Value slot = ops::iota(g, DType::I64, {slots}, 0);
    ChosenExperts out;
    Value key = experts; // the slot of each choice: that of its expert, where all are read
    if (slots != count) {
        // Where choices are few, each has a slot of its own: no expert is looked for, and one that
        // two tokens chose is read twice.
        Value own = ops::reshape(g, ops::iota(g, DType::I64, {choices}, 0), d);
        Value chosen = ops::slice(g, ops::reshape(g, experts, {choices}), 0, 0, slots);
        if (slots == choices) {
            key = own;
            out.experts = chosen;
        } else {
            Value few =
                ops::binary(g, ExprOp::Le, ops::dim_scalar(g, choices), ops::dim_scalar(g, count));
            key = ops::select(g, few, own, experts);
            out.experts = ops::select(g, few, chosen, slot);
        }
    }
    Value match = ops::equal(g, ops::unsqueeze(g, key, {2}), slot); // [T,k,S]
    Value weight = ops::unsqueeze(g, weights, {2});
    Value nothing = ops::scalar(g, DType::F32, 0);
    out.gates = ops::reduce_sum(g, ops::select(g, match, weight, nothing), {1});
    return out;
}

Value product_of_each(ingot::Graph& g, Value x, const ExpertWeights& weights,
                      const ChosenExperts& chosen) {
    ExpertWeights w = weights;
    for (Value* v : {&w.v, &w.bias, &w.scale, &w.zero}) {
        *v = of_chosen(g, *v, chosen);
    }
    DType t = g.type(x).dtype;
    Dims d = ops::dims(g, w.v);
    Dims result = {ops::dims(g, x)[0], d[0], d[1]};
    Value y;
    if (w.bits == 0) {
        y = ops::dot(g, Dot{{}, {}, {1}, {2}, t}, x, w.v);
    } else {
        Value m = floats_of(g, stacked(g, w), w.bits, t);
        y = ops::reshape(g, ops::dot(g, Dot{{}, {}, {1}, {1}, t}, x, m), result);
    }
    return w.bias.valid() ? ops::add(g, y, w.bias) : y;
}

Value product_of_all(ingot::Graph& g, Value h, const ExpertWeights& w,
                     const ChosenExperts& chosen) {
    DType t = g.type(h).dtype;
    Value gates = ops::unsqueeze(g, chosen.gates, {2});
    Value y;
    if (w.bits == 0) {
        Value each = ops::dot(g, Dot{{1}, {0}, {2}, {2}, DType::F32}, h,
                              of_chosen(g, w.v, chosen)); // [S,T,N]
        Value by_slot = ops::permute(g, gates, {1, 0, 2});
        y = ops::reduce_sum(g, ops::mul(g, each, by_slot), {0});
    } else {
        Dims d = ops::dims(g, h);
        Value scaled = ops::cast(g, ops::mul(g, ops::widen(g, h), gates), t);
        scaled = ops::reshape(g, scaled, {d[0], d[1] * d[2]});
        Value m = floats_of(g, joined(g, w, chosen), w.bits, t);
        y = ops::widen(g, ops::dot(g, Dot{{}, {}, {1}, {1}, t}, scaled, m));
    }
    if (w.bias.valid()) {
        Value bias = ops::widen(g, of_chosen(g, w.bias, chosen));
        y = ops::add(g, y, ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F32}, chosen.gates, bias));
    }
    return ops::cast(g, y, t);
}

} // namespace ingot::onnx
