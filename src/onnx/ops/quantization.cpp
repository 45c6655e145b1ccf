// SPDX-License-Identifier: Apache-2.0
// Quantisation: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and the products of
// quantised operands.
#include "base/error.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/quantized.h"
#include "onnx/ops/support/spatial.h"

#include <numeric>

namespace ingot::onnx {

namespace {

struct Granularity {
    int64_t axis = 0;
    int64_t block = 0;
};

Granularity granularity(const NodeContext& c) {
    int64_t block = c.i("block_size", 0);
    int64_t rank = c.rank(0);
    bool one = product(c.type(1).dims).is_const(1);
    if (block == 0 && c.rank(1) > 1 && !one) {
        c.refuse(RefusalKind::Size, "scale is ", c.type(1), " without a block_size");
    }
    int64_t axis = c.i("axis", 1);
    if (rank <= 1 || (c.rank(1) == 0 && block == 0)) {
        return {0, block};
    }
    return {normalize_axis(axis, rank), block};
}

// Attribute output_dtype; 0 means unspecified.
DType named_type(const NodeContext& c, DType fallback) {
    bool given = c.i("output_dtype", 0) != 0;
    return given ? dtype_attribute(c, "output_dtype", fallback) : fallback;
}

DType output_type(const NodeContext& c) {
    DType named = named_type(c, DType::U8);
    if (!c.has(2)) {
        return named;
    }
    bool given = c.i("output_dtype", 0) != 0;
    c.ensure(!given || named == c.dtype(2), "attribute 'output_dtype' is ", named,
             ", but the zero point is ", c.type(2));
    return c.dtype(2);
}

Values quantize(NodeContext& c) {
    Granularity n = granularity(c);
    ops::Quantize a{n.axis, n.block, output_type(c), c.i("saturate", 1) != 0};
    return {ops::quantize(c.g, a, c.in(0), c.in(1), c.optional(2))};
}

Values dequantize(NodeContext& c) {
    Granularity n = granularity(c);
    ops::Dequantize a{n.axis, n.block, named_type(c, c.dtype(1))};
    return {ops::dequantize(c.g, a, c.in(0), c.in(1), c.optional(2))};
}

Values dynamic_quantize(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::vector<int64_t> all(static_cast<size_t>(c.rank(0)));
    std::iota(all.begin(), all.end(), 0);
    Value x = c.in(0);
    Value low = ops::minimum(g, ops::reduce(g, "min", x, all), 0.0);
    Value high = ops::maximum(g, ops::reduce_max(g, x, all), 0.0);
    Value scale = ops::div(g, ops::sub(g, high, low), 255.0);
    Value flat = ops::equal(g, high, low);
    scale = ops::select(g, flat, ops::scalar(g, c.dtype(0), 1), scale);
    Value zero = ops::unary(g, ExprOp::Round, ops::unary(g, ExprOp::Neg, ops::div(g, low, scale)));
    zero = ops::cast(g, zero, DType::U8, true);
    return {requantized(g, x, scale, zero), scale, zero};
}

Values conv_integer(NodeContext& c) {
    Sliding s = sliding(c, spatial_dims(c.type(0)), kernel_sizes(c, 1));
    ops::Conv a = conv_attributes(c, s, DType::I32);
    return {exact_conv(c.g, a, {c.in(0), {}, c.optional(2)}, {c.in(1), {}, c.optional(3)})};
}

// com.microsoft's has attribute channels_last, which says nothing about the weights
// [O,C,kernel...].
Values qlinear_conv(NodeContext& c) {
    ingot::Graph& g = c.g;
    bool last = c.i("channels_last", 0) != 0;
    Quantized x = quantized_input(c, 0, 1, 2);
    c.ensure(c.rank(0) >= 3, "input 0 is ", c.type(0), ", expected channels and spatial axes");
    x.v = last ? channels_first(g, x.v) : x.v;
    Sliding s = sliding(c, spatial_dims(g.type(x.v)), kernel_sizes(c, 3));
    Quantized w = quantized_input(c, 3, 4, 5);
    Value y = exact_conv(g, conv_attributes(c, s, DType::I32), x, w);
    if (c.has(8)) {
        y = ops::add(g, y, per_channel(g, c.in(8), s.count()));
    }
    Value scale = ops::mul(g, ops::reshape(g, x.scale, {}), w.scale);
    y = ops::dequantize(g, {1, 0, DType::F32}, y, scale);
    y = requantized(g, y, ops::reshape(g, c.in(6), {}), c.in(7));
    return {last ? channels_last(g, y) : y};
}

Values matmul_integer(NodeContext& c) {
    return {exact_matmul(c.g, {c.in(0), {}, c.optional(2)}, {c.in(1), {}, c.optional(3)})};
}

// A vector of row scales as a column.
Value row_scale(ingot::Graph& g, Value v) {
    const Dims d = ops::dims(g, v);
    if (product(d).is_const(1)) {
        return ops::reshape(g, v, {});
    }
    return d.size() == 1 ? ops::unsqueeze(g, v, {1}) : v;
}

Values qlinear_matmul(NodeContext& c) {
    ingot::Graph& g = c.g;
    Quantized a = quantized_input(c, 0, 1, 2);
    Quantized b = quantized_input(c, 3, 4, 5);
    Value y = exact_matmul(g, a, b);
    Value right = ops::cast(g, b.scale, DType::F32);
    right = product(ops::dims(g, right)).is_const(1) ? ops::reshape(g, right, {}) : right;
    Value scale = ops::mul(g, row_scale(g, ops::cast(g, a.scale, DType::F32)), right);
    if (g.type(scale).rank() <= 1) {
        y = ops::dequantize(g, {g.type(y).rank() - 1, 0, DType::F32}, y, scale);
    } else {
        y = ops::mul(g, ops::cast(g, y, DType::F32), scale);
    }
    return {requantized(g, y, c.in(6), c.in(7))};
}

const ImporterRow rows[] = {
    {"", "QuantizeLinear", 10, quantize, no_shapes},
    {"com.microsoft", "QuantizeLinear", 1, quantize, no_shapes},
    {"", "DequantizeLinear", 10, dequantize, no_shapes},
    {"com.microsoft", "DequantizeLinear", 1, dequantize, no_shapes},
    {"", "DynamicQuantizeLinear", 11, dynamic_quantize, no_shapes},
    {"", "ConvInteger", 10, conv_integer, no_shapes},
    {"", "QLinearConv", 10, qlinear_conv, no_shapes},
    {"com.microsoft", "QLinearConv", 1, qlinear_conv, no_shapes},
    {"", "MatMulInteger", 10, matmul_integer, no_shapes},
    {"", "QLinearMatMul", 10, qlinear_matmul, no_shapes},
};

} // namespace

extern const ImporterTable quantization_importers;
const ImporterTable quantization_importers = rows;

} // namespace ingot::onnx
