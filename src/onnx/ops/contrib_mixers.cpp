// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft on several residual streams of one model (hyper-connections): norms,
// gates and mixtures of branches. All compute in f32 unless an operator rounds each step.
#include "base/error.h"
#include "onnx/ops/support/attention.h"
#include "onnx/ops/support/gates.h"

namespace ingot::onnx {

namespace {

// Streams [...,C,H], or flattened [...,C*H] with attribute num_branches.
struct Branches {
    Value v; // [...,C,H]
    Dims leading;
    Dim count;
    Dim size;
    bool flat = false;
};

Branches branches_of(NodeContext& c, int i) {
    int64_t n = c.i("num_branches", 0);
    c.ensure(n >= 0, "attribute 'num_branches' is ", n, ", expected 0 or the number of branches");
    Branches b;
    b.flat = n > 0;
    b.v = c.in(i);
    b.leading = c.type(i).dims;
    c.ensure(b.leading.size() >= (b.flat ? 1U : 2U), "input ", i, " is ", c.type(i), ", expected ",
             b.flat ? "[...,branches*size]" : "[...,branches,size]");
    Dim last = b.leading.back();
    b.leading.pop_back();
    if (b.flat) {
        c.ensure(!last.is_const() || last.value() % n == 0, "input ", i, " is ", c.type(i),
                 ", expected a multiple of ", n, " elements along the last axis");
        b.count = n;
        b.size = floor_div(last, n);
    } else {
        b.count = b.leading.back();
        b.size = last;
        b.leading.pop_back();
    }
    Dims grouped = b.leading;
    grouped.insert(grouped.end(), {b.count, b.size});
    b.v = ops::reshape(c.g, b.v, grouped);
    return b;
}

// Input i as gates that broadcast to [...,C,H], in f32: [...,C], [...,C,1], [...,C,H], or, for
// flattened streams, [...,C*H].
Value gates_of(NodeContext& c, int i, const Branches& b, bool whole) {
    ingot::Graph& g = c.g;
    Value v = ops::widen(g, c.in(i));
    auto leading = static_cast<int64_t>(b.leading.size());
    if (c.rank(i) == leading + 2) {
        return v;
    }
    c.ensure(c.rank(i) == leading + 1, "input ", i, " is ", c.type(i), ", expected gates of ",
             g.type(b.v));
    const Dim last = c.dim(i, leading);
    if (whole && b.flat && last != b.count) {
        if (!last.is_const() && last != c.type(0).dims.back()) {
            c.refuse(RefusalKind::Dynamic, "input ", i, " is ", c.type(i),
                     "; the size of its last axis must be known");
        }
        return ops::reshape(g, v, g.type(b.v).dims);
    }
    return ops::unsqueeze(g, v, {leading + 1});
}

// RMS norm over the last axis of x [...,C,H], in f32. The scale broadcasts to [C,H].
Value norm_of_each(ingot::Graph& g, Value x, Value scale, double epsilon) {
    const Dim size = ops::dims(g, x).back();
    Value one = ops::full(g, DType::F32, {size}, 1);
    Value y = ops::layer_norm(g, {-1, epsilon, true}, ops::widen(g, x), one);
    return scale.valid() ? ops::mul(g, y, ops::widen(g, scale)) : y;
}

// The scale of a norm of each branch: [H], [C,H] or [C*H].
Value scale_of(NodeContext& c, int i, const Branches& b) {
    if (c.rank(i) == 2) {
        return c.in(i);
    }
    c.ensure(c.rank(i) == 1, "scale is ", c.type(i), ", expected [", b.size, "], [", b.count, ",",
             b.size, "] or their product");
    const Dim given = c.dim(i, 0);
    if (given == b.size) {
        return c.in(i);
    }
    bool known = given.is_const() && b.size.is_const() && b.count.is_const();
    if (!known && given != b.count * b.size) {
        c.refuse(RefusalKind::Dynamic, "scale is ", c.type(i), " and X ", c.type(0),
                 "; whether it is for one branch or for all must be known");
    }
    return ops::reshape(c.g, c.in(i), {b.count, b.size});
}

Values branchwise_rms_norm(NodeContext& c) {
    Branches b = branches_of(c, 0);
    Value scale = c.has(1) ? scale_of(c, 1, b) : Value{};
    Value y = norm_of_each(c.g, b.v, scale, c.f("epsilon", 1e-5F));
    return {ops::reshape(c.g, ops::cast(c.g, y, c.dtype(0)), c.type(0).dims)};
}

// Sum over the branches of x [...,C,H] times gates, times `factor`, in f32.
Value reduced(ingot::Graph& g, Value x, Value gates, double factor) {
    Value y = ops::reduce_sum(g, ops::mul(g, ops::widen(g, x), gates), {-2});
    return factor == 1 ? y : ops::mul(g, y, factor);
}

// x [...,C,H] + gates * block [...,H], in f32.
Value injected(ingot::Graph& g, Value x, Value gates, Value block) {
    Value y = ops::unsqueeze(g, ops::widen(g, block), {g.type(block).rank() - 1});
    return ops::add(g, x, ops::mul(g, gates, y));
}

// (streams, gates) -> [...,H]
Values pre_mix(NodeContext& c) {
    Branches b = branches_of(c, 0);
    Value y = reduced(c.g, b.v, gates_of(c, 1, b, true), c.f("reduction_scale", 1));
    return {ops::cast(c.g, y, c.dtype(0))};
}

void check_block(NodeContext& c, int i, const Branches& b) {
    c.ensure(c.rank(i) == static_cast<int64_t>(b.leading.size()) + 1, "input ", i, " is ",
             c.type(i), ", expected one branch of ", c.g.type(b.v));
}

// (streams, block [...,H], gates, [mix [...,C,C]]): result k is the sum over c of mix[c,k] *
// streams[c], plus gates[k] * block.
Values post_mix(NodeContext& c) {
    ingot::Graph& g = c.g;
    Branches b = branches_of(c, 0);
    check_block(c, 1, b);
    Value y = ops::widen(g, b.v);
    if (c.has(3)) {
        c.ensure(c.rank(3) == g.type(b.v).rank(), "stream_mix is ", c.type(3),
                 ", expected matrices of the branches of ", g.type(b.v));
        y = ops::matmul(g, ops::transpose_last(g, ops::widen(g, c.in(3))), y);
    }
    y = injected(g, y, gates_of(c, 2, b, false), c.in(1));
    return {ops::reshape(g, ops::cast(g, y, c.dtype(0)), c.type(0).dims)};
}

// (streams, scale, down, up and inject weights, [block], [gates]) -> the mixture [...,H], gates
// [...,C], streams
Values low_rank_mix(NodeContext& c) {
    ingot::Graph& g = c.g;
    DType t = c.dtype(0);
    double divisor = c.f("gate_div", 1);
    double gate_mul = c.f("gate_mul", 1);
    c.ensure(c.i("num_branches") > 0, "attribute 'num_branches' is ", c.i("num_branches"),
             ", expected a positive number");
    c.ensure(divisor != 0, "attribute 'gate_div' is 0");
    c.ensure(c.has(5) == c.has(6), "prev_block_output and prev_post_gate must come together");
    Branches b = branches_of(c, 0);
    if (c.has(5)) {
        check_block(c, 5, b);
        Value sum = injected(g, ops::widen(g, b.v), gates_of(c, 6, b, false), c.in(5));
        b.v = ops::cast(g, sum, t);
    }
    Value scale = ops::reshape(g, c.in(1), {b.count, b.size});
    Value normed = ops::cast(g, norm_of_each(g, b.v, scale, c.f("epsilon", 1e-5F)), t);
    Value flat = ops::reshape(g, normed, c.type(0).dims);
    auto sigmoid = [&](Value x) { return ops::unary(g, ExprOp::Sigmoid, x); };
    Value alpha = ops::scalar(g, DType::F32, c.f("silu_alpha", 1));
    Value hidden = scaled_silu(g, ops::matmul(g, flat, c.in(2)), alpha);
    Value gate = sigmoid(ops::matmul(g, hidden, c.in(3)));
    gate = ops::reshape(g, gate, g.type(b.v).dims);
    Value pre = reduced(g, normed, ops::widen(g, gate), c.f("reduction_scale", 1));
    Value inject = ops::matmul(g, flat, c.in(4));
    inject = divisor == 1 ? inject : ops::div(g, inject, divisor);
    Value post = sigmoid(inject);
    post = gate_mul == 1 ? post : ops::mul(g, post, gate_mul);
    return {ops::cast(g, pre, t), post, ops::reshape(g, b.v, c.type(0).dims)};
}

// (key, query [B,S,C,H], value [B,S,H], scales [C,H] of the norms of key, query and [result])
Values engram_gate(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(0) == 4 && c.rank(1) == 4 && c.rank(2) == 3, "key, query and value are ",
             c.type(0), ", ", c.type(1), " and ", c.type(2),
             ", expected [batch,sequence,branches,size] twice and [batch,sequence,size]");
    c.ensure(c.has(5) || !c.wants(1),
             "output 1 (gated_value_normed) is used without input 5 (conv_norm_scale)");
    double epsilon = c.f("epsilon", 1e-5F);
    const Dims branches = {c.dim(0, 2), c.dim(0, 3)};
    auto scale = [&](int i) { return ops::reshape(g, c.in(i), branches); };
    Value key = norm_of_each(g, c.in(0), scale(3), epsilon);
    double factor = attention_scale(g, 0, key);
    Value query = norm_of_each(g, c.in(1), scale(4), epsilon);
    Value dot = ops::reduce_sum(g, ops::mul(g, key, query), {-1}, true);
    dot = ops::mul(g, dot, factor);
    Value root = ops::sqrt(g, ops::maximum(g, ops::unary(g, ExprOp::Abs, dot), 1e-6));
    Value gate =
        ops::unary(g, ExprOp::Sigmoid, ops::mul(g, ops::unary(g, ExprOp::Sign, dot), root));
    Value y = ops::mul(g, gate, ops::widen(g, ops::unsqueeze(g, c.in(2), {2})));
    DType t = c.dtype(0);
    Value normed = c.wants(1) ? ops::cast(g, norm_of_each(g, y, scale(5), epsilon), t) : Value{};
    return {ops::cast(g, y, t), normed};
}

const ImporterRow rows[] = {
    {"com.microsoft", "BranchwiseRMSNorm", 1, branchwise_rms_norm, no_shapes},
    {"com.microsoft", "HyperConnectionPreMix", 1, pre_mix, no_shapes},
    {"com.microsoft", "HyperConnectionPostMix", 1, post_mix, no_shapes},
    {"com.microsoft", "HyperConnectionLowRankMix", 1, low_rank_mix, no_shapes},
    {"com.microsoft", "EngramGate", 1, engram_gate, no_shapes},
};

} // namespace

extern const ImporterTable contrib_mixers_importers;
const ImporterTable contrib_mixers_importers = rows;

} // namespace ingot::onnx
