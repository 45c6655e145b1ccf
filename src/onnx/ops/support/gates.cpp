// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/gates.h"

#include "base/error.h"

namespace ingot::onnx {

Value silu(ingot::Graph& g, Value x, double alpha) {
    Value scaled = alpha == 1 ? x : ops::mul(g, x, alpha);
    return ops::mul(g, x, ops::unary(g, ExprOp::Sigmoid, scaled));
}

Value scaled_silu(ingot::Graph& g, Value x, Value scale) {
    Value wide = ops::mul(g, ops::widen(g, x), ops::widen(g, scale));
    return silu(g, ops::cast(g, wide, g.type(x).dtype));
}

Value swi_glu(const NodeContext& c, Value gate, Value up, bool round_gate) {
    ingot::Graph& g = c.g;
    DType stored = g.type(gate).dtype;
    Value y = ops::widen(g, gate);
    Value linear = ops::widen(g, up);
    double limit = c.f("limit", 0);
    if (limit > 0) {
        y = ops::minimum(g, y, limit);
        linear = ops::maximum(g, ops::minimum(g, linear, limit), -limit);
    }
    y = silu(g, y, c.f("activation_alpha", 1));
    if (round_gate) {
        y = ops::widen(g, ops::cast(g, y, stored));
    }
    double beta = c.f("activation_beta", 0);
    linear = beta == 0 ? linear : ops::add(g, linear, beta);
    return ops::cast(g, ops::mul(g, y, linear), stored);
}

Halves halves_of(ingot::Graph& g, Value x) {
    const Dims d = ops::dims(g, x);
    require(!d.empty(), ErrorCode::InvalidModel, "got a scalar, expected two halves of an axis");
    require(!d.back().is_const() || d.back().value() % 2 == 0, ErrorCode::InvalidModel, "got ",
            g.type(x), ", expected two halves of the last axis");
    Dim half = floor_div(d.back(), 2);
    return {ops::slice(g, x, -1, 0, half), ops::slice(g, x, -1, half, half)};
}

} // namespace ingot::onnx
