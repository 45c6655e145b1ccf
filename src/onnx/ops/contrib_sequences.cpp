// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft on what sequences carry on from call to call: a convolution over
// tokens one after the other, and hashes of n-grams (Engram).
#include "base/error.h"
#include "onnx/ops/support/gates.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/sequences.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

Value number(ingot::Graph& g, int64_t v) {
    return ops::scalar_i64(g, DType::I64, v);
}

// --- VarlenCausalConvWithState

// i64 [1,capacity,1,...] of `rank` axes.
Value each_update(ingot::Graph& g, int64_t capacity, int64_t rank) {
    Dims d(static_cast<size_t>(rank), Dim(1));
    d[1] = capacity;
    return ops::iota(g, DType::I64, d, 1);
}

// The rows of each sequence's first tokens, as many as are kept, then zeros: [B,capacity,C].
Value first_rows(ingot::Graph& g, const Sequences& s, Value rows, Value counts, int64_t capacity) {
    Value step = each_update(g, capacity, 2);
    Value last = ops::sub(g, ops::dim_scalar(g, ops::dims(g, rows)[0]), number(g, 1));
    Value token = ops::add(g, ops::unsqueeze(g, s.begins, {1}), step);
    Value y = ops::gather(g, rows, ops::minimum(g, token, last), 0);
    Value kept = ops::less(g, step, ops::unsqueeze(g, updates_kept(g, s, counts), {1}));
    return ops::select(g, ops::unsqueeze(g, kept, {2}), y, ops::scalar(g, g.type(y).dtype, 0));
}

// (x [tokens,C], weight [C,1,taps], offsets, [bias], state [B,C,carried], [counts])
Values varlen_causal_conv(NodeContext& c) {
    ingot::Graph& g = c.g;
    if (c.has(6) || c.has(7)) {
        c.refuse(RefusalKind::Input, "inputs 6 and 7 (kernel_delta, previous_mask) are given; only "
                                     "one kernel for all tokens is supported");
    }
    std::string activation = c.s("activation", "none");
    c.ensure(activation == "none" || activation == "silu" || activation == "swish",
             "attribute 'activation' is '", activation, "', expected 'silu', 'swish' or 'none'");
    int64_t capacity = update_capacity(c, 5, 2);
    c.ensure(c.rank(0) == 2 && c.rank(1) == 3 && c.rank(4) == 3, "input, weight and state are ",
             c.type(0), ", ", c.type(1), " and ", c.type(4),
             ", expected [tokens,channels], [channels,1,taps] and [batch,channels,carried]");
    int64_t taps = kernel_sizes(c, 1).at(0);
    int64_t dilation = positive(c, "dilation", 1);
    const Dim carried = c.dim(4, 2);
    c.ensure(!carried.is_const() || carried.is_const((taps - 1) * dilation), "state is ", c.type(4),
             ", expected ", (taps - 1) * dilation, " rows to carry");
    Sequences s = sequences_of(c, 2, c.dim(0, 0));
    Value state = ops::permute(g, c.in(4), {0, 2, 1});
    CarriedRows rows = carried_rows(g, state, c.in(0));
    Value y;
    for (int64_t tap = 0; tap < taps; ++tap) {
        Value place = ops::sub(g, s.place, number(g, (taps - 1 - tap) * dilation));
        Value weight = ops::reshape(g, ops::slice(g, c.in(1), 2, tap, 1), {c.dim(1, 0)});
        Value x = ops::widen(g, rows_at(g, rows, s, s.sequence, place));
        Value part = ops::mul(g, x, ops::widen(g, weight));
        y = y.valid() ? ops::add(g, y, part) : part;
    }
    y = c.has(3) ? ops::add(g, y, ops::widen(g, c.in(3))) : y;
    y = activation == "none" ? y : silu(g, y);
    Value update = c.wants(2) ? first_rows(g, s, c.in(0), c.in(5), capacity) : Value{};
    return {ops::cast(g, y, c.dtype(0)), ops::permute(g, carried_on(g, rows, s), {0, 2, 1}),
            update};
}

// --- n-grams

/// Attributes and inputs of both hashes: (ids, multipliers, vocabulary sizes, ...).
struct NGrams {
    int64_t most = 2;  // tokens
    int64_t heads = 1; // of each n
    Value fill;        // stands for tokens that are not there
    Value end;         // resets the history, or invalid
};

NGrams ngrams_of(NodeContext& c, int end) {
    NGrams n;
    n.most = positive(c, "max_ngram_size");
    n.heads = positive(c, "n_head_per_ngram");
    if (n.most < 2 || n.most > 64) {
        c.refuse(RefusalKind::Attribute, "attribute 'max_ngram_size' is ", n.most,
                 "; only 2 to 64 are supported");
    }
    DType t = c.dtype(0);
    c.ensure(t == DType::I32 || t == DType::I64, "input_ids are ", c.type(0),
             ", expected i32 or i64");
    c.ensure(t == DType::I64 || c.i("pad_id") == static_cast<int32_t>(c.i("pad_id")),
             "attribute 'pad_id' is ", c.i("pad_id"), ", expected a number of ", c.type(0));
    const Dim multipliers = product(c.type(1).dims);
    c.ensure(c.rank(1) == 1 && (!multipliers.is_const() || multipliers.value() >= n.most),
             "multipliers are ", c.type(1), ", expected ", n.most, " numbers or more");
    n.fill = ops::scalar_i64(c.g, t, c.i("pad_id"));
    if (c.has(end)) {
        c.ensure(c.rank(end) == 0, "eos_token_id is ", c.type(end), ", expected a scalar");
        n.fill = c.in(end);
        n.end = c.i("reset_on_eos", 0) != 0 ? n.fill : Value{};
    }
    return n;
}

/// ids(k) and segments(k): those k places before; segments may be null.
template <class Ids, class Segments>
Value hashes(NodeContext& c, const NGrams& n, Ids&& ids, Segments&& segments, bool segmented,
             int offsets) {
    ingot::Graph& g = c.g;
    Value token = ids(0);
    int64_t rank = g.type(token).rank();
    auto weighted = [&](Value v, int64_t k) { return ops::mul(g, v, element(g, c.in(1), k)); };
    Value mix = weighted(token, 0);
    Value fresh; // the history reaches back to here
    Values heads;
    for (int64_t k = 1; k < n.most; ++k) {
        token = ids(k);
        auto also = [&](Value v) {
            fresh = fresh.valid() ? ops::binary(g, ExprOp::And, fresh, v) : v;
        };
        if (n.end.valid()) {
            also(ops::logical_not(g, ops::equal(g, token, n.end)));
        }
        if (segmented) {
            also(ops::equal(g, segments(k), segments(k - 1)));
        }
        token = fresh.valid() ? ops::select(g, fresh, token, n.fill) : token;
        mix = ops::binary(g, ExprOp::Xor, mix, weighted(token, k));
        Value sizes = ops::slice(g, c.in(2), 0, (k - 1) * n.heads, n.heads);
        heads.push_back(ops::binary(g, ExprOp::Mod, ops::unsqueeze(g, mix, {rank}), sizes));
    }
    Value y = ops::concat(g, heads, rank);
    return c.has(offsets) ? ops::add(g, y, c.in(offsets)) : y;
}

// (ids [B,S], multipliers, sizes, [past [B,most-1]], [offsets], [end], [segments [B,S]])
Values ngram_hashes(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(0) == 2, "input_ids are ", c.type(0), ", expected [batch,sequence]");
    NGrams n = ngrams_of(c, 5);
    int64_t past = n.most - 1;
    const Dims d = c.type(0).dims;
    auto behind = [&](Value before, Value now) {
        std::array parts = {ops::broadcast_to(g, before, {d[0], past}), now};
        return ops::concat(g, parts, 1);
    };
    Value all = behind(c.has(3) ? c.in(3) : n.fill, c.in(0));
    // Segments of the past are not known: they end nowhere.
    Value segments = c.has(6) ? behind(ops::slice(g, c.in(6), 1, 0, 1), c.in(6)) : Value{};
    Value y = hashes(
        c, n, [&](int64_t k) { return ops::slice(g, all, 1, past - k, d[1]); },
        [&](int64_t k) { return ops::slice(g, segments, 1, past - k, d[1]); }, c.has(6), 4);
    return {y, ops::slice(g, all, 1, d[1], past)};
}

// The ids that each sequence would carry on after each of its first tokens: [B,capacity,carried],
// pad_id where none is kept.
Value first_histories(NodeContext& c, const CarriedRows& ids, const Sequences& s,
                      int64_t capacity) {
    ingot::Graph& g = c.g;
    Value step = each_update(g, capacity, 3);
    Value last = ops::iota(g, DType::I64, {1, 1, ids.carried}, 2);
    last = ops::sub(g, last, ops::dim_scalar(g, ids.carried - Dim(1)));
    Value length = ops::unsqueeze(g, s.lengths, {1, 2});
    Value place = ops::minimum(g, ops::add(g, step, last), ops::sub(g, length, number(g, 1)));
    Value y = rows_at(g, ids, s, each_sequence(g, s, 3), place);
    Value kept = ops::unsqueeze(g, updates_kept(g, s, c.in(9)), {1, 2});
    Value none = ops::scalar_i64(g, c.dtype(0), c.i("pad_id"));
    return ops::select(g, ops::less(g, step, kept), y, none);
}

// (ids [tokens], multipliers, sizes, sequences' offsets, [past [B,most-1]], [offsets], [end],
// [segments], [past segments], [counts])
Values varlen_ngram_hashes(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(0) == 1, "input_ids are ", c.type(0), ", expected [tokens]");
    c.ensure(c.has(7) || (!c.has(8) && !c.wants(2)),
             "past_segment_ids or present_segment_ids are used without segment_ids");
    NGrams n = ngrams_of(c, 6);
    int64_t capacity = update_capacity(c, 9, 3);
    Sequences s = sequences_of(c, 3, c.dim(0, 0));
    Dims before = {ops::dims(g, s.begins)[0], n.most - 1};
    auto behind = [&](Value past, Value now) {
        return carried_rows(g, ops::broadcast_to(g, past, before), now);
    };
    CarriedRows ids = behind(c.has(4) ? c.in(4) : n.fill, c.in(0));
    CarriedRows segments;
    if (c.has(7)) {
        Value first = ops::gather(g, c.in(7), ops::unsqueeze(g, s.begins, {1}), 0);
        segments = behind(c.has(8) ? c.in(8) : first, c.in(7));
    }
    auto shifted = [&](const CarriedRows& rows, int64_t k) {
        return rows_at(g, rows, s, s.sequence, ops::sub(g, s.place, number(g, k)));
    };
    Value y = hashes(
        c, n, [&](int64_t k) { return shifted(ids, k); },
        [&](int64_t k) { return shifted(segments, k); }, c.has(7), 5);
    return {y, carried_on(g, ids, s), c.wants(2) ? carried_on(g, segments, s) : Value{},
            c.wants(3) ? first_histories(c, ids, s, capacity) : Value{}};
}

const ImporterRow rows[] = {
    {"com.microsoft", "VarlenCausalConvWithState", 1, varlen_causal_conv, no_shapes},
    {"com.microsoft", "NGramHashMapping", 1, ngram_hashes, no_shapes},
    {"com.microsoft", "VarlenNGramHashMapping", 1, varlen_ngram_hashes, no_shapes},
};

} // namespace

extern const ImporterTable contrib_sequences_importers;
const ImporterTable contrib_sequences_importers = rows;

} // namespace ingot::onnx
