// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft on weights in blocks of 4 and 8 bits that are no plain products:
// GatherBlockQuantized, whose rows are looked up before they are widened, and MatMulBnb4, whose
// codes stand for numbers of a table.
#include "base/error.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

// Bytes of two numbers each, the first in the low half, as u4: the last axis is twice as long.
Value nibbles(ingot::Graph& g, Value bytes) {
    Dims d = ops::dims(g, bytes);
    Value flat = ops::bitcast(g, ops::reshape(g, bytes, {product(d), 1}), DType::U4);
    d.back() = d.back() * Dim(2);
    return ops::reshape(g, flat, d);
}

// (data, indices, scales, [zero points])
Values gather_blocks(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t rank = c.rank(0);
    int64_t axis = normalize_axis(c.i("gather_axis", 0), rank);
    int64_t quantized = normalize_axis(c.i("quantize_axis", 1), rank);
    int64_t block = c.i("block_size", 128);
    int64_t bits = c.i("bits", 4);
    bool bytes = c.dtype(0) == DType::U8;
    if (axis == quantized) {
        c.refuse(RefusalKind::Attribute, "attributes 'gather_axis' and 'quantize_axis' are both ",
                 axis, "; rows are looked up across blocks only");
    }
    if (bytes && bits != 4 && bits != 8) {
        c.refuse(RefusalKind::Attribute, "attribute 'bits' is ", bits,
                 "; only 4 and 8 are supported");
    }
    c.ensure(c.rank(2) == rank, "scales are ", c.type(2), ", expected rank ", rank);
    bool packed = bytes && bits == 4;
    if (packed && axis == rank - 1) {
        c.refuse(RefusalKind::Attribute, "attribute 'gather_axis' is ", axis,
                 ", along which two numbers share a byte; gather along another axis");
    }
    // The looked-up rows replace `axis`: the axis of blocks moves by the rank of the indices.
    int64_t moved = quantized < axis ? quantized : quantized + c.rank(1) - 1;
    auto rows = [&](int i) {
        Value v = ops::gather_wrapped(g, c.in(i), c.in(1), axis);
        return packed && c.dtype(i) == DType::U8 ? nibbles(g, v) : v;
    };
    Value q = rows(0);
    Value scale = rows(2);
    Value zero;
    if (c.has(3)) {
        // Two zero points of a byte may be of one block and of padding.
        zero = rows(3);
        int64_t last = g.type(zero).rank() - 1;
        zero = ops::slice(g, zero, last, 0, ops::dims(g, scale).back());
    } else if (bytes) {
        zero = ops::full(g, g.type(q).dtype, ops::dims(g, scale), bits == 4 ? 8 : 128);
    }
    return {ops::dequantize(g, {moved, block, c.dtype(2)}, q, scale, zero)};
}

// (A, B: codes of the flat transposed weights, largest magnitudes of their blocks)
Values matmul_bnb4(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t k = positive(c, "K");
    int64_t n = positive(c, "N");
    int64_t block = positive(c, "block_size");
    int64_t kind = c.i("quant_type");
    c.ensure(kind == 0 || kind == 1, "attribute 'quant_type' is ", kind,
             ", expected 0 (FP4) or 1 (NF4)");
    c.ensure(c.rank(0) >= 1, "A is a scalar, expected rows of K = ", k, " elements");
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
    Value codes = ops::reshape(g, nibbles(g, ops::reshape(g, c.in(1), {bytes})), {bytes, 2});
    codes = ops::slice(g, ops::reshape(g, ops::reverse(g, codes, 1), {bytes * 2}), 0, 0, count);
    Value w =
        ops::gather(g, ops::constant(g, std::move(table)), ops::cast(g, codes, DType::I64), 0);
    Value most = ops::widen(g, ops::reshape(g, c.in(2), {blocks, 1}));
    most = ops::reshape(g, ops::broadcast_to(g, most, {blocks, block}), {blocks * block});
    w = ops::reshape(g, ops::mul(g, w, ops::slice(g, most, 0, 0, count)), {n, k});
    DType t = c.dtype(0);
    return {ops::dot(g, Dot{{}, {}, {c.rank(0) - 1}, {1}, t}, c.in(0), ops::cast(g, w, t))};
}

const ImporterRow rows[] = {
    {"com.microsoft", "GatherBlockQuantized", 1, gather_blocks, no_shapes},
    {"com.microsoft", "MatMulBnb4", 1, matmul_bnb4, no_shapes},
};

} // namespace

extern const ImporterTable contrib_blocks_importers;
const ImporterTable contrib_blocks_importers = rows;

} // namespace ingot::onnx
