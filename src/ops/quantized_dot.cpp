// SPDX-License-Identifier: Apache-2.0
// quantized_dot: dequantize and dot. Lowering forms it from these two where a kernel reads the
// quantised operand directly.
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/ops.h"

namespace ingot::ops {

namespace {

Values expand_quantized_dot(Graph& g, const QuantizedDot& a, std::span<const Value> in) {
    require(in.size() == 3 || in.size() == 4, ErrorCode::InvalidModel,
            "quantized_dot takes 3 or 4 inputs, got ", in.size());
    DType t = g.type(in[0]).dtype;
    Value zero = in.size() == 4 ? in[3] : Value{};
    if (zero.valid() && a.block > 0 && g.type(zero).rank() == 0) {
        zero = broadcast_to(g, zero, g.type(in[2]).dims);
    }
    Value w = dequantize(g, {a.axis, a.block, t}, in[1], in[2], zero);
    return {dot(g, Dot{{}, {}, a.a_contract, a.b_contract, a.dtype}, in[0], w)};
}

} // namespace

Value quantized_dot(Graph& g, QuantizedDot a, Value x, Value q, Value scale, Value zero_point) {
    return zero_point.valid() ? g.add1(quantized_dot_def, std::move(a), {x, q, scale, zero_point})
                              : g.add1(quantized_dot_def, std::move(a), {x, q, scale});
}

const OpDef quantized_dot_def =
    composite<QuantizedDot>("quantized_dot", {Rounding::Matters, InHalf::Narrow, like_result},
                            [](Graph& g, const QuantizedDot& a, std::span<const Value> in) {
                                return expand_quantized_dot(g, a, in);
                            });

} // namespace ingot::ops

namespace ingot {

extern const OpTable quantized_dot_ops;
static const OpDef* const list[] = {&ops::quantized_dot_def};
const OpTable quantized_dot_ops = list;

} // namespace ingot
