// SPDX-License-Identifier: Apache-2.0
// quantize: round(x / scale) + zero point, saturated to a narrow type; in f32 (f64 for f64).
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/quantization_blocks.h"

#include <cmath>

namespace ingot::ops {

namespace {

Values expand_quantize(Graph& g, const Quantize& a, std::span<const Value> in) {
    require(in.size() == 2 || in.size() == 3, ErrorCode::InvalidModel,
            "quantize takes 2 or 3 inputs, got ", in.size());
    const Type t = g.type(in[0]);
    DType wide = t.dtype == DType::F64 ? DType::F64 : DType::F32;
    Value x = cast(g, in[0], wide);
    Value scale = spread_parameter(g, "quantize", t, a.axis, a.block, cast(g, in[1], wide));
    Value y = div(g, x, scale);
    bool integer = is_integer(a.dtype);
    y = integer ? unary(g, ExprOp::Round, y) : y;
    if (in.size() == 3) {
        Value zero = spread_parameter(g, "quantize", t, a.axis, a.block, cast(g, in[2], wide));
        y = add(g, y, zero);
    }
    require(g.type(y).rank() == t.rank(), ErrorCode::InvalidModel, "quantize of ", t, ": scale ",
            g.type(in[1]), " or zero point has more axes");
    if (integer) {
        double steps = std::ldexp(1.0, bit_width(a.dtype));
        double lowest = is_signed(a.dtype) ? -steps / 2 : 0;
        y = minimum(g, maximum(g, y, lowest), lowest + steps - 1);
    }
    return {cast(g, broadcast_to(g, y, t.dims), a.dtype, integer || a.saturate)};
}

} // namespace

Value quantize(Graph& g, Quantize a, Value x, Value scale, Value zero_point) {
    return zero_point.valid() ? g.add1(quantize_def, a, {x, scale, zero_point})
                              : g.add1(quantize_def, a, {x, scale});
}

const OpDef quantize_def =
    composite<Quantize>("quantize", {Rounding::Matters, InHalf::Narrow, OperandTypes{1, 1}},
                        [](Graph& g, const Quantize& a, std::span<const Value> in) {
                            return expand_quantize(g, a, in);
                        });

} // namespace ingot::ops

namespace ingot {

extern const OpTable quantize_ops;
static const OpDef* const list[] = {&ops::quantize_def};
const OpTable quantize_ops = list;

} // namespace ingot
