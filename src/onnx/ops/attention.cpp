// SPDX-License-Identifier: Apache-2.0
// Attention, RotaryEmbedding, LinearAttention.
#include "onnx/ops/support/attention.h"

#include "base/error.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/linear_attention.h"
#include "onnx/ops/support/spatial.h"

#include <algorithm>
#include <array>
#include <limits>

namespace ingot::onnx {

namespace {

// --- Attention

struct Heads {
    Value q; // [B,H,S,D]
    Value k; // [B,G,T,D], the past included
    Value v; // [B,G,T,E]
    Dim past = 0;
    bool packed = false; // inputs were [B,S,H*D]
};

Heads heads_of(NodeContext& c) {
    int64_t rank = c.rank(0);
    c.ensure((rank == 3 || rank == 4) && c.rank(1) == rank && c.rank(2) == rank, "Q, K and V are ",
             c.type(0), ", ", c.type(1), " and ", c.type(2), ", expected rank 3 or rank 4");
    Heads h{c.in(0), c.in(1), c.in(2), 0, rank == 3};
    if (h.packed) {
        int64_t queries = positive(c, "q_num_heads");
        int64_t keys = positive(c, "kv_num_heads");
        h.q = split_heads(c.g, h.q, queries);
        h.k = split_heads(c.g, h.k, keys);
        h.v = split_heads(c.g, h.v, keys);
    }
    h.v = ops::cast(c.g, h.v, c.dtype(0));
    c.ensure(c.has(4) == c.has(5), "past_key and past_value must come together");
    if (c.has(4)) {
        h.past = c.dim(4, 2);
        std::array keys = {c.in(4), h.k};
        std::array values = {ops::cast(c.g, c.in(5), c.dtype(0)), h.v};
        h.k = ops::concat(c.g, keys, 2);
        h.v = ops::concat(c.g, values, 2);
    }
    return h;
}

// The given mask, extended to hide keys beyond its end.
Value whole_mask(NodeContext& c, const Dim& keys) {
    Value mask = c.in(3);
    const Dims d = ops::dims(c.g, mask);
    if (d.empty() || d.back() == keys || d.back().is_const(1)) {
        return mask;
    }
    bool both_known = d.back().is_const() && keys.is_const();
    if (!both_known && !c.has(6)) {
        return mask; // the run checks that the sizes agree
    }
    Dims low(d.size(), Dim(0));
    Dims high = low;
    high.back() = max(keys - d.back(), 0);
    DType t = c.dtype(3);
    double hidden = t == DType::Bool ? 0 : -std::numeric_limits<double>::infinity();
    mask = ops::pad(c.g, mask, low, high, hidden);
    return ops::slice(c.g, mask, -1, 0, keys);
}

struct Visible {
    Masks masks;
    bool causal = false; // handled by the composite
    Dim offset = 0;
};

Visible visible_keys(NodeContext& c, const Heads& h) {
    ingot::Graph& g = c.g;
    Visible v;
    Dim queries = ops::dims(g, h.q)[2];
    Dim keys = ops::dims(g, h.k)[2];
    if (c.has(3)) {
        (c.dtype(3) == DType::Bool ? v.masks.allowed : v.masks.bias) = whole_mask(c, keys);
    }
    bool causal = c.i("is_causal", 0) != 0;
    int64_t left = c.i("left_window_size", -1);
    int64_t right = c.i("right_window_size", -1);
    c.ensure(left >= -1 && right >= -1, "window sizes are ", left, " and ", right,
             ", expected numbers of at least -1");
    bool external = c.has(6) && !c.has(4);
    Value offset;
    if (external) {
        offset = ops::sub(g, to_i64(g, c.in(6)), ops::dim_scalar(g, queries));
    } else {
        v.causal = causal;
        v.offset = h.past;
        offset = ops::dim_scalar(g, h.past);
    }
    Value query = query_positions(g, queries, offset);
    Value key = key_positions(g, keys);
    if (causal && external) {
        allow_only(g, v.masks, not_above(g, key, query));
    }
    if (left >= 0) {
        allow_only(g, v.masks,
                   not_above(g, ops::sub(g, query, ops::scalar_i64(g, DType::I64, left)), key));
    }
    if (right >= 0) {
        allow_only(g, v.masks,
                   not_above(g, key, ops::add(g, query, ops::scalar_i64(g, DType::I64, right))));
    }
    if (c.has(6)) {
        Value last = ops::unsqueeze(g, to_i64(g, c.in(6)), {1, 2, 3});
        allow_only(g, v.masks, ops::less(g, key, last));
    }
    return v;
}

// Output 3: the scores after one of four stages.
Value scores_at(NodeContext& c, const Heads& h, const Visible& v, const ops::Attention& a,
                Value mask) {
    ingot::Graph& g = c.g;
    int64_t mode = c.i("qk_matmul_output_mode", 0);
    c.ensure(mode >= 0 && mode <= 3, "attribute 'qk_matmul_output_mode' is ", mode,
             ", expected 0 to 3");
    const Dims q = ops::dims(g, h.q);
    const Dims k = ops::dims(g, h.k);
    DType wide = c.dtype(0) == DType::F64 ? DType::F64 : DType::F32;
    Value grouped = ops::reshape(g, h.q, {q[0], k[1], floor_div(q[1] * q[2], k[1]), q[3]});
    Value s = ops::dot(g, Dot{{0, 1}, {0, 1}, {3}, {3}, wide}, grouped, h.k);
    s = ops::mul(g, ops::reshape(g, s, {q[0], q[1], q[2], k[2]}), a.scale);
    if (mode >= 1 && a.softcap > 0) {
        s = ops::mul(g, ops::unary(g, ExprOp::Tanh, ops::div(g, s, a.softcap)), a.softcap);
    }
    if (mode >= 2) {
        double hidden = -std::numeric_limits<double>::infinity();
        Value none = ops::scalar(g, wide, hidden);
        if (mask.valid() && g.type(mask).dtype == DType::Bool) {
            s = ops::select(g, mask, s, none);
        } else if (mask.valid()) {
            s = ops::add(g, s, ops::cast(g, mask, wide));
        }
        if (v.causal) {
            Value query = query_positions(g, q[2], ops::dim_scalar(g, v.offset));
            s = ops::select(g, not_above(g, key_positions(g, k[2]), query), s, none);
        }
    }
    if (mode == 3) {
        Value top = ops::reduce_max(g, s, {3}, true);
        Value zero = ops::scalar(g, wide, 0);
        Value empty = ops::unary(g, ExprOp::IsInf, top);
        Value e = ops::exp(g, ops::sub(g, s, ops::select(g, empty, zero, top)));
        Value sum = ops::reduce_sum(g, e, {3}, true);
        sum = ops::select(g, ops::equal(g, sum, zero), ops::scalar(g, wide, 1), sum);
        s = ops::div(g, e, sum);
    }
    return ops::cast(g, s, c.dtype(0));
}

Values attention(NodeContext& c) {
    Heads h = heads_of(c);
    Visible v = visible_keys(c, h);
    Value mask = combined(c.g, v.masks);
    ops::Attention a;
    a.scale = attention_scale(c.g, c.f("scale", 0), h.q);
    a.softcap = c.f("softcap", 0);
    a.causal = v.causal;
    a.offset = v.causal ? v.offset : Dim(0);
    Value y = ops::attention(c.g, a, h.q, h.k, h.v, mask);
    Values out(4);
    out[0] = h.packed ? merge_heads(c.g, y) : y;
    out[1] = h.k;
    out[2] = c.wants(2) ? ops::cast(c.g, h.v, c.dtype(2)) : Value{};
    out[3] = c.wants(3) ? scores_at(c, h, v, a, mask) : Value{};
    return out;
}

// --- RotaryEmbedding

Values rotary(NodeContext& c) {
    ingot::Graph& g = c.g;
    bool packed = c.rank(0) == 3;
    Value x = packed ? split_heads(g, c.in(0), positive(c, "num_heads")) : c.in(0);
    c.ensure(g.type(x).rank() == 4, "input is ", c.type(0), ", expected rank 3 or 4");
    Value cos = c.in(1);
    Value sin = c.in(2);
    if (c.has(3)) {
        cos = ops::gather_wrapped(g, cos, c.in(3), 0);
        sin = ops::gather_wrapped(g, sin, c.in(3), 0);
    }
    Value y =
        rotate_heads(g, x, cos, sin, c.i("rotary_embedding_dim", 0), c.i("interleaved", 0) != 0);
    return {packed ? merge_heads(g, y) : y};
}

// --- LinearAttention

// x [B,T,H*D] -> f32 [T,B,H,D]
Value by_time(ingot::Graph& g, Value x, const Dim& heads) {
    const Dims d = ops::dims(g, x);
    require(d.size() == 3, ErrorCode::InvalidModel, "got ", g.type(x),
            ", expected [batch,sequence,heads*size]");
    Value v = ops::reshape(g, ops::widen(g, x), {d[0], d[1], heads, floor_div(d[2], heads)});
    return ops::permute(g, v, {1, 0, 2, 3});
}

// The heads of k [B,T,h*K]: those of the states, or fewer where states share a key.
Dim key_heads(NodeContext& c, const Dim& size, int64_t states) {
    c.ensure(c.rank(1) == 3, "key is ", c.type(1), ", expected [batch,sequence,heads*size]");
    Dim heads = floor_div(c.dim(1, 2), size);
    if (!heads.is_const()) {
        return states;
    }
    c.ensure(heads.value() > 0 && states % heads.value() == 0, "there are ", states,
             " value heads and ", heads, " key heads, expected a multiple");
    return heads;
}

Values linear_attention(NodeContext& c) {
    ingot::Graph& g = c.g;
    if (c.i("state_window", 0) != 0) {
        c.refuse(RefusalKind::Attribute, "attribute 'state_window' is not supported");
    }
    UpdateRule r = update_rule(c);
    int64_t heads = positive(c, "kv_num_heads");
    int64_t queries = positive(c, "q_num_heads");
    c.ensure(queries % heads == 0 || heads % queries == 0, "there are ", queries,
             " query heads and ", heads, " value heads, expected a multiple or a divisor");
    LinearAttentionInputs in;
    in.q = by_time(g, c.in(0), queries);
    in.k = by_time(g, c.in(1), key_heads(c, ops::dims(g, in.q)[3], heads));
    in.v = by_time(g, c.in(2), heads);
    const Dims kd = ops::dims(g, in.k);
    r.scale = attention_scale(g, c.f("scale", 0), in.q);
    DType t = g.type(in.q).dtype;
    Dims state_dims = {kd[1], heads, kd[3], ops::dims(g, in.v)[3]};
    Value state = c.has(3) ? ops::reshape(g, ops::cast(g, c.in(3), t), state_dims)
                           : ops::full(g, t, state_dims, 0);
    in.state = ops::transpose_last(g, state);
    if (r.gated) {
        in.factor = ops::exp(g, by_time(g, c.in(4), heads));
    }
    if (r.delta) {
        in.beta = by_time(g, c.in(5), c.dim(5, 2).is_const(1) ? 1 : heads);
    }
    Values done = run_linear_attention(g, r, in);
    Value y = ops::permute(g, done[1], {1, 0, 2, 3}); // [B,T,H,V]
    const Dims d = ops::dims(g, y);
    y = ops::reshape(g, y, {d[0], d[1], d[2] * d[3]});
    DType state_type = c.has(3) ? c.dtype(3) : c.dtype(0);
    state = ops::transpose_last(g, done[0]);
    return {ops::cast(g, y, c.dtype(0)), ops::cast(g, state, state_type)};
}

const ImporterRow rows[] = {
    {"", "Attention", 23, attention, no_shapes},
    {"", "RotaryEmbedding", 23, rotary, no_shapes},
    {"", "LinearAttention", 27, linear_attention, no_shapes},
    {"com.microsoft", "LinearAttention", 1, linear_attention, no_shapes},
};

} // namespace

extern const ImporterTable attention_importers;
const ImporterTable attention_importers = rows;

} // namespace ingot::onnx
