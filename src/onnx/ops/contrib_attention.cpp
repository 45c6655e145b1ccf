// SPDX-License-Identifier: Apache-2.0
// Attention operators of com.microsoft: Attention, MultiHeadAttention, GroupQueryAttention,
// RotaryEmbedding.
#include "base/error.h"
#include "onnx/ops/support/attention.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>
#include <limits>

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

// --- GroupQueryAttention

struct GroupQuery {
    int64_t heads = 1;
    int64_t groups = 1;
    Dim batch;
    Dim queries; // S
    Value past;  // i64 [B]: keys before this call's
    Heads h;
};

void check_group_query(const NodeContext& c) {
    if (c.s("k_quant_type", "NONE") != "NONE" || c.s("v_quant_type", "NONE") != "NONE") {
        c.refuse(RefusalKind::Attribute, "a quantised cache is not supported");
    }
    if (c.i("sliding_window_cache", 0) != 0) {
        c.refuse(RefusalKind::Attribute, "sliding_window_cache is not supported");
    }
    if (c.i("qk_output", 0) != 0 || c.wants(3)) {
        c.refuse(RefusalKind::Operator, "output 3 (output_qk) is not supported");
    }
}

GroupQuery group_query(NodeContext& c) {
    ingot::Graph& g = c.g;
    GroupQuery q;
    q.heads = positive(c, "num_heads");
    q.groups = positive(c, "kv_num_heads");
    c.ensure(c.rank(0) == 3 && q.heads % q.groups == 0, "query is ", c.type(0), " with ", q.heads,
             " heads in ", q.groups,
             " groups, expected rank 3 and a whole number of heads in each group");
    q.batch = c.dim(0, 0);
    q.queries = c.dim(0, 1);
    if (c.has(1)) {
        q.h = {split_heads(g, c.in(0), q.heads), split_heads(g, c.in(1), q.groups),
               split_heads(g, c.in(2), q.groups)};
    } else {
        Value all = split_heads(g, c.in(0), q.heads + 2 * q.groups);
        q.h = {ops::slice(g, all, 1, 0, q.heads), ops::slice(g, all, 1, q.heads, q.groups),
               ops::slice(g, all, 1, q.heads + q.groups, q.groups)};
    }
    if (c.has(1)) {
        const Dim& keys = c.dim(1, 1);
        c.ensure(!keys.is_const() || !q.queries.is_const() || keys == q.queries || keys.is_const(0),
                 "query and key are ", c.type(0), " and ", c.type(1),
                 ", expected sequences of one length, or no new keys");
    }
    c.ensure(!c.has(16) || (c.has(3) && c.i("causal", 1) != 0),
             "query_seqlens is given, expected a past and causal attention too");
    Value last = ops::reshape(g, to_i64(g, c.in(5)), {q.batch});
    Value before = c.has(16) ? ops::sub(g, ops::reshape(g, to_i64(g, c.in(16)), {q.batch}), 1.0)
                             : ops::dim_scalar(g, q.queries - Dim(1));
    q.past = ops::maximum(g, ops::sub(g, last, before), ops::scalar_i64(g, DType::I64, 0));
    return q;
}

void normalise_heads(NodeContext& c, GroupQuery& q) {
    c.ensure(c.has(14) == c.has(15), "q_norm_weight and k_norm_weight must come together");
    if (c.has(14)) {
        double both = c.f("qk_norm_epsilon", 1e-6F);
        q.h.q = ops::layer_norm(c.g, {-1, c.f("q_norm_epsilon", both), true}, q.h.q, c.in(14));
        q.h.k = ops::layer_norm(c.g, {-1, c.f("k_norm_epsilon", both), true}, q.h.k, c.in(15));
    }
}

// The positions of the rotation, [B or 1,S].
Value positions(NodeContext& c, const GroupQuery& q) {
    ingot::Graph& g = c.g;
    Value step = ops::iota(g, DType::I64, {1, q.queries}, 1);
    if (!c.has(9)) {
        return ops::add(g, ops::unsqueeze(g, q.past, {1}), step);
    }
    if (c.has(16)) {
        return c.in(9);
    }
    // A first prompt counts on from the first position of all.
    c.ensure(c.rank(9) == 2, "position_ids is ", c.type(9), ", expected [batch,sequence]");
    Value first = ops::slice(g, ops::slice(g, c.in(9), 0, 0, 1), 1, 0, 1);
    Value is_first = ops::equal(g, to_scalar(g, to_i64(g, c.in(6))), ops::dim_scalar(g, q.queries));
    return ops::select(g, is_first, ops::add(g, first, step), c.in(9));
}

void rotate(NodeContext& c, GroupQuery& q) {
    ingot::Graph& g = c.g;
    if (c.i("do_rotary", 0) == 0) {
        return;
    }
    Value position = positions(c, q);
    Value cos = ops::gather(g, c.in(7), position, 0);
    Value sin = ops::gather(g, c.in(8), position, 0);
    const Dim& half = c.dim(7, 1);
    int64_t rotated = half.is_const() ? 2 * half.value() : 0;
    bool interleaved = c.i("rotary_interleaved", 0) != 0;
    q.h.q = rotate_heads(g, q.h.q, cos, sin, rotated, interleaved);
    if (!ops::dims(g, q.h.k)[2].is_const(0)) {
        q.h.k = rotate_heads(g, q.h.k, cos, sin, rotated, interleaved);
    }
}

// The cache with `now` [B,G,S,D] written after each sequence's past: [B,G,T,D].
Value written(NodeContext& c, const GroupQuery& q, int past, Value now, const Dim& keys) {
    ingot::Graph& g = c.g;
    if (!c.has(past)) {
        return now;
    }
    Dims none(4, Dim(0));
    Dims more = none;
    more[2] = keys - c.dim(past, 2);
    return written_at(g, ops::pad(g, c.in(past), none, more), now, q.past);
}

Masks group_query_masks(NodeContext& c, const GroupQuery& q, const Dim& keys) {
    ingot::Graph& g = c.g;
    Value query = query_positions(g, q.queries, q.past);
    Value key = key_positions(g, keys);
    Masks m;
    if (c.i("causal", 1) != 0) {
        allow_only(g, m, not_above(g, key, query));
    } else {
        Value last = ops::unsqueeze(g, to_i64(g, c.in(5)), {1, 2, 3});
        allow_only(g, m, not_above(g, key, last));
    }
    int64_t window = c.i("local_window_size", -1);
    if (window >= 0) {
        Value oldest = ops::sub(g, query, ops::scalar_i64(g, DType::I64, window));
        allow_only(g, m, ops::less(g, oldest, key));
    }
    if (c.has(10)) { // it ends before the unused part of a buffer
        c.ensure(c.rank(10) == 4, "attention_bias is ", c.type(10), ", expected rank 4");
        Dims none(4, Dim(0));
        Dims more = none;
        more[3] = keys - c.dim(10, 3);
        add_bias(g, m, ops::pad(g, c.in(10), none, more));
    }
    return m;
}

// Adds a key that all queries see, with its own score and no value: it only takes a share of the
// softmax.
void add_sink(NodeContext& c, Heads& h, Masks& m) {
    bool smooth = c.i("smooth_softmax", 0) > 0;
    if (!c.has(11) && !smooth) {
        return;
    }
    ingot::Graph& g = c.g;
    Dims none(4, Dim(0));
    Dims one = none;
    one[2] = 1;
    h.k = ops::pad(g, h.k, none, one);
    h.v = ops::pad(g, h.v, none, one);
    Value bias = combined(g, m);
    if (g.type(bias).dtype == DType::Bool) {
        Value hidden = ops::scalar(g, DType::F32, -std::numeric_limits<double>::infinity());
        bias = ops::select(g, bias, ops::scalar(g, DType::F32, 0), hidden);
    }
    bias = ops::cast(g, bias, DType::F32);
    Value sink =
        c.has(11) ? ops::reshape(g, ops::cast(g, c.in(11), DType::F32), {1, c.i("num_heads"), 1, 1})
                  : ops::full(g, DType::F32, {1, 1, 1, 1}, 0);
    Dims shape = ops::dims(g, bias);
    shape[1] = ops::dims(g, sink)[1].is_const(1) ? shape[1] : ops::dims(g, sink)[1];
    Dims column = shape;
    column[3] = 1;
    std::array parts = {ops::broadcast_to(g, bias, shape), ops::broadcast_to(g, sink, column)};
    m = {{}, ops::concat(g, parts, 3)};
}

Values group_query_attention(NodeContext& c) {
    ingot::Graph& g = c.g;
    check_group_query(c);
    GroupQuery q = group_query(c);
    normalise_heads(c, q);
    rotate(c, q);
    Dim keys = q.queries;
    if (c.has(3)) {
        const Dims total = ops::dims_from(g, c.in(6));
        c.ensure(total.size() == 1, "total_sequence_length is ", c.type(6),
                 ", expected one integer");
        keys = max(c.dim(3, 2), total[0]);
    }
    Value k = written(c, q, 3, q.h.k, keys);
    Value v = written(c, q, 4, q.h.v, keys);
    Heads h{q.h.q, k, v};
    Masks masks = group_query_masks(c, q, keys);
    add_sink(c, h, masks);
    ops::Attention a;
    a.scale = attention_scale(g, c.f("scale", 0), h.q);
    a.softcap = c.f("softcap", 0);
    Value y = ops::attention(g, a, h.q, h.k, h.v, combined(g, masks));
    return {merge_heads(g, y), k, v};
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
    {"com.microsoft", "GroupQueryAttention", 1, group_query_attention, no_shapes},
    {"com.microsoft", "RotaryEmbedding", 1, rotary, no_shapes},
};

} // namespace

extern const ImporterTable contrib_attention_importers;
const ImporterTable contrib_attention_importers = rows;

} // namespace ingot::onnx
