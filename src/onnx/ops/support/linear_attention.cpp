// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/linear_attention.h"

#include "base/error.h"

namespace ingot::onnx {

namespace {

// In the loop, the states that share a head of k are one: [B,h,heads/h*V,K].
Dims joined(const Dims& states, const Dims& k) {
    size_t n = k.size();
    return {states[0], k[n - 2], floor_div(states[1] * states[2], k[n - 2]), states[3]};
}

// (states, q [B,h,K]) -> [B,h,n] of the results [B,most heads,V]
Value read_out(ingot::Graph& g, const Dims& states, Value state, Value q) {
    const Dims d = ops::dims(g, q);
    DType t = g.type(state).dtype;
    if (max(d[1], states[1]) != d[1]) {
        Value shared = ops::reshape(g, state, joined(states, d));
        return ops::dot(g, Dot{{0, 1}, {0, 1}, {2}, {3}, t}, q, shared);
    }
    Value grouped = ops::reshape(g, q, {d[0], states[1], floor_div(d[1], states[1]), d[2]});
    Value y =
        ops::dot(g, Dot{{0, 1}, {0, 1}, {3}, {3}, t}, grouped, ops::reshape(g, state, states));
    return ops::reshape(g, y, {d[0], d[1], states[2]});
}

// body: (step, condition, joined state, q, k, v, [factor], [beta])
//    -> (condition, joined state, y, [delta])
GraphRef step_body(const ingot::Graph& outer, const UpdateRule& r, const Dims& states,
                   std::span<const Type> types) {
    auto body = std::make_shared<ingot::Graph>(outer.sibling("linear_attention"));
    ingot::Graph& g = *body;
    Value step = g.add_input("step", {DType::I64, {}});
    Value go = g.add_input("condition", {DType::Bool, {}});
    Values in;
    for (const Type& t : types) {
        in.push_back(g.add_input(str("value", in.size()), t));
    }
    auto now = [&](size_t i) { return ops::gather(g, in[i], step, 0); };
    Value state = in[0];
    const Dims d = g.type(state).dims; // the run checks that differently named sizes agree
    Value k = now(2);
    Value v = now(3);
    size_t next = 4;
    if (r.gated) {
        Value factor = ops::unsqueeze(g, now(next++), {2});
        state = ops::mul(g, ops::reshape(g, state, states), factor);
        state = ops::reshape(g, state, d);
    }
    if (r.delta) {
        Value read = ops::dot(g, Dot{{0, 1}, {0, 1}, {2}, {3}, g.type(state).dtype}, k, state);
        read = ops::reshape(g, read, {states[0], states[1], states[2]});
        v = ops::mul(g, ops::sub(g, v, read), now(next++));
    }
    Value column = ops::reshape(g, v, {d[0], d[1], d[2], 1});
    state = ops::add(g, state, ops::mul(g, column, ops::unsqueeze(g, k, {2})));
    state = ops::reshape(g, state, d);
    Value y = ops::mul(g, read_out(g, states, state, now(1)), r.scale);
    g.add_output("condition", go);
    g.add_output("state", state);
    g.add_output("output", y);
    if (r.keep_deltas) {
        g.add_output("delta", v);
    }
    return body;
}

} // namespace

UpdateRule update_rule(const NodeContext& c) {
    std::string rule = c.s("update_rule", "gated_delta");
    c.ensure(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta",
             "attribute 'update_rule' is '", rule,
             "', expected linear, gated, delta or gated_delta");
    UpdateRule r;
    r.gated = rule.starts_with("gated");
    r.delta = rule.ends_with("delta");
    return r;
}

Values run_linear_attention(ingot::Graph& g, const UpdateRule& r, const LinearAttentionInputs& in) {
    const Dims states = ops::dims(g, in.state);
    const Dims q = ops::dims(g, in.q);
    const Dims k = ops::dims(g, in.k);
    Values values = {ops::reshape(g, in.state, joined(states, k)), in.q, in.k, in.v};
    if (r.gated) {
        values.push_back(in.factor);
    }
    if (r.delta) {
        values.push_back(in.beta);
    }
    std::vector<Type> types;
    for (Value x : values) {
        types.push_back(g.type(x));
    }
    Loop loop;
    loop.body = step_body(g, r, states, types);
    loop.carried = 1;
    loop.count = k[0];
    Values operands = {ops::dim_scalar(g, loop.count), ops::scalar_i64(g, DType::Bool, 1)};
    operands.insert(operands.end(), values.begin(), values.end());
    Values done = g.add(loop_def, std::move(loop), operands);
    done[0] = ops::reshape(g, done[0], states);
    done[1] = ops::reshape(g, done[1], {k[0], q[1], max(q[2], states[1]), states[2]});
    return done;
}

} // namespace ingot::onnx
