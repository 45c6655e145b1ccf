// SPDX-License-Identifier: Apache-2.0
// gelu: by the error function, or by its approximation with tanh; one map.
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/ops.h"

#include <array>
#include <numbers>

namespace ingot::ops {

namespace {

Values expand_gelu(Graph& g, const Gelu& a, std::span<const Value> in) {
    require(in.size() == 1, ErrorCode::InvalidModel, "gelu takes 1 input, got ", in.size());
    const DType t = g.type(in[0]).dtype;
    require(is_float(t), ErrorCode::InvalidModel, "gelu of ", g.type(in[0]), ": expected floats");
    DType c = compute_type(t);
    Expr e;
    int x = e.in(0, t);
    int inner = 0;
    if (a.tanh) {
        int cube = e.op(ExprOp::Mul, e.op(ExprOp::Mul, x, x), x);
        int sum = e.op(ExprOp::Add, x, e.op(ExprOp::Mul, cube, e.constant(c, 0.044715)));
        double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
        inner = e.op(ExprOp::Tanh, e.op(ExprOp::Mul, sum, e.constant(c, factor)));
    } else {
        inner = e.op(ExprOp::Erf, e.op(ExprOp::Mul, x, e.constant(c, std::numbers::sqrt2 / 2)));
    }
    int half = e.op(ExprOp::Mul, x, e.constant(c, 0.5));
    e.op(ExprOp::Mul, half, e.op(ExprOp::Add, inner, e.constant(c, 1)));
    return {map(g, std::move(e), t, std::array{in[0]})};
}

} // namespace

Value gelu(Graph& g, Value x, bool tanh) {
    return g.add1(gelu_def, Gelu{tanh}, {x});
}

const OpDef gelu_def = composite<Gelu>(
    "gelu", {Rounding::Smooth, InHalf::Narrow, like_result},
    [](Graph& g, const Gelu& a, std::span<const Value> in) { return expand_gelu(g, a, in); });

} // namespace ingot::ops

namespace ingot {

extern const OpTable gelu_ops;
static const OpDef* const list[] = {&ops::gelu_def};
const OpTable gelu_ops = list;

} // namespace ingot
