// SPDX-License-Identifier: Apache-2.0
// Products of quantised operands, exact in i32, and conversion from and to quantised tensors.
#pragma once

#include "onnx/importer.h"

namespace ingot::onnx {

/// A quantised tensor as three consecutive inputs of an operator. Scale and zero point may be
/// invalid.
struct Quantized {
    Value v;
    Value scale;
    Value zero;
};
Quantized quantized_input(const NodeContext& c, int value, int scale, int zero);

/// (x - zero) * scale in f32; scale and zero point are scalars or vectors along `axis`.
Value dequantized(ingot::Graph& g, const Quantized& q, int64_t axis = 1);
/// Scale and zero point of a result are scalars. The dtype is the zero point's, or `fallback`.
Value requantized(ingot::Graph& g, Value x, Value scale, Value zero, DType fallback = DType::U8);

/// A constant of zeros; also an invalid value.
bool is_known_zero(const ingot::Graph& g, Value v);
/// x quantised to u8 with the range that it has, 0 included. Scale and zero point are scalars, or,
/// with `each`, [d] of x [d,...], each from its own part of x.
Quantized quantized_now(ingot::Graph& g, Value x, bool each = false);

/// Sum of (x - x_zero) * (w - w_zero): i32 [N,O,positions...]. x_zero is a scalar, w_zero a scalar
/// or [O]. Zero points may be invalid.
Value exact_conv(ingot::Graph& g, ops::Conv a, const Quantized& x, const Quantized& w);
/// The matrix product of (a - a_zero) and (b - b_zero) in i32. a_zero is a scalar or per row,
/// b_zero a scalar or per column.
Value exact_matmul(ingot::Graph& g, const Quantized& a, const Quantized& b);

} // namespace ingot::onnx
