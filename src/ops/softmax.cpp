// SPDX-License-Identifier: Apache-2.0
// softmax: exponentials of x minus its maximum, over their sum; or the logarithm of that.
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/ops.h"

namespace ingot::ops {

namespace {

Values expand_softmax(Graph& g, const Softmax& a, std::span<const Value> in) {
    require(in.size() == 1, ErrorCode::InvalidModel, "softmax takes 1 input, got ", in.size());
    const Type t = g.type(in[0]);
    require(is_float(t.dtype), ErrorCode::InvalidModel, "softmax of ", t, ": expected floats");
    int64_t axis = normalize_axis(a.axis, t.rank());
    Value x = widen(g, in[0]);
    Value shifted = sub(g, x, reduce_max(g, x, {axis}, true));
    Value e = exp(g, shifted);
    Value sum = reduce_sum(g, e, {axis}, true);
    Value y = a.log ? sub(g, shifted, unary(g, ExprOp::Log, sum)) : div(g, e, sum);
    return {cast(g, y, t.dtype)};
}

} // namespace

Value softmax(Graph& g, Value x, int64_t axis, bool log) {
    return g.add1(softmax_def, Softmax{normalize_axis(axis, g.type(x).rank()), log}, {x});
}

const OpDef softmax_def = composite<Softmax>(
    "softmax", {Rounding::Smooth, InHalf::Narrow, like_result},
    [](Graph& g, const Softmax& a, std::span<const Value> in) { return expand_softmax(g, a, in); });

} // namespace ingot::ops

namespace ingot {

extern const OpTable softmax_ops;
static const OpDef* const list[] = {&ops::softmax_def};
const OpTable softmax_ops = list;

} // namespace ingot
