// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of com.microsoft: attention of a decoder on a cache that it extends. The
// cache holds all keys so far, or those of a window.
#include "base/error.h"
#include "onnx/ops/support/attention.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>
#include <limits>

namespace ingot::onnx {

namespace {

struct Heads {
    Value q;
    Value k;
    Value v;
};

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
        // Columns first, so that a product writes each part where it belongs.
        Dim size = floor_div(c.dim(0, 2), q.heads + 2 * q.groups);
        auto part = [&](int64_t first, int64_t count) {
            Value columns = ops::slice(g, c.in(0), 2, Dim(first) * size, Dim(count) * size);
            return split_heads(g, columns, count);
        };
        q.h = {part(0, q.heads), part(q.heads, q.groups), part(q.heads + q.groups, q.groups)};
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

// --- caches

/// Keys and values that attention reads, and those that are kept for the next call.
struct Cache {
    Value k, v;           // [B,G,T,D]
    Value kept_k, kept_v; // the results
    Value position;       // i64 [1 or B,1,1,T]: of each key in the sequence
    Value used;           // bool, like position: false for rows that hold no key; may be invalid
};

// Input i as [B,G,C,D], with the sizes of `now` [B,G,S,D]: models may leave a cache's own ones
// open.
Value past_of(NodeContext& c, int i, Value now) {
    c.ensure(c.rank(i) == 4, "input ", i, " is ", c.type(i), ", expected rank 4");
    Dims d = ops::dims(c.g, now);
    d[2] = c.dim(i, 2);
    return ops::reshape(c.g, c.in(i), d);
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
    return written_at(g, ops::pad(g, past_of(c, past, now), none, more), now, q.past);
}

Cache whole_cache(NodeContext& c, const GroupQuery& q) {
    ingot::Graph& g = c.g;
    Dim keys = q.queries;
    if (c.has(3)) {
        const Dims total = ops::dims_from(g, c.in(6));
        c.ensure(total.size() == 1, "total_sequence_length is ", c.type(6),
                 ", expected one integer");
        keys = max(c.dim(3, 2), total[0]);
    }
    Value k = written(c, q, 3, q.h.k, keys);
    Value v = written(c, q, 4, q.h.v, keys);
    return {k, v, k, v, key_positions(g, keys), {}};
}

// How many of `total` keys, i64 [B], a cache of `capacity` keeps: the newest, a window of them at
// least. Room is made for several at once where it has more than the window.
Value kept_keys(ingot::Graph& g, Value total, const Dim& capacity, int64_t window) {
    Value step = ops::dim_scalar(g, capacity - Dim(window) + Dim(1));
    Value above = ops::sub(g, total, ops::dim_scalar(g, Dim(window)));
    Value steps = ops::div(g, ops::maximum(g, above, 0.0), step);
    // total > capacity drops ceil((total - capacity) / step) steps, others none.
    return ops::sub(g, total, ops::mul(g, steps, step));
}

// Rows [B,C] of x [B,G,N,D]: [B,G,C,D].
Value rows_of_each(ingot::Graph& g, Value x, Value rows) {
    const Dims d = ops::dims(g, x);
    Value first = ops::reshape(g, ops::iota(g, DType::I64, {d[0] * d[1]}, 0), {d[0], d[1], 1});
    first = ops::mul(g, first, ops::dim_scalar(g, d[2]));
    Value at = ops::add(g, first, ops::unsqueeze(g, rows, {1}));
    return ops::gather(g, ops::reshape(g, x, {d[0] * d[1] * d[2], d[3]}), at, 0);
}

// A cache of C rows, at least the window. Its first rows hold the newest keys, the oldest first;
// attention reads them and the new ones behind.
Cache window_cache(NodeContext& c, const GroupQuery& q, int64_t window) {
    ingot::Graph& g = c.g;
    c.ensure(window > 0 && c.has(3) && c.has(4) && c.i("causal", 1) != 0,
             "sliding_window_cache is 1, expected a local_window_size, a past, and causal "
             "attention");
    const Dim& capacity = c.dim(3, 2);
    c.ensure(!capacity.is_const() || capacity.value() >= window, "past_key is ", c.type(3),
             ", expected a window of ", window, " keys at least (local_window_size)");
    if (c.has(10)) {
        c.refuse(RefusalKind::Input,
                 "attention_bias is given and sliding_window_cache is 1; only one of them is "
                 "supported");
    }
    Value one = ops::scalar_i64(g, DType::I64, 1);
    Value total = ops::add(g, ops::reshape(g, to_i64(g, c.in(5)), {q.batch}), one);
    auto column = [&](Value v) { return ops::unsqueeze(g, v, {1}); };
    Value before = column(kept_keys(g, q.past, capacity, window));
    Value after = column(kept_keys(g, total, capacity, window));
    Value past = column(q.past);
    Value row = ops::iota(g, DType::I64, {1, capacity}, 1);
    Dims rows = {q.batch, capacity};
    Value old = ops::broadcast_to(g, ops::add(g, ops::sub(g, past, before), row), rows);
    Value added = ops::add(g, past, ops::iota(g, DType::I64, {1, q.queries}, 1));
    Value in_use = ops::broadcast_to(g, ops::less(g, row, before), rows);
    Value yes = ops::full(g, DType::Bool, {q.batch, q.queries}, 1);
    Cache out;
    // Rows that hold no key may be NaN, which a weight of 0 does not hide.
    auto all = [&](int i, Value now) {
        Value zero = ops::scalar(g, c.dtype(i), 0);
        Value cache = past_of(c, i, now);
        Value held = ops::select(g, ops::unsqueeze(g, in_use, {1, 3}), cache, zero);
        return ops::concat(g, std::array{held, now}, 2);
    };
    out.k = all(3, q.h.k);
    out.v = all(4, q.h.v);
    out.position = ops::unsqueeze(g, ops::concat(g, std::array{old, added}, 1), {1, 2});
    out.used = ops::unsqueeze(g, ops::concat(g, std::array{in_use, yes}, 1), {1, 2});
    // Where the keys that are kept lie now; rows behind them get any.
    Value position = ops::add(g, ops::sub(g, column(total), after), row);
    Value from = ops::sub(g, position, past);
    Value is_new = not_above(g, past, position);
    from = ops::add(g, from, ops::select(g, is_new, ops::dim_scalar(g, capacity), before));
    from = ops::minimum(g, from, ops::dim_scalar(g, capacity + q.queries - Dim(1)));
    out.kept_k = rows_of_each(g, out.k, from);
    out.kept_v = rows_of_each(g, out.v, from);
    return out;
}

Masks group_query_masks(NodeContext& c, const GroupQuery& q, const Cache& cache) {
    ingot::Graph& g = c.g;
    Value query = query_positions(g, q.queries, q.past);
    Value key = cache.position;
    Masks m;
    if (cache.used.valid()) {
        allow_only(g, m, cache.used);
    }
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
        more[3] = ops::dims(g, cache.k)[2] - c.dim(10, 3);
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
    bool windowed = c.i("sliding_window_cache", 0) != 0;
    Cache cache = windowed ? window_cache(c, q, c.i("local_window_size", -1)) : whole_cache(c, q);
    Heads h{q.h.q, cache.k, cache.v};
    Masks masks = group_query_masks(c, q, cache);
    add_sink(c, h, masks);
    ops::Attention a;
    a.scale = attention_scale(g, c.f("scale", 0), h.q);
    a.softcap = c.f("softcap", 0);
    Value y = ops::attention(g, a, h.q, h.k, h.v, combined(g, masks));
    return {merge_heads(g, y), cache.kept_k, cache.kept_v};
}

const ImporterRow rows[] = {
    {"com.microsoft", "GroupQueryAttention", 1, group_query_attention, no_shapes},
};

} // namespace

extern const ImporterTable contrib_group_query_importers;
const ImporterTable contrib_group_query_importers = rows;

} // namespace ingot::onnx
