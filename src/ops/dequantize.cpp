// SPDX-License-Identifier: Apache-2.0
// dequantize: (x - zero point) * scale. Integers are subtracted exactly, in i32.
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/quantization_blocks.h"

namespace ingot::ops {

namespace {

Values expand_dequantize(Graph& g, const Dequantize& a, std::span<const Value> in) {
    require(in.size() == 2 || in.size() == 3, ErrorCode::InvalidModel,
            "dequantize takes 2 or 3 inputs, got ", in.size());
    require(is_float(a.dtype), ErrorCode::InvalidModel, "dequantize to ", a.dtype,
            ": expected a floating-point type");
    const Type t = g.type(in[0]);
    DType wide = a.dtype == DType::F64 ? DType::F64 : DType::F32;
    DType steps = is_float(t.dtype) ? wide : DType::I32;
    Value x = cast(g, in[0], steps);
    if (in.size() == 3) {
        x = sub(g, x, spread_parameter(g, "dequantize", t, a.axis, a.block, cast(g, in[2], steps)));
    }
    Value scale = spread_parameter(g, "dequantize", t, a.axis, a.block, cast(g, in[1], wide));
    Value y = mul(g, cast(g, x, wide), scale);
    require(g.type(y).rank() == t.rank(), ErrorCode::InvalidModel, "dequantize of ", t, ": scale ",
            g.type(in[1]), " or zero point has more axes");
    return {cast(g, broadcast_to(g, y, t.dims), a.dtype)};
}

} // namespace

Value dequantize(Graph& g, Dequantize a, Value x, Value scale, Value zero_point) {
    return zero_point.valid() ? g.add1(dequantize_def, a, {x, scale, zero_point})
                              : g.add1(dequantize_def, a, {x, scale});
}

const OpDef dequantize_def =
    composite<Dequantize>("dequantize", {Rounding::Smooth, InHalf::Narrow, parameters_from(1)},
                          [](Graph& g, const Dequantize& a, std::span<const Value> in) {
                              return expand_dequantize(g, a, in);
                          });

} // namespace ingot::ops

namespace ingot {

extern const OpTable dequantize_ops;
static const OpDef* const list[] = {&ops::dequantize_def};
const OpTable dequantize_ops = list;

} // namespace ingot
