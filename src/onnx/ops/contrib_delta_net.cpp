// SPDX-License-Identifier: Apache-2.0
// GatedDeltaNet of com.microsoft: linear attention of tokens of several sequences one after the
// other, with its gates and norms, on states of f32.
#include "base/error.h"
#include "onnx/ops/support/activations.h"
#include "onnx/ops/support/attention.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/linear_attention.h"
#include "onnx/ops/support/sequences.h"

#include <array>

namespace ingot::onnx {

namespace {

enum Input { Query, Key, ValueInput, Offsets, Decay, Beta, State, ALog, DtBias, Captured, Active };

/// The heads of the node's inputs. Token axes are [tokens], or [batch,sequence].
struct Heads {
    int64_t leading = 1; // token axes
    int64_t keys = 1;    // heads of q and of k
    int64_t values = 1;  // heads of v, each with a state
    Dim key_size;
    Dim value_size;
    Value q, k, v;
};

int64_t known_size(NodeContext& c, int i, int64_t axis, const char* what = "number of heads") {
    const Dim& d = c.dim(i, axis);
    if (!d.is_const() || d.value() < 1) {
        c.refuse(RefusalKind::Dynamic, "input ", i, " is ", c.type(i), "; its ", what,
                 " must be known");
    }
    return d.value();
}

// x [tokens...,n] -> [tokens...,heads,n / heads]
Value heads_of(ingot::Graph& g, Value x, int64_t heads, const Dim& size) {
    Dims d = ops::dims(g, x);
    d.back() = heads;
    d.push_back(size);
    return ops::reshape(g, x, d);
}

// q, k and v beside each other in the last axis of the query; the state has their sizes.
Heads packed_heads(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.has(State) && c.rank(State) == 4, "key and value are left out; expected "
                                                 "initial_state [batch,heads,value size,key size], "
                                                 "which has the sizes of the query's parts");
    Heads h;
    h.leading = c.rank(Query) - 1;
    c.ensure(h.leading == 1 || h.leading == 2, "query is ", c.type(Query),
             ", expected q, k and v in [tokens,size] or [batch,sequence,size]");
    h.values = known_size(c, State, 1);
    int64_t value_size = known_size(c, State, 2, "size of values");
    int64_t key_size = known_size(c, State, 3, "size of keys");
    int64_t width = known_size(c, Query, h.leading, "width");
    int64_t rest = width - h.values * value_size;
    c.ensure(rest > 0 && rest % (2 * key_size) == 0, "query is ", c.type(Query),
             " and initial_state ", c.type(State), ", expected ", h.values, " heads of ",
             value_size, " elements behind those of q and k of ", key_size, " elements");
    h.keys = rest / 2 / key_size;
    h.key_size = key_size;
    h.value_size = value_size;
    auto part = [&](int64_t from, int64_t size, int64_t heads) {
        return heads_of(g, ops::slice(g, c.in(Query), -1, from, size), heads, size / heads);
    };
    h.q = part(0, rest / 2, h.keys);
    h.k = part(rest / 2, rest / 2, h.keys);
    h.v = part(rest, h.values * value_size, h.values);
    return h;
}

Heads heads_of(NodeContext& c) {
    c.ensure(c.has(Key) == c.has(ValueInput), "key and value must come together");
    if (!c.has(Key)) {
        return packed_heads(c);
    }
    Heads h;
    int64_t rank = c.rank(Query);
    c.ensure((rank == 3 || rank == 4) && c.rank(Key) == rank && c.rank(ValueInput) == rank,
             "query, key and value are ", c.type(Query), ", ", c.type(Key), " and ",
             c.type(ValueInput), ", expected [tokens,heads,size] or [batch,sequence,heads,size]");
    h.leading = rank - 2;
    h.keys = known_size(c, Query, h.leading);
    h.values = known_size(c, ValueInput, h.leading);
    c.ensure(known_size(c, Key, h.leading) == h.keys, "query is ", c.type(Query), " and key ",
             c.type(Key), ", expected as many heads");
    h.key_size = c.dim(Query, rank - 1);
    h.value_size = c.dim(ValueInput, rank - 1);
    h.q = c.in(Query);
    h.k = c.in(Key);
    h.v = c.in(ValueInput);
    return h;
}

// --- tokens by steps

/// The steps of all sequences at once. Short sequences end in steps that change nothing.
struct Steps {
    Dim batch;
    Dim count;
    Dim tokens;    // of inputs [tokens,...]
    Value lengths; // i64 [batch]; this and the following are invalid for sequences of one length
    Value token;   // i64 [count,batch]
    Value real;    // bool [count,batch]
    Value row;     // i64 [tokens]: of a token in [count * batch]
};

Steps steps_of(NodeContext& c, const Heads& h) {
    ingot::Graph& g = c.g;
    Steps s;
    if (h.leading == 2) {
        c.ensure(!c.has(Offsets), "query is ", c.type(Query),
                 " and cu_seqlens is given, expected a query [tokens,heads,size]");
        s.batch = c.dim(Query, 0);
        s.count = c.dim(Query, 1);
        return s;
    }
    s.tokens = c.dim(Query, 0);
    if (!c.has(Offsets)) {
        c.ensure(c.has(State), "cu_seqlens and initial_state are left out; one of them must say "
                               "how many sequences there are");
        s.batch = c.dim(State, 0);
        s.count = floor_div(s.tokens, s.batch);
        return s;
    }
    Sequences q = sequences_of(c, Offsets, s.tokens);
    s.lengths = q.lengths;
    s.batch = ops::dims(g, q.lengths)[0];
    Value longest = ops::reduce_max(g, q.lengths, {0}, true);
    s.count = ops::dims_from(g, longest).at(0);
    Value step = ops::iota(g, DType::I64, {s.count, 1}, 0);
    s.real = ops::less(g, step, ops::unsqueeze(g, q.lengths, {0}));
    Value last = ops::sub(g, ops::dim_scalar(g, s.tokens), ops::scalar_i64(g, DType::I64, 1));
    s.token = ops::minimum(g, ops::add(g, step, ops::unsqueeze(g, q.begins, {0})), last);
    Value row = ops::mul(g, q.place, ops::dim_scalar(g, s.batch));
    s.row = ops::add(g, row, q.sequence);
    return s;
}

// x [tokens...,heads,size] -> f32 [steps,batch,heads,size]; `masked`: with zeros where a sequence
// has no such step.
Value by_step(ingot::Graph& g, const Steps& s, Value x, bool masked) {
    x = ops::widen(g, x);
    const Dims d = ops::dims(g, x);
    Dims rest(d.end() - 2, d.end());
    if (!s.token.valid()) {
        return ops::permute(g, ops::reshape(g, x, {s.batch, s.count, rest[0], rest[1]}),
                            {1, 0, 2, 3});
    }
    Value y = ops::gather(g, x, s.token, 0);
    Value zero = ops::scalar(g, g.type(y).dtype, 0);
    return masked ? ops::select(g, ops::unsqueeze(g, s.real, {2, 3}), y, zero) : y;
}

// y [steps,batch,heads,size] -> [tokens...,heads,size]
Value by_token(ingot::Graph& g, const Steps& s, Value y, int64_t leading) {
    const Dims d = ops::dims(g, y);
    if (s.token.valid()) {
        return ops::gather(g, ops::reshape(g, y, {s.count * s.batch, d[2], d[3]}), s.row, 0);
    }
    y = ops::permute(g, y, {1, 0, 2, 3});
    return leading == 2 ? y : ops::reshape(g, y, {s.tokens, d[2], d[3]});
}

// --- gates

// Input i [tokens...,heads] or [tokens...,heads,size] as [tokens...,heads,1 or size].
Value gate_input(NodeContext& c, int i, const Heads& h, bool may_have_size) {
    bool each = c.rank(i) == h.leading + 2 && may_have_size;
    c.ensure(each || c.rank(i) == h.leading + 1, "input ", i, " is ", c.type(i), " for ", h.values,
             " heads of tokens as in ", c.type(Query));
    c.ensure(!c.dim(i, h.leading).is_const() || c.dim(i, h.leading).is_const(h.values), "input ", i,
             " is ", c.type(i), ", expected ", h.values, " heads");
    return each ? c.in(i) : ops::unsqueeze(c.g, c.in(i), {h.leading + 1});
}

// Input dt_bias, one number a head, or one an element of each head's key: [heads,1 or size].
Value decay_bias(NodeContext& c, const Heads& h, bool each) {
    const Type t = c.type(DtBias);
    bool one = t.rank() == 1 && t.dims[0].is_const(h.values);
    c.ensure(one || (each && (t.rank() == 1 || t.rank() == 2)), "dt_bias is ", t, ", expected [",
             h.values, "]", each ? str(", or as many for each of ", h.key_size, " elements") : "");
    return ops::reshape(c.g, c.in(DtBias), {h.values, one ? Dim(1) : h.key_size});
}

// The logarithm of the factors of the state: f32 [tokens...,heads,1 or size].
Value log_decay(NodeContext& c, const Heads& h) {
    ingot::Graph& g = c.g;
    std::string how = c.s("gate_activation", "none");
    bool softplus = how == "softplus" || how == "qwen";
    bool bounded = how == "sigmoid" || how == "kda";
    c.ensure(softplus || bounded || how == "none", "attribute 'gate_activation' is '", how,
             "', expected 'none', 'softplus' or 'sigmoid'");
    bool computed = how != "none";
    c.ensure(c.has(ALog) == computed && c.has(DtBias) == computed, "gate_activation is '", how,
             "'; expected a_log and dt_bias",
             computed ? "" : " for 'softplus' and 'sigmoid' alone");
    Value x = ops::widen(g, gate_input(c, Decay, h, true));
    if (!computed) {
        return x;
    }
    x = ops::add(g, x, decay_bias(c, h, !ops::dims(g, x).back().is_const(1)));
    Value factor = ops::exp(g, ops::reshape(g, c.in(ALog), {h.values, 1}));
    if (softplus) {
        Value y = ops::mul(g, factor, apply(g, activation(c, "softplus"), x));
        return ops::unary(g, ExprOp::Neg, y);
    }
    Value y = ops::unary(g, ExprOp::Sigmoid, ops::mul(g, factor, x));
    return ops::mul(g, y, c.f("gate_lower_bound", -5));
}

Value update_rate(NodeContext& c, const Heads& h) {
    std::string how = c.s("beta_activation", "none");
    c.ensure(how == "none" || how == "sigmoid", "attribute 'beta_activation' is '", how,
             "', expected 'none' or 'sigmoid'");
    Value x = ops::widen(c.g, gate_input(c, Beta, h, false));
    return how == "none" ? x : ops::unary(c.g, ExprOp::Sigmoid, x);
}

// Each head's vector divided by its length.
Value unit(ingot::Graph& g, Value x) {
    x = ops::widen(g, x);
    Value squares = ops::reduce_sum(g, ops::mul(g, x, x), {-1}, true);
    return ops::div(g, x, ops::sqrt(g, ops::add(g, squares, 1e-12)));
}

// --- updates of the state, kept for some of the first steps

// [batch, capacity * n] of x [steps,batch,heads,size] at the first steps; 0 behind those counted.
Value first_steps(ingot::Graph& g, Value x, int64_t capacity, Value counted) {
    Dims more(4, Dim(0));
    more[0] = capacity;
    x = ops::slice(g, ops::pad(g, x, Dims(4, Dim(0)), more), 0, 0, capacity);
    x = ops::permute(g, x, {1, 0, 2, 3});
    Value step = ops::iota(g, DType::I64, {1, capacity, 1, 1}, 1);
    Value zero = ops::scalar(g, g.type(x).dtype, 0);
    x = ops::select(g, ops::less(g, step, ops::unsqueeze(g, counted, {1, 2, 3})), x, zero);
    const Dims d = ops::dims(g, x);
    return ops::reshape(g, x, {d[0], d[1] * d[2] * d[3]});
}

// All decays, then all keys, then all second factors of the updates: [batch, ...].
Value state_updates(NodeContext& c, const UpdateRule& r, const LinearAttentionInputs& in,
                    Value deltas, const Steps& s, int64_t capacity) {
    ingot::Graph& g = c.g;
    Value counted = to_i64(g, c.in(Captured));
    counted = s.lengths.valid() ? ops::minimum(g, counted, s.lengths) : counted;
    Value factors =
        r.gated ? in.factor
                : ops::full(g, DType::F32, {s.count, s.batch, ops::dims(g, in.state)[1], 1}, 1);
    std::array parts = {first_steps(g, factors, capacity, counted),
                        first_steps(g, in.k, capacity, counted),
                        first_steps(g, deltas, capacity, counted)};
    Value y = ops::concat(g, parts, 1);
    if (!c.has(Active)) {
        return y;
    }
    Value off =
        ops::equal(g, to_scalar(g, to_i64(g, c.in(Active))), ops::scalar_i64(g, DType::I64, 0));
    return ops::select(g, off, ops::scalar(g, DType::F32, 0), y);
}

Values gated_delta_net(NodeContext& c) {
    ingot::Graph& g = c.g;
    UpdateRule r = update_rule(c);
    int64_t capacity = update_capacity(c, Captured, 2);
    c.ensure(c.has(Decay) == r.gated && c.has(Beta) == r.delta, "attribute 'update_rule' is '",
             c.s("update_rule", "gated_delta"),
             "', expected decay for the gated rules alone and "
             "beta for the delta rules alone");
    Heads h = heads_of(c);
    c.ensure(h.values % h.keys == 0, "there are ", h.values, " value heads and ", h.keys,
             " query heads, expected a multiple");
    Steps s = steps_of(c, h);
    r.keep_deltas = c.wants(2);
    bool normed = c.i("qk_l2_norm", 0) != 0;
    LinearAttentionInputs in;
    in.q = by_step(g, s, normed ? unit(g, h.q) : h.q, false);
    in.k = by_step(g, s, normed ? unit(g, h.k) : h.k, true);
    in.v = by_step(g, s, h.v, false);
    r.scale = attention_scale(g, c.f("scale", 0), in.q);
    if (r.gated) {
        in.factor = ops::exp(g, by_step(g, s, log_decay(c, h), true));
    }
    if (r.delta) {
        in.beta = by_step(g, s, update_rate(c, h), false);
    }
    Dims given = {s.batch, h.values, h.value_size, h.key_size};
    in.state =
        c.has(State) ? ops::reshape(g, c.in(State), given) : ops::full(g, DType::F32, given, 0);
    Values done = run_linear_attention(g, r, in);
    Values out(3);
    out[0] = ops::cast(g, by_token(g, s, done[1], h.leading), c.dtype(Query));
    out[1] = done[0];
    out[2] = c.wants(2) ? state_updates(c, r, in, done[2], s, capacity) : Value{};
    return out;
}

const ImporterRow rows[] = {
    {"com.microsoft", "GatedDeltaNet", 1, gated_delta_net, no_shapes},
};

} // namespace

extern const ImporterTable contrib_delta_net_importers;
const ImporterTable contrib_delta_net_importers = rows;

} // namespace ingot::onnx
