// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft on batches without padding: RemovePadding, RestorePadding,
// PackedAttention, PackedMultiHeadAttention.
#include "base/error.h"
#include "onnx/ops/support/attention.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/packing.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

// (input [B,S,D], number of tokens of each sequence [B]) -> rows of the tokens, places of tokens
// and padding, sums of the numbers [B+1], the largest number
Values remove_padding(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Dims d = c.type(0).dims;
    c.ensure(d.size() == 3 && c.rank(1) == 1, "inputs are ", c.type(0), " and ", c.type(1),
             ", expected [batch,sequence,hidden] and [batch]");
    Value count = ops::reshape(g, c.in(1), {d[0]});
    Value step = ops::iota(g, DType::I64, {1, d[1]}, 1);
    Value is_token = ops::less(g, step, ops::unsqueeze(g, to_i64(g, count), {1}));
    Value is_padding = ops::flatten(g, ops::cast(g, ops::logical_not(g, is_token), DType::I32));
    Value places = ops::reshape(g, ops::sort(g, is_padding, 0, false)[1], {d[0], d[1]});
    Value all = ops::reduce_sum(g, to_i64(g, is_token), {0, 1});
    Value y = without_padding(g, c.in(0), places, ops::dims_from(g, all)[0]);
    DType t = c.dtype(1);
    std::array sums = {ops::full(g, t, {1}, 0), ops::scan(g, {"sum", 0}, count)};
    Value most = ops::reduce_max(g, count, {0}, true);
    return {y, ops::cast(g, places, t), ops::concat(g, sums, 0), most};
}

Values restore_padding(NodeContext& c) {
    return {with_padding(c.g, c.in(0), c.in(1))};
}

// q, k and v are rows of tokens. Inputs `offset` and the two behind it: the places of the tokens,
// sums of the sequences' lengths, a bias of the scores.
Value packed_attention(NodeContext& c, const std::array<Value, 3>& qkv, int offset) {
    ingot::Graph& g = c.g;
    int64_t heads = positive(c, "num_heads");
    std::array<Value, 3> padded;
    for (size_t i = 0; i < qkv.size(); ++i) {
        padded[i] = split_heads(g, with_padding(g, qkv[i], c.in(offset)), heads);
    }
    Dim batch = c.dim(offset, 0);
    Value sums = ops::reshape(g, to_i64(g, c.in(offset + 1)), {batch + Dim(1)});
    Value length = ops::sub(g, ops::slice(g, sums, 0, 1, batch), ops::slice(g, sums, 0, 0, batch));
    Masks masks;
    allow_only(
        g, masks,
        ops::less(g, key_positions(g, c.dim(offset, 1)), ops::unsqueeze(g, length, {1, 2, 3})));
    if (c.has(offset + 2)) {
        add_bias(g, masks, c.in(offset + 2));
    }
    ops::Attention a;
    a.scale = attention_scale(g, c.f("scale", 0), padded[0]);
    Value y = ops::attention(g, a, padded[0], padded[1], padded[2], combined(g, masks));
    return without_padding(g, merge_heads(g, y), c.in(offset), ops::dims(g, qkv[0])[0]);
}

// (input [tokens,D], weights, bias, ...)
Values packed_self_attention(NodeContext& c) {
    ingot::Graph& g = c.g;
    Value all = ops::add(g, ops::matmul(g, c.in(0), c.in(1)), c.in(2));
    const Dims d = ops::dims(g, all);
    c.ensure(d.size() == 2, "input is ", c.type(0), ", expected [tokens,hidden]");
    std::array<Dim, 3> sizes;
    sizes.fill(floor_div(d[1], 3));
    if (std::vector<int64_t> given = c.ints("qkv_hidden_sizes"); !given.empty()) {
        c.ensure(given.size() == 3, "attribute 'qkv_hidden_sizes' has ", given.size(),
                 " entries, expected 3");
        sizes = {given[0], given[1], given[2]};
    }
    Dim from = 0;
    std::array<Value, 3> qkv;
    for (size_t i = 0; i < qkv.size(); ++i) {
        qkv[i] = ops::slice(g, all, 1, from, sizes[i]);
        from = from + sizes[i];
    }
    c.ensure(!from.is_const() || !d[1].is_const() || from == d[1], "the projection has ", d[1],
             " columns, but queries, keys and values are ", from, " wide together");
    return {packed_attention(c, qkv, 3)};
}

// (queries [tokens,D], keys, values, bias, ...), or queries, keys and values as [tokens,H,3,D].
// Padding gets no weight at all, so that attribute mask_filter_value does not matter.
Values packed_multi_head_attention(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::array<Value, 3> qkv;
    if (c.rank(0) == 4) {
        c.ensure(!c.has(1) && !c.has(2), "query is ", c.type(0),
                 ", which holds keys and values too; expected no inputs key and value");
        const Dims d = c.type(0).dims;
        for (size_t i = 0; i < qkv.size(); ++i) {
            Value part = ops::slice(g, c.in(0), 2, static_cast<int64_t>(i), 1);
            qkv[i] = ops::reshape(g, part, {d[0], d[1] * d[3]});
        }
    } else {
        qkv = {c.in(0), c.in(1), c.in(2)};
    }
    Dim from = 0;
    for (Value& v : qkv) {
        c.ensure(g.type(v).rank() == 2, "query is ", c.type(0),
                 ", expected [tokens,hidden], or [tokens,heads,3,size] without key and value");
        Dim size = ops::dims(g, v)[1];
        v = c.has(3) ? ops::add(g, v, ops::slice(g, c.in(3), 0, from, size)) : v;
        from = from + size;
    }
    return {packed_attention(c, qkv, 4)};
}

const ImporterRow rows[] = {
    {"com.microsoft", "RemovePadding", 1, remove_padding, no_shapes},
    {"com.microsoft", "RestorePadding", 1, restore_padding, no_shapes},
    {"com.microsoft", "PackedAttention", 1, packed_self_attention, no_shapes},
    {"com.microsoft", "PackedMultiHeadAttention", 1, packed_multi_head_attention, no_shapes},
};

} // namespace

extern const ImporterTable contrib_packed_importers;
const ImporterTable contrib_packed_importers = rows;

} // namespace ingot::onnx
