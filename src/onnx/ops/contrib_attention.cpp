// SPDX-License-Identifier: Apache-2.0
// Attention operators of com.microsoft: Attention, MultiHeadAttention, RotaryEmbedding.
#include "base/error.h"
#include "onnx/ops/support/attention.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

// Past keys and values followed by new ones, [B,H,T,D].
struct Cache {
    Value k;
    Value v;
    Dim past = 0;
};

Value joined(ingot::Graph& g, Value past, Value now) {
    std::array parts = {past, now};
    return ops::concat(g, parts, 2);
}

// --- Attention

// present: [2,B,H,T,D]
Value stacked(ingot::Graph& g, Value k, Value v) {
    std::array parts = {ops::unsqueeze(g, k, {0}), ops::unsqueeze(g, v, {0})};
    return ops::concat(g, parts, 0);
}

Values attention(NodeContext& c) {
    ingot::Graph& g = c.g;
    if (c.i("past_present_share_buffer", 0) != 0 || c.i("do_rotary", 0) != 0) {
        c.refuse(RefusalKind::Attribute,
                 "past_present_share_buffer and do_rotary are not supported");
    }
    int64_t heads = positive(c, "num_heads");
    Value qkv = ops::matmul(g, c.in(0), c.in(1));
    qkv = c.has(2) ? ops::add(g, qkv, c.in(2)) : qkv;
    const Dims d = ops::dims(g, qkv);
    c.ensure(d.size() == 3, "input is ", c.type(0), ", expected [batch,sequence,hidden]");
    Dims sizes(3, floor_div(d[2], 3));
    if (std::vector<int64_t> given = c.ints("qkv_hidden_sizes"); !given.empty()) {
        c.ensure(given.size() == 3, "attribute 'qkv_hidden_sizes' has ", given.size(),
                 " entries, expected 3");
        sizes.assign(given.begin(), given.end());
    }
    Dim from = 0;
    Values parts;
    for (const Dim& size : sizes) {
        parts.push_back(split_heads(g, ops::slice(g, qkv, 2, from, size), heads));
        from = from + size;
    }
    Cache cache{parts[1], parts[2], 0};
    if (c.has(4)) {
        auto half = [&](int64_t i) {
            return ops::squeeze(g, ops::slice(g, c.in(4), 0, i, 1), {0});
        };
        cache = {joined(g, half(0), parts[1]), joined(g, half(1), parts[2]), c.dim(4, 3)};
    }
    Masks masks;
    if (c.has(3)) {
        add_key_mask(c, masks, c.in(3), d[0], ops::dims(g, cache.k)[2]);
    }
    if (c.has(5)) {
        add_bias(g, masks, c.in(5));
    }
    ops::Attention a;
    a.scale = attention_scale(g, c.f("scale", 0), parts[0]);
    a.causal = c.i("unidirectional", 0) != 0;
    a.offset = a.causal ? cache.past : Dim(0);
    Value y = ops::attention(g, a, parts[0], cache.k, cache.v, combined(g, masks));
    return {merge_heads(g, y), c.wants(1) ? stacked(g, cache.k, cache.v) : Value{}};
}

// --- MultiHeadAttention

// Part i of the packed axis of x [B,S,H,n,D] as [B,H,S,D].
Value packed_part(ingot::Graph& g, Value x, int64_t i) {
    Value part = ops::squeeze(g, ops::slice(g, x, 3, i, 1), {3});
    return ops::permute(g, part, {0, 2, 1, 3});
}

// x [B,S,H*D] plus its part of the bias, as heads; `from` is the part's offset.
Value biased_heads(NodeContext& c, Value x, const Dim& from, int64_t heads) {
    if (c.has(3)) {
        Dim size = ops::dims(c.g, x).back();
        x = ops::add(c.g, x, ops::slice(c.g, c.in(3), 0, from, size));
    }
    return split_heads(c.g, x, heads);
}

struct Heads {
    Value q;
    Value k;
    Value v;
};

Heads heads_of(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t heads = positive(c, "num_heads");
    if (c.rank(0) == 5) {
        c.ensure(!c.has(3), "packed query, key and value do not go with a bias");
        return {packed_part(g, c.in(0), 0), packed_part(g, c.in(0), 1), packed_part(g, c.in(0), 2)};
    }
    Dim hidden = c.dim(0, 2);
    Value q = biased_heads(c, c.in(0), 0, heads);
    if (c.rank(1) == 5) {
        c.ensure(!c.has(3), "packed key and value do not go with a bias");
        return {q, packed_part(g, c.in(1), 0), packed_part(g, c.in(1), 1)};
    }
    if (c.rank(1) == 4) { // keys and values of another sequence, unchanged since the first step
        return {q, c.in(1), c.in(2)};
    }
    return {q, biased_heads(c, c.in(1), hidden, heads),
            biased_heads(c, c.in(2), Dim(2) * hidden, heads)};
}

Values multi_head_attention(NodeContext& c) {
    ingot::Graph& g = c.g;
    if (c.has(8) || c.has(9)) {
        c.refuse(RefusalKind::Input,
                 "inputs past_sequence_length and cache_indirection are not supported");
    }
    if (c.wants(3) && c.i("unidirectional", 0) != 0) {
        c.refuse(RefusalKind::Operator, "output 3 (qk) is wanted and attribute 'unidirectional' is "
                                        "1; only 0 is supported");
    }
    Heads h = heads_of(c);
    Dim past = 0;
    if (c.has(6)) {
        past = c.dim(6, 2);
        h.k = joined(g, c.in(6), h.k);
        h.v = joined(g, c.in(7), h.v);
    }
    Masks masks;
    if (c.has(4)) {
        add_key_mask(c, masks, c.in(4), ops::dims(g, h.k)[0], ops::dims(g, h.k)[2]);
    }
    if (c.has(5)) {
        add_bias(g, masks, c.in(5));
    }
    ops::Attention a;
    a.scale = attention_scale(g, c.f("scale", 0), h.q);
    a.causal = c.i("unidirectional", 0) != 0;
    a.offset = a.causal ? past : Dim(0);
    Value y = ops::attention(g, a, h.q, h.k, h.v, combined(g, masks));
    Value scores = c.wants(3) ? biased_scores(g, h.q, h.k, a.scale, masks.bias) : Value{};
    return {merge_heads(g, y), h.k, h.v, scores};
}

// --- RotaryEmbedding

Values rotary(NodeContext& c) {
    ingot::Graph& g = c.g;
    // Attribute is_packed_batching only lets a sequence be longer than the tables.
    if (c.f("scale", 1) != 1) {
        c.refuse(RefusalKind::Attribute, "attribute 'scale' is ", c.f("scale", 1),
                 "; only 1 is supported");
    }
    const Dim& half = c.dim(2, 1);
    int64_t rotated = c.i("rotary_embedding_dim", 0);
    int64_t heads = c.i("num_heads", 0);
    bool packed = c.rank(0) == 3;
    c.ensure(packed || c.rank(0) == 4, "input is ", c.type(0), ", expected rank 3 or 4");
    Value x = c.in(0);
    if (packed) {
        if (heads == 0) {
            const Dim& size = c.dim(0, 2);
            if (!half.is_const() || half.is_const(0) || !size.is_const()) {
                c.refuse(RefusalKind::Dynamic, "num_heads is not given, and the sizes of ",
                         c.type(0), " and ", c.type(2), " do not tell it");
            }
            heads = size.value() / (2 * half.value());
        }
        x = split_heads(g, x, heads);
    }
    const Dims d = ops::dims(g, x);
    Value position = to_i64(g, c.in(1));
    if (c.rank(1) == 1) { // where the sequence starts
        Value step = ops::iota(g, DType::I64, {1, d[2]}, 1);
        position = ops::add(g, ops::reshape(g, position, {1, 1}), step);
    }
    Value y =
        rotate_heads(g, x, ops::gather(g, c.in(2), position, 0),
                     ops::gather(g, c.in(3), position, 0), rotated, c.i("interleaved", 0) != 0);
    return {packed ? merge_heads(g, y) : y};
}

const ImporterRow rows[] = {
    {"com.microsoft", "Attention", 1, attention, no_shapes},
    {"com.microsoft", "MultiHeadAttention", 1, multi_head_attention, no_shapes},
    {"com.microsoft", "RotaryEmbedding", 1, rotary, no_shapes},
};

} // namespace

extern const ImporterTable contrib_attention_importers;
const ImporterTable contrib_attention_importers = rows;

} // namespace ingot::onnx
