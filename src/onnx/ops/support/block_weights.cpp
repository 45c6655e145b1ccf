// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/block_weights.h"

#include "base/error.h"
#include "onnx/ops/support/experts.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

namespace ingot::onnx {

namespace {

int64_t blocks_of(const BlockWeights& w) {
    return (w.k + w.block - 1) / w.block;
}

// [N, ceil(count*bits/8)] of packed unsigned numbers -> u4 or u8 [N, count].
Value unpacked_rows(ingot::Graph& g, Value bytes, const BlockWeights& w, int64_t count) {
    int64_t width = (count * w.bits + 7) / 8;
    Value v = unpacked_numbers(g, ops::reshape(g, bytes, {w.n, width}), w.bits);
    v = ops::slice(g, v, 1, 0, count);
    return w.bits == 2 ? ops::cast(g, v, DType::U4) : v;
}

// [N, blocks], of the numbers' type or floats.
Value zero_points(ingot::Graph& g, const BlockWeights& w, DType t) {
    int64_t blocks = blocks_of(w);
    if (!w.zero.valid()) {
        return ops::full(g, t, {w.n, blocks}, static_cast<double>(int64_t{1} << (w.bits - 1)));
    }
    return is_float(g.type(w.zero).dtype) ? ops::reshape(g, w.zero, {w.n, blocks})
                                          : unpacked_rows(g, w.zero, w, blocks);
}

// Whether each row is of the block where it lies.
bool in_order(const ingot::Graph& g, const BlockWeights& w) {
    const ingot::Tensor* t = w.group.valid() ? g.constant(w.group) : nullptr;
    bool same = t != nullptr && t->count() >= w.k;
    for (int64_t i = 0; same && i < w.k; ++i) {
        same = t->get_i64(i) == i / w.block;
    }
    return same || !w.group.valid();
}

// The weights [N,K] in floats, by a scale and a zero point for each element.
Value by_elements(ingot::Graph& g, const BlockWeights& w, Value q, DType t) {
    Value group = w.group;
    if (!group.valid()) {
        group = ops::div(g, ops::iota(g, DType::I64, {Dim(w.k)}, 0), static_cast<double>(w.block));
    }
    group = ops::slice(g, group, 0, 0, w.k);
    auto each = [&](Value v) { return ops::gather(g, ops::cast(g, v, DType::F32), group, 1); };
    Value v = ops::sub(g, ops::cast(g, q, DType::F32), each(zero_points(g, w, DType::F32)));
    v = ops::mul(g, v, each(ops::reshape(g, w.scale, {w.n, blocks_of(w)})));
    return ops::cast(g, v, t);
}

bool is_empty(const ingot::Graph& g, Value v) {
    for (const Dim& d : ops::dims(g, v)) {
        if (d.is_const(0)) {
            return true;
        }
    }
    return false;
}

} // namespace

BlockWeights block_weights(const NodeContext& c, std::string_view n) {
    BlockWeights w;
    w.n = positive(c, n);
    w.k = positive(c, "K");
    w.bits = c.i("bits", 4);
    w.block = positive(c, "block_size");
    if (w.bits != 2 && w.bits != 4 && w.bits != 8) {
        c.refuse(RefusalKind::Attribute, "attribute 'bits' is ", w.bits,
                 "; only 2, 4 and 8 are supported");
    }
    if (c.i("weight_prepacked", 0) != 0) {
        c.refuse(RefusalKind::Attribute, "attribute 'weight_prepacked' is ",
                 c.i("weight_prepacked", 0),
                 ": the weights are in the layout of another provider's kernels; export them with "
                 "weight_prepacked=0");
    }
    return w;
}

Value block_product(const NodeContext& c, Value x, const BlockWeights& w) {
    ingot::Graph& g = c.g;
    const Type in = g.type(x);
    c.ensure(in.rank() >= 1, "A is a scalar, expected rows of K = ", w.k, " elements");
    Value y;
    if (is_empty(g, w.packed)) { // left out: all products are 0
        Dims out = in.dims;
        out.back() = w.n;
        y = ops::full(g, in.dtype, out, 0);
    } else {
        Value q = unpacked_rows(g, w.packed, w, blocks_of(w) * w.block);
        q = ops::slice(g, q, 1, 0, w.k);
        Value zero = zero_points(g, w, g.type(q).dtype);
        Value scale = ops::reshape(g, w.scale, {w.n, blocks_of(w)});
        Value v = in_order(g, w) && !is_float(g.type(zero).dtype)
                      ? ops::dequantize(g, {1, w.block, in.dtype}, q, scale, zero)
                      : by_elements(g, w, q, in.dtype);
        y = ops::dot(g, Dot{{}, {}, {in.rank() - 1}, {1}, in.dtype}, x, v);
    }
    return w.bias.valid() ? ops::add(g, y, w.bias) : y;
}

} // namespace ingot::onnx
