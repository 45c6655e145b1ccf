// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft on weights in blocks, of 8 bits and fewer, beside MatMulNBits:
// GatherBlockQuantized, whose rows are looked up before they are widened, and products with codes
// of a table, with f8, and with a blob.
#include "base/error.h"
#include "onnx/ops/support/experts.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

// --- GatherBlockQuantized

struct Blocks {
    int64_t axis = 0; // along which rows are looked up
    int64_t quantized = 1;
    int64_t size = 0; // 0: all elements along the quantised axis
    int64_t bits = 4; // of numbers in bytes
};

Blocks blocks_of(const NodeContext& c) {
    Blocks b;
    b.axis = normalize_axis(c.i("gather_axis", 0), c.rank(0));
    b.quantized = normalize_axis(c.i("quantize_axis", 1), c.rank(0));
    b.size = c.i("block_size", 128);
    b.bits = c.i("bits", 4);
    bool floats = is_float(c.dtype(0));
    if (b.axis == b.quantized) {
        c.refuse(RefusalKind::Attribute, "attributes 'gather_axis' and 'quantize_axis' are both ",
                 b.axis, "; rows are looked up across blocks only");
    }
    if (c.dtype(0) == DType::U8) {
        c.ensure(b.bits == 2 || b.bits == 4 || b.bits == 8, "attribute 'bits' is ", b.bits,
                 ", expected 2, 4 or 8");
        c.ensure(b.axis == 0, "attribute 'gather_axis' is ", b.axis, ", expected 0 for ",
                 c.type(0));
    }
    c.ensure(b.size >= (floats ? 0 : 1), "attribute 'block_size' is ", b.size,
             ", expected a positive number, or 0 for floats");
    c.ensure(!floats || !c.has(3), "zero points are given for ", c.type(0),
             ", expected none for floats");
    c.ensure(c.rank(2) == c.rank(0), "scales are ", c.type(2), ", expected rank ", c.rank(0));
    return b;
}

// Those of floats may be shared along an axis, where they have size 1.
Value scales_of_rows(const NodeContext& c, const Blocks& b) {
    if (!is_float(c.dtype(0))) {
        return c.in(2);
    }
    Dims shape = c.type(0).dims;
    auto at = static_cast<size_t>(b.quantized);
    shape[at] = c.dim(2, b.quantized);
    return ops::broadcast_to(c.g, c.in(2), shape);
}

// Scales of rows, 0 where the index is out of range: so is the row.
Value in_range(const NodeContext& c, Value scale, int64_t axis, const Dim& count) {
    ingot::Graph& g = c.g;
    Value index = c.in(1);
    DType t = c.dtype(1);
    Value inside = ops::binary(
        g, ExprOp::And, ops::binary(g, ExprOp::Le, ops::dim_scalar(g, Dim(0) - count, t), index),
        ops::less(g, index, ops::dim_scalar(g, count, t)));
    for (int64_t i = axis + c.rank(1); i < g.type(scale).rank(); ++i) {
        inside = ops::unsqueeze(g, inside, {-1});
    }
    return ops::select(g, inside, scale, ops::scalar(g, g.type(scale).dtype, 0));
}

// (data, indices, scales, [zero points])
Values gather_blocks(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Blocks b = blocks_of(c);
    DType t = c.dtype(2);
    bool bytes = c.dtype(0) == DType::U8;
    const Dim count = c.dim(0, b.axis);
    Value most = ops::dim_scalar(g, count - Dim(1), c.dtype(1));
    Value index = ops::minimum(g, ops::maximum(g, ops::wrap_indices(g, c.in(1), count), 0.0), most);
    auto rows = [&](Value v) {
        bool packed = bytes && g.type(v).dtype == DType::U8;
        v = ops::gather(g, v, index, b.axis);
        return packed ? unpacked_numbers(g, v, b.bits) : v;
    };
    Value q = rows(c.in(0));
    Value scale = in_range(c, rows(scales_of_rows(c, b)), b.axis, count);
    if (b.size == 0) {
        Value y = ops::mul(g, ops::cast(g, q, DType::F32), ops::widen(g, scale));
        return {ops::cast(g, y, t)};
    }
    Value zero;
    if (c.has(3)) {
        // The last byte may hold zero points of padding.
        zero = rows(c.in(3));
        int64_t last = g.type(zero).rank() - 1;
        zero = ops::slice(g, zero, last, 0, ops::dims(g, scale).back());
    } else if (bytes) {
        auto middle = static_cast<double>(int64_t{1} << (b.bits - 1));
        zero = ops::full(g, g.type(q).dtype, ops::dims(g, scale), middle);
    }
    // The looked-up rows replace the axis: the axis of blocks moves by the rank of the indices.
    int64_t moved = b.quantized < b.axis ? b.quantized : b.quantized + c.rank(1) - 1;
    return {ops::dequantize(g, {moved, b.size, t}, q, scale, zero)};
}

// --- products

// (A, B: codes of the flat transposed weights, largest magnitudes of their blocks)
Values matmul_bnb4(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t k = positive(c, "K");
    int64_t n = positive(c, "N");
    int64_t block = positive(c, "block_size");
    int64_t kind = c.i("quant_type");
    c.ensure(kind == 0 || kind == 1, "attribute 'quant_type' is ", kind,
             ", expected 0 (FP4) or 1 (NF4)");
    bool transposed = c.i("transB", 1) != 0;
    c.ensure(c.rank(0) >= 1, "A is a scalar, expected rows of ", transposed ? k : n, " elements");
    constexpr std::array<std::array<float, 16>, 2> tables = {
        {{0.0F, 5.208333333e-03F, 0.66666667F, 1.0F, 0.33333333F, 0.5F, 0.16666667F, 0.25F, -0.0F,
          -5.208333333e-03F, -0.66666667F, -1.0F, -0.33333333F, -0.5F, -0.16666667F, -0.25F},
         {-1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F,
          -0.28444138169288635F, -0.18477343022823334F, -0.09105003625154495F, 0.0F,
          0.07958029955625534F, 0.16093020141124725F, 0.24611230194568634F, 0.33791524171829224F,
          0.44070982933044434F, 0.5626170039176941F, 0.7229568362236023F, 1.0F}}};
    ingot::Tensor table = ingot::Tensor::empty(DType::F32, {16});
    for (int64_t i = 0; i < 16; ++i) {
        table.set_f64(i, tables.at(static_cast<size_t>(kind)).at(static_cast<size_t>(i)));
    }
    int64_t count = k * n;
    int64_t blocks = (count + block - 1) / block;
    int64_t bytes = (count + 1) / 2;
    // The first of two codes lies in the high half of its byte.
    Value codes = unpacked_numbers(g, ops::reshape(g, c.in(1), {bytes, 1}), 4);
    codes = ops::slice(g, ops::reshape(g, ops::reverse(g, codes, 1), {bytes * 2}), 0, 0, count);
    Value w =
        ops::gather(g, ops::constant(g, std::move(table)), ops::cast(g, codes, DType::I64), 0);
    Value most = ops::widen(g, ops::reshape(g, c.in(2), {blocks, 1}));
    most = ops::reshape(g, ops::broadcast_to(g, most, {blocks, block}), {blocks * block});
    w = ops::reshape(g, ops::mul(g, w, ops::slice(g, most, 0, 0, count)), {n, k});
    DType t = c.dtype(0);
    Dot d{{}, {}, {c.rank(0) - 1}, {transposed ? 1 : 0}, t};
    return {ops::dot(g, d, c.in(0), ops::cast(g, w, t))};
}

// (A, B: f8 [N,K], scales [N,blocks], [scale of A], [bias])
Values matmul_fp8_blocks(NodeContext& c) {
    ingot::Graph& g = c.g;
    DType t = c.dtype(0);
    c.ensure(c.rank(0) >= 1 && c.rank(1) == 2, "operands are ", c.type(0), " and ", c.type(1),
             ", expected [...,K] and [N,K]");
    Value a = c.in(0);
    if (c.has(3)) {
        Value scale = to_scalar(g, c.in(3));
        a = ops::quantize(g, {0, 0, c.dtype(1), true}, ops::widen(g, a), scale);
        a = ops::dequantize(g, {0, 0, t}, a, scale);
    }
    Value w = ops::dequantize(g, {1, positive(c, "block_size", 128), t}, c.in(1), c.in(2));
    Value y = ops::dot(g, Dot{{}, {}, {c.rank(0) - 1}, {1}, t}, a, w);
    return {c.has(4) ? ops::add(g, y, c.in(4)) : y};
}

// (A, B: a blob, [K,N]). For each of N columns and each 32 rows, the blob has a scale in f32, for
// type 1 a zero point in a byte, and 16 bytes: their low halves are the first 16 numbers.
Values matmul_fpq4(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t type = c.i("blk_quant_type", 1);
    if (type != 0 && type != 1) {
        c.refuse(RefusalKind::Attribute, "attribute 'blk_quant_type' is ", type,
                 "; only 0 and 1 are supported");
    }
    constexpr int64_t block = 32;
    const Dims shape = sizes_input(c, 2, 2);
    const Dim blocks = ceil_div(shape[0], block);
    int64_t start = 4 + type;
    Value blob = ops::reshape(g, c.in(1), {shape[1], blocks, Dim(start + block / 2)});
    Value scale = ops::bitcast(g, ops::slice(g, blob, 2, 0, 4), DType::F32);
    Value q = unpacked_numbers(g, ops::slice(g, blob, 2, start, block / 2), 4);
    q = ops::reshape(g, q, {shape[1], blocks, block / 2, 2});
    q = ops::reshape(g, ops::permute(g, q, {0, 1, 3, 2}), {shape[1], blocks * Dim(block)});
    Value zero = type == 0 ? ops::full(g, DType::U4, {shape[1], blocks}, 8)
                           : ops::cast(g, ops::slice(g, blob, 2, 4, 1), DType::U4);
    zero = ops::reshape(g, zero, {shape[1], blocks});
    scale = ops::reshape(g, scale, {shape[1], blocks});
    DType t = c.dtype(0);
    Value w = ops::dequantize(g, {1, block, t}, ops::slice(g, q, 1, 0, shape[0]), scale, zero);
    c.ensure(c.rank(0) >= 1, "A is a scalar, expected rows of K = ", shape[0], " elements");
    return {ops::dot(g, Dot{{}, {}, {c.rank(0) - 1}, {1}, t}, c.in(0), w)};
}

const ImporterRow rows[] = {
    {"com.microsoft", "GatherBlockQuantized", 1, gather_blocks, no_shapes},
    {"com.microsoft", "MatMulBnb4", 1, matmul_bnb4, no_shapes},
    {"com.microsoft", "MatMulBlockQuantizedFp8Weight", 1, matmul_fp8_blocks, no_shapes},
    {"com.microsoft", "MatMulFpQ4", 1, matmul_fpq4, shape_inputs({2})},
};

} // namespace

extern const ImporterTable contrib_blocks_importers;
const ImporterTable contrib_blocks_importers = rows;

} // namespace ingot::onnx
