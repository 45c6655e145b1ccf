// SPDX-License-Identifier: Apache-2.0
#include "plan/models.h"

#include "ops/ops.h"
#include "ops/primitives.h"

#include <array>

namespace ingot::test {

Tensor small_numbers(DType t, const Shape& shape, int64_t seed) {
    Tensor out = Tensor::zeros(t, shape);
    for (int64_t i = 0; i < out.count(); ++i) {
        int64_t n = (i * 29 + seed * 13) % 41;
        if (is_float(t)) {
            out.set_f64(i, static_cast<double>(n - 20) / 64);
        } else {
            out.set_i64(i, t == DType::Bool ? n % 2 : n % 5);
        }
    }
    return out;
}

std::vector<Tensor> small_inputs(const Graph& g, const Symbols& symbols) {
    std::vector<Tensor> out;
    for (Value v : g.inputs()) {
        const Type& t = g.type(v);
        out.push_back(
            small_numbers(t.dtype, eval(t.dims, symbols), static_cast<int64_t>(out.size()) + 1));
    }
    return out;
}

namespace {

Value weight(Graph& g, const Shape& shape, int64_t seed) {
    return ops::constant(g, small_numbers(DType::F32, shape, seed));
}

Value conv(Graph& g, Value x, Value w) {
    return ops::conv(g, {.strides = {1, 1}, .dilations = {1, 1}, .low = {1, 1}, .high = {1, 1}}, x,
                     w);
}

Graph pointwise_chain() {
    Graph g("pointwise_chain");
    Value x = g.add_input("x", parse_type("f32[4,40]"));
    Value y = g.add_input("y", parse_type("f32[40]"));
    Value z = ops::mul(g, ops::add(g, x, y), ops::unary(g, ExprOp::Tanh, x));
    g.add_output("z", ops::maximum(g, z, 0.0));
    return g;
}

Graph residual_block() {
    Graph g("residual_block");
    Value x = g.add_input("x", parse_type("f32[1,16,6,6]"));
    Value bias = weight(g, {16, 1, 1}, 3);
    g.set_origin("first");
    Value a = ops::maximum(g, ops::add(g, conv(g, x, weight(g, {16, 16, 3, 3}, 1)), bias), 0.0);
    g.set_origin("second");
    Value b = conv(g, a, weight(g, {16, 16, 3, 3}, 2));
    g.set_origin("sum");
    g.add_output("y", ops::maximum(g, ops::add(g, b, x), 0.0));
    return g;
}

Graph attention() {
    Graph g("attention");
    Value x = g.add_input("x", parse_type("f16[2,24,32]"));
    auto heads = [&](int64_t seed) {
        Value w = ops::constant(g, small_numbers(DType::F16, {32, 32}, seed));
        Value y = ops::reshape(g, ops::matmul(g, x, w), {2, 24, 2, 16});
        return ops::permute(g, y, {0, 2, 1, 3});
    };
    Value q = heads(1);
    Value k = heads(2);
    Value v = heads(3);
    Value y = ops::attention(g, {.scale = 0.25, .causal = true}, q, k, v);
    Value joined = ops::reshape(g, ops::permute(g, y, {0, 2, 1, 3}), {2, 24, 32});
    Value w = ops::constant(g, small_numbers(DType::F16, {32, 32}, 4));
    g.add_output("y", ops::add(g, ops::matmul(g, joined, w), x));
    return g;
}

GraphRef shared(Graph g) {
    return std::make_shared<const Graph>(std::move(g));
}

Graph choice() {
    Graph g("choice");
    Value condition = g.add_input("condition", parse_type("bool[]"));
    Value x = g.add_input("x", parse_type("f32[8,16]"));
    Graph then = g.sibling("then");
    Value t = then.add_input("x", parse_type("f32[8,16]"));
    then.add_output("r", ops::matmul(then, t, weight(then, {16, 16}, 1)));
    Graph other = g.sibling("other");
    Value o = other.add_input("x", parse_type("f32[8,16]"));
    other.add_output("r", ops::mul(other, o, 2.0));
    Value y = g.add1(if_def, If{shared(std::move(then)), shared(std::move(other)), {}},
                     {condition, ops::unary(g, ExprOp::Exp, x)});
    g.add_output("y", ops::maximum(g, y, 0.0));
    return g;
}

Graph repetition() {
    Graph g("repetition");
    Value trips = g.add_input("trips", parse_type("i64[]"));
    Value condition = g.add_input("condition", parse_type("bool[]"));
    Value x = g.add_input("x", parse_type("f32[4,16]"));
    Graph body = g.sibling("body");
    body.add_input("i", parse_type("i64[]"));
    Value c = body.add_input("c", parse_type("bool[]"));
    Value state = body.add_input("state", parse_type("f32[4,16]"));
    Value next = ops::matmul(body, state, weight(body, {16, 16}, 1));
    body.add_output("c", c);
    body.add_output("state", next);
    body.add_output("row", ops::reduce_sum(body, next, {1}));
    Values out = g.add(loop_def, Loop{shared(std::move(body)), 1, g.fresh_symbol(), {}},
                       std::array{trips, condition, x});
    g.add_output("state", ops::mul(g, out[0], 0.5));
    g.add_output("rows", out[1]);
    return g;
}

Graph found_elements() {
    Graph g("found_elements");
    Value x = g.add_input("x", parse_type("f32[4,8]"));
    Value y = ops::maximum(g, x, 0.0);
    Dim count = g.fresh_symbol();
    Value where = g.add1(nonzero_def, NonZero{count}, {y});
    Value columns = ops::squeeze(g, ops::slice(g, where, 0, 1, 1), {0});
    g.add_output("rows", ops::gather(g, ops::permute(g, y, {1, 0}), columns, 0));
    return g;
}

/// Four products; the third matrix is read twice.
Graph many_weights() {
    Graph g("many_weights");
    Value y = g.add_input("x", parse_type("f32[8,64]"));
    Values w;
    for (int64_t i = 0; i < 4; ++i) {
        w.push_back(weight(g, {64, 64}, i));
        g.set_origin("product " + std::to_string(i));
        y = ops::maximum(g, ops::matmul(g, y, w.back()), 0.0);
    }
    g.set_origin("once more");
    g.add_output("y", ops::matmul(g, y, w[2]));
    return g;
}

Graph open_sizes() {
    Graph g("open_sizes");
    Value x = g.add_input("x", parse_type("f32[batch,length,32]"));
    Value y = ops::softmax(g, ops::matmul(g, x, weight(g, {32, 24}, 1)), -1);
    g.add_output("y", ops::permute(g, y, {0, 2, 1}));
    g.add_output("sums", ops::reduce_sum(g, x, {1}));
    return g;
}

Graph parts() {
    Graph g("parts");
    Value x = g.add_input("x", parse_type("f32[4,32]"));
    Value a = ops::matmul(g, x, weight(g, {32, 24}, 1));
    Value b = ops::unary(g, ExprOp::Tanh, ops::slice(g, x, 1, 3, 8));
    Value both = ops::concat(g, std::array{a, b, x}, 1);
    g.add_output("both", both);
    g.add_output("turned", ops::permute(g, both, {1, 0}));
    return g;
}

} // namespace

std::vector<PlanModel> plan_models() {
    std::vector<PlanModel> out;
    auto add = [&out](Graph g, const Symbols& symbols = {}, int64_t weight_budget = -1) {
        std::vector<Tensor> in = small_inputs(g, symbols);
        std::string name = g.name();
        out.push_back({name, std::move(g), std::move(in), weight_budget});
    };
    add(pointwise_chain());
    add(residual_block());
    add(attention());
    add(choice());
    out.back().inputs[0].set_i64(0, 1);
    add(repetition());
    out.back().inputs[0].set_i64(0, 3);
    out.back().inputs[1].set_i64(0, 1);
    add(found_elements());
    add(many_weights());
    add(many_weights(), {}, int64_t{64} * 64 * 4 * 3); // two matrices and room for a third
    out.back().name = "streamed_weights";
    add(open_sizes(), {{"batch", 2}, {"length", 5}});
    add(parts());
    return out;
}

} // namespace ingot::test
