// SPDX-License-Identifier: Apache-2.0
// Gates of com.microsoft: norms, sums and values times a sigmoid, and the gates of linear
// attention. All compute in f32; results are rounded once, or where an operator's definition says
// so.
#include "base/error.h"
#include "onnx/ops/support/activations.h"
#include "onnx/ops/support/gates.h"

namespace ingot::onnx {

namespace {

Value sigmoid(ingot::Graph& g, Value x) {
    return ops::unary(g, ExprOp::Sigmoid, x);
}

// Input i, `count` elements, as a list.
Value list_of(NodeContext& c, int i, const Dim& count) {
    Dim given = product(c.type(i).dims);
    c.ensure(!given.is_const() || !count.is_const() || given == count, "input ", i, " is ",
             c.type(i), ", expected ", count, " elements");
    return ops::reshape(c.g, c.in(i), {count});
}

Dim last_size(NodeContext& c, int i) {
    c.ensure(c.rank(i) >= 1, "input ", i, " is a scalar, expected an axis at least");
    return c.dim(i, c.rank(i) - 1);
}

// --- linear attention

// (x [...,n*C], scale [C], gate like x): the RMS norm of each C elements, times the gate's
// activation.
Values gated_rms_norm(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::string activation = c.s("activation", "silu");
    c.ensure(activation == "silu" || activation == "swish" || activation == "sigmoid",
             "attribute 'activation' is '", activation, "', expected 'silu', 'swish' or 'sigmoid'");
    const Dim width = last_size(c, 0);
    const Dim size = product(c.type(1).dims);
    bool both_known = width.is_const() && size.is_const();
    c.ensure(!both_known || (size.value() > 0 && width.value() % size.value() == 0), "X is ",
             c.type(0), " and scale ", c.type(1), ", expected a multiple of ", size,
             " elements along the last axis");
    Dims rows = c.type(0).dims;
    rows.back() = width == size ? Dim(1) : floor_div(width, size);
    rows.push_back(size);
    auto row = [&](int i) { return ops::widen(g, ops::reshape(g, c.in(i), rows)); };
    Value y = ops::layer_norm(g, {-1, c.f("epsilon", 1e-5F), true}, row(0), list_of(c, 1, size));
    Value gate = row(2);
    y = ops::mul(g, y, activation == "sigmoid" ? sigmoid(g, gate) : silu(g, gate));
    return {ops::reshape(g, ops::cast(g, y, c.dtype(0)), c.type(0).dims)};
}

// (a [...,H], bias [H], scale [H], [b like a]): decay and update rate of gated linear attention.
Values linear_attention_gate(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.has(3) || !c.wants(1), "output 1 (beta) is used without input 3 (b)");
    const Dim heads = last_size(c, 0);
    Value x = ops::add(g, ops::widen(g, c.in(0)), list_of(c, 1, heads));
    Value decay = ops::mul(g, list_of(c, 2, heads), apply(g, activation(c, "softplus"), x));
    Value beta = c.has(3) ? sigmoid(g, c.in(3)) : Value{};
    return {ops::cast(g, decay, c.dtype(0)), beta};
}

// --- activations

// (gate, [up]), or both as the halves of the gate.
Values clamped_swi_glu(NodeContext& c) {
    bool round_gate = c.i("round_activation", 0) != 0;
    if (c.has(1)) {
        return {swi_glu(c, c.in(0), c.in(1), round_gate)};
    }
    Halves h = halves_of(c.g, c.in(0));
    return {swi_glu(c, h.first, h.second, round_gate)};
}

Values scaled_silu_by(NodeContext& c) {
    if (!c.has(1)) {
        return {scaled_silu(c.g, c.in(0), ops::scalar(c.g, DType::F32, c.f("alpha", 1)))};
    }
    c.ensure(c.rank(1) == 0, "scale is ", c.type(1), ", expected a scalar");
    return {scaled_silu(c.g, c.in(0), c.in(1))};
}

// x + y * gate, each step in x's type. The gate [...,1] is given, or is the sigmoid of a
// projection.
Values gated_add(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(2) == c.rank(0) && c.rank(1) == c.rank(0), "X, Y and gate are ", c.type(0),
             ", ", c.type(1), " and ", c.type(2), ", expected one rank");
    Value gate = c.in(2);
    if (c.has(3)) {
        c.ensure(c.rank(3) == 2, "gate_weight is ", c.type(3), ", expected [K,1]");
        gate = sigmoid(g, ops::matmul(g, gate, c.in(3)));
    }
    Dims rows = c.type(0).dims;
    last_size(c, 0);
    rows.back() = 1;
    gate = ops::reshape(g, gate, rows);
    return {ops::add(g, c.in(0), ops::mul(g, c.in(1), gate))};
}

const ImporterRow rows[] = {
    {"com.microsoft", "GatedRMSNorm", 1, gated_rms_norm, no_shapes},
    {"com.microsoft", "LinearAttentionGate", 1, linear_attention_gate, no_shapes},
    {"com.microsoft", "SwiGLU", 1, clamped_swi_glu, no_shapes},
    {"com.microsoft", "ScaledSiLU", 1, scaled_silu_by, no_shapes},
    {"com.microsoft", "GatedAdd", 1, gated_add, no_shapes},
};

} // namespace

extern const ImporterTable contrib_gates_importers;
const ImporterTable contrib_gates_importers = rows;

} // namespace ingot::onnx
