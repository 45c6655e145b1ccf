// SPDX-License-Identifier: Apache-2.0
// Attention operators of com.microsoft that compute one step of a decoder:
// DecoderMaskedMultiHeadAttention, DecoderMaskedSelfAttention, DecoderAttention.
#include "base/error.h"
#include "onnx/ops/support/attention.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

// One new position of each sequence; inputs that are not given are invalid.
struct Step {
    Value q; // [B,H,1,D]
    Value k; // the new keys [B,H,1,D], or all keys [B,H,T,D] of another sequence
    Value v;
    bool other_sequence = false;
    Value past_k;
    Value past_v;
    Value mask;        // [B,T], 0 for a hidden key
    Value bias;        // of the scores, [B or 1, H or 1, 1, T]
    Value past_length; // one integer
    Value beams;       // beam width, one integer
    Value origins;     // [batch, beam, T']: the beam that each token of a beam came from
};

// Keys and values that the queries read, and the cache behind the step.
struct Cache {
    Value k; // [B,H,T,D]
    Value v;
    Value new_k;
    Value new_v;
    Value position; // i64 scalar: the place of the step in a buffer of T places; else invalid
};

// The last axis of a mask or bias, extended to all places of the buffer.
Value to_all_places(ingot::Graph& g, const Cache& cache, Value mask) {
    if (!cache.position.valid()) {
        return mask;
    }
    Dims d = ops::dims(g, mask);
    Dims low(d.size(), Dim(0));
    Dims high = low;
    high.back() = ops::dims(g, cache.k)[2] - d.back();
    return ops::pad(g, mask, low, high);
}

// cache [B,H,T,D] as each beam sees it: past tokens belong to the beam that they came from.
Value as_beams_see(ingot::Graph& g, Value cache, const Step& s, Value position) {
    const Dims d = ops::dims(g, cache);
    const Dims o = ops::dims(g, s.origins);
    require(o.size() == 3, ErrorCode::InvalidModel, "cache_indirection is ", g.type(s.origins),
            ", expected [batch,beams,positions]");
    auto sizes = [&](const Dim& v) { return ops::dim_scalar(g, v); };
    Value own = ops::iota(g, DType::I64, {o[0], o[1], 1}, 0);
    own = ops::mul(g, own, sizes(o[1]));
    Value source = ops::add(g, own, to_i64(g, s.origins));
    own = ops::add(g, own, ops::iota(g, DType::I64, {1, o[1], 1}, 1));
    Value is_past = ops::less(g, ops::iota(g, DType::I64, {1, 1, o[2]}, 2), position);
    if (s.beams.valid()) {
        Value several =
            ops::less(g, ops::scalar_i64(g, DType::I64, 1), to_scalar(g, to_i64(g, s.beams)));
        is_past = ops::binary(g, ExprOp::And, is_past, several);
    }
    Value sequence = ops::reshape(g, ops::select(g, is_past, source, own), {d[0], 1, d[2]});
    Value head = ops::iota(g, DType::I64, {1, d[1], 1}, 1);
    Value row = ops::add(g, ops::mul(g, sequence, sizes(d[1])), head);
    row = ops::add(g, ops::mul(g, row, sizes(d[2])), ops::iota(g, DType::I64, {1, 1, d[2]}, 2));
    return ops::gather(g, ops::reshape(g, cache, {d[0] * d[1] * d[2], d[3]}), row, 0);
}

Cache cache_of(NodeContext& c, const Step& s) {
    ingot::Graph& g = c.g;
    if (!s.past_k.valid() || s.other_sequence) {
        c.ensure(!s.past_k.valid(), "key is ", g.type(s.k),
                 ", the keys of another sequence; expected no past keys");
        return {s.k, s.v, s.k, s.v, {}};
    }
    if (c.i("past_present_share_buffer", 0) == 0) {
        if (s.origins.valid()) {
            c.refuse(RefusalKind::Input, "input cache_indirection is given, but attribute "
                                         "'past_present_share_buffer' is 0; only beams of one "
                                         "buffer are supported");
        }
        auto joined = [&](Value past, Value now) {
            std::array parts = {past, now};
            return ops::concat(g, parts, 2);
        };
        Cache out{joined(s.past_k, s.k), joined(s.past_v, s.v), {}, {}, {}};
        out.new_k = out.k;
        out.new_v = out.v;
        return out;
    }
    c.ensure(s.past_length.valid(), "attribute 'past_present_share_buffer' is 1, expected input "
                                    "past_sequence_length");
    Cache out;
    out.position = to_scalar(g, to_i64(g, s.past_length));
    Dim batch = ops::dims(g, s.q)[0];
    Value start = ops::broadcast_to(g, out.position, {batch});
    out.new_k = written_at(g, s.past_k, s.k, start);
    out.new_v = written_at(g, s.past_v, s.v, start);
    out.k = s.origins.valid() ? as_beams_see(g, out.new_k, s, out.position) : out.new_k;
    out.v = s.origins.valid() ? as_beams_see(g, out.new_v, s, out.position) : out.new_v;
    return out;
}

void check_beams(const NodeContext& c, const Step& s, int beams) {
    if (!s.beams.valid() || s.origins.valid()) {
        return;
    }
    std::optional<std::vector<int64_t>> width = known_ints(c, beams);
    if (!width) {
        c.refuse(RefusalKind::Input, "input beam_width is not known before the run and "
                                     "cache_indirection is not given; leave beam_width out");
    }
    c.ensure(width->size() == 1 && width->front() <= 1, "input beam_width is ", *width,
             ", expected input cache_indirection too");
}

// The mask and the bias, as the scores of all places have them.
Masks added_to_scores(NodeContext& c, const Step& s, const Cache& cache) {
    ingot::Graph& g = c.g;
    const Dim batch = ops::dims(g, s.q)[0];
    Masks masks;
    if (s.mask.valid()) {
        c.ensure(g.type(s.mask).rank() == 2, "mask_index is ", g.type(s.mask),
                 ", expected [batch,keys]");
        Dim keys = cache.position.valid() ? ops::dims(g, s.mask)[1] : ops::dims(g, cache.k)[2];
        add_key_mask(c, masks, s.mask, batch, keys);
    }
    if (s.bias.valid()) {
        const Type t = g.type(s.bias);
        c.ensure(t.rank() == 4, "attention_bias is ", t, ", expected rank 4");
        add_bias(g, masks, s.bias);
    }
    if (masks.bias.valid()) {
        masks.bias = to_all_places(g, cache, masks.bias);
    }
    return masks;
}

struct Decoded {
    Value y; // [B,1,H*D]
    Cache cache;
    Value scores; // where asked for: [B,H,1,T] of the keys up to the step, before the softmax
};

Decoded decoded(NodeContext& c, Step s, bool with_scores) {
    ingot::Graph& g = c.g;
    const Dim queries = ops::dims(g, s.q)[2];
    c.ensure(!queries.is_const() || queries.is_const(1), "query has ", queries,
             " positions a sequence, expected 1");
    Decoded out;
    out.cache = cache_of(c, s);
    const Cache& cache = out.cache;
    Masks masks = added_to_scores(c, s, cache);
    ops::Attention a;
    a.scale = attention_scale(g, c.f("scale", 0), s.q);
    if (with_scores) {
        out.scores = biased_scores(g, s.q, cache.k, a.scale, masks.bias);
    }
    if (with_scores && cache.position.valid()) {
        Dim keys = ops::dims_from(g, cache.position)[0] + Dim(1);
        out.scores = ops::slice(g, out.scores, 3, 0, keys);
    }
    if (cache.position.valid()) {
        Value key = key_positions(g, ops::dims(g, cache.k)[2]);
        allow_only(g, masks, not_above(g, key, cache.position));
    }
    out.y = merge_heads(g, ops::attention(g, a, s.q, cache.k, cache.v, combined(g, masks)));
    return out;
}

// --- DecoderMaskedMultiHeadAttention

// (query, key, value), or all of them side by side in one input.
Step step_of(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t heads = positive(c, "num_heads");
    c.ensure(c.rank(0) == 3 && c.has(1) == c.has(2), "query is ", c.type(0),
             ", expected [batch,1,hidden], and key and value together");
    auto part = [&](Value x, const Dim& from) {
        Dim size = ops::dims(g, x).back();
        x = c.has(10) ? ops::add(g, x, ops::slice(g, c.in(10), 0, from, size)) : x;
        return split_heads(g, x, heads);
    };
    Step s;
    Dim hidden = c.dim(0, 2);
    if (!c.has(1)) {
        hidden = floor_div(hidden, 3);
        auto third = [&](int64_t i) {
            Dim from = Dim(i) * hidden;
            return part(ops::slice(g, c.in(0), 2, from, hidden), from);
        };
        s.q = third(0);
        s.k = third(1);
        s.v = third(2);
        return s;
    }
    s.q = part(c.in(0), 0);
    s.other_sequence = c.rank(1) == 4;
    c.ensure(c.rank(2) == c.rank(1), "key and value are ", c.type(1), " and ", c.type(2),
             ", expected the same rank");
    s.k = s.other_sequence ? c.in(1) : part(c.in(1), hidden);
    s.v = s.other_sequence ? c.in(2) : part(c.in(2), Dim(2) * hidden);
    return s;
}

Values decoder_masked_multi_head(NodeContext& c) {
    Step s = step_of(c);
    s.mask = c.optional(3);
    s.bias = c.optional(4);
    s.past_k = c.optional(5);
    s.past_v = c.optional(6);
    c.ensure(s.past_k.valid() == s.past_v.valid(), "past_key and past_value must come together");
    s.past_length = c.optional(7);
    s.beams = c.optional(8);
    s.origins = c.optional(9);
    check_beams(c, s, 8);
    Decoded d = decoded(c, s, c.wants(3));
    return {d.y, d.cache.new_k, d.cache.new_v, d.scores};
}

// --- DecoderMaskedSelfAttention

// (input, weights, bias, [mask], past [2,B,H,T,D], [bias of the scores], past length, ...)
Values decoder_masked_self(NodeContext& c) {
    ingot::Graph& g = c.g;
    if (c.i("do_rotary", 0) != 0) {
        c.refuse(RefusalKind::Attribute, "attribute 'do_rotary' is 1; only 0 is supported");
    }
    c.ensure(c.rank(0) == 3 && c.rank(1) == 2 && c.rank(4) == 5, "input, weights and past are ",
             c.type(0), ", ", c.type(1), " and ", c.type(4),
             ", expected [batch,1,hidden], rank 2 and [2,batch,heads,positions,size]");
    Value all = ops::add(g, ops::matmul(g, c.in(0), c.in(1)), c.in(2));
    Dim hidden = floor_div(ops::dims(g, all)[2], 3);
    auto part = [&](int64_t i) {
        return split_heads(g, ops::slice(g, all, 2, Dim(i) * hidden, hidden),
                           positive(c, "num_heads"));
    };
    auto half = [&](int64_t i) { return ops::squeeze(g, ops::slice(g, c.in(4), 0, i, 1), {0}); };
    Step s;
    s.q = part(0);
    s.k = part(1);
    s.v = part(2);
    s.past_k = half(0);
    s.past_v = half(1);
    s.mask = c.optional(3);
    s.bias = c.optional(5);
    s.past_length = c.optional(6);
    s.beams = c.optional(7);
    s.origins = c.optional(8);
    check_beams(c, s, 7);
    Decoded d = decoded(c, s, false);
    std::array present = {ops::unsqueeze(g, d.cache.new_k, {0}),
                          ops::unsqueeze(g, d.cache.new_v, {0})};
    return {d.y, ops::concat(g, present, 0)};
}

// --- DecoderAttention

bool known_flag(const NodeContext& c, int i) {
    ingot::Tensor t = c.constant(i);
    c.ensure(t.count() == 1, "input ", i, " is ", c.type(i), ", expected one bool");
    return t.get_i64(0) != 0;
}

// (query [S,B,D], key [T,B,D], query weights, key and value weights, bias, [hidden keys], [key and
// value caches], static_kv: the keys are those of `key`, use_past, has_layer_state,
// has_key_padding_mask)
Values decoder_attention(NodeContext& c) {
    ingot::Graph& g = c.g;
    int64_t heads = positive(c, "num_heads");
    c.ensure(c.rank(0) == 3 && c.rank(1) == 3, "query and key are ", c.type(0), " and ", c.type(1),
             ", expected [sequence,batch,hidden]");
    c.ensure(c.rank(2) == 2 && c.rank(3) == 2, "q_weight and kv_weight are ", c.type(2), " and ",
             c.type(3), ", expected rank 2");
    bool other_sequence = known_flag(c, 8);
    bool cached = known_flag(c, 9) && known_flag(c, 10);
    Dim hidden = c.dim(0, 2);
    auto projected = [&](Value x, Value weight, const Dim& from, const Dim& size) {
        Value y = ops::add(g, ops::matmul(g, x, weight), ops::slice(g, c.in(4), 0, from, size));
        return ops::permute(g, y, {1, 0, 2});
    };
    Value q = split_heads(g, projected(c.in(0), c.in(2), 0, hidden), heads);
    Value k = cached ? c.in(6) : Value{};
    Value v = cached ? c.in(7) : Value{};
    if (!cached || !other_sequence) {
        Value both = projected(c.in(other_sequence ? 1 : 0), c.in(3), hidden, Dim(2) * hidden);
        auto appended = [&](Value past, int64_t i) {
            Value now = split_heads(g, ops::slice(g, both, 2, Dim(i) * hidden, hidden), heads);
            std::array parts = {past, now};
            return cached ? ops::concat(g, parts, 2) : now;
        };
        k = appended(k, 0);
        v = appended(v, 1);
    }
    Masks masks;
    if (known_flag(c, 11)) {
        c.ensure(c.rank(5) == 2, "key_padding_mask is ", c.type(5), ", expected [batch,keys]");
        allow_only(g, masks, ops::unsqueeze(g, ops::logical_not(g, c.in(5)), {1, 2}));
    }
    ops::Attention a;
    a.scale = attention_scale(g, 0, q);
    Value y = merge_heads(g, ops::attention(g, a, q, k, v, combined(g, masks)));
    return {ops::permute(g, y, {1, 0, 2}), k, v};
}

const ImporterRow rows[] = {
    {"com.microsoft", "DecoderMaskedMultiHeadAttention", 1, decoder_masked_multi_head, no_shapes},
    {"com.microsoft", "DecoderMaskedSelfAttention", 1, decoder_masked_self, no_shapes},
    {"com.microsoft", "DecoderAttention", 1, decoder_attention, no_shapes},
};

} // namespace

extern const ImporterTable contrib_decoder_importers;
const ImporterTable contrib_decoder_importers = rows;

} // namespace ingot::onnx
