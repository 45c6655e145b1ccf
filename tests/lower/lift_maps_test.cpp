// SPDX-License-Identifier: Apache-2.0
#include "lower/passes.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <random>

namespace ingot::plan {
namespace {

Tensor random_tensor(std::mt19937& rng, Shape shape) {
    std::normal_distribution<float> normal;
    Tensor t = Tensor::empty(DType::F32, std::move(shape));
    for (float& x : t.as_mutable<float>()) {
        x = normal(rng);
    }
    return t;
}

/// x [2, 3, 8] times a constant, seen through `view`, plus the second input of the view's shape and
/// a bias along the last axis.
template <class F>
Graph through(std::mt19937& rng, const F& view) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {2, 3, 8}});
    Value y = view(g, ops::matmul(g, x, ops::constant(g, random_tensor(rng, {8, 6}))));
    const Dims dims = g.type(y).dims;
    Value other = g.add_input("other", {DType::F32, dims});
    Value bias = ops::constant(g, random_tensor(rng, {dims.back().value()}));
    g.add_output("sum", ops::add(g, ops::add(g, y, bias), other));
    return g;
}

/// Whether the node that reads the dot is a map.
bool map_reads_dot(const Graph& g) {
    for (const Node& n : g.nodes()) {
        for (Value v : n.inputs) {
            const Node* p = g.producer(v);
            if (p != nullptr && p->is(dot_def)) {
                return n.is(map_def);
            }
        }
    }
    return false;
}

void expect_same(const Graph& before, const Graph& after, std::mt19937& rng) {
    std::vector<Tensor> in;
    for (Value v : before.inputs()) {
        in.push_back(random_tensor(rng, eval(before.type(v).dims, {})));
    }
    EXPECT_TRUE(evaluate(before, in)[0] == evaluate(after, in)[0]);
}

TEST(LiftMaps, OverAPermute) {
    std::mt19937 rng(1);
    Graph g = through(rng, [](Graph& h, Value y) { return ops::permute(h, y, {1, 2, 0}); });
    Graph lifted = after(lift_maps, after(lift_maps, g));
    EXPECT_TRUE(map_reads_dot(lifted));
    expect_same(g, lifted, rng);
}

TEST(LiftMaps, OverAReshapeThatKeepsTheLastAxis) {
    std::mt19937 rng(2);
    Graph g = through(rng, [](Graph& h, Value y) { return ops::reshape(h, y, {6, 6}); });
    Graph lifted = after(lift_maps, g);
    EXPECT_TRUE(map_reads_dot(lifted));
    expect_same(g, lifted, rng);
}

TEST(LiftMaps, ABiasAlongAnotherLastAxisStays) {
    std::mt19937 rng(3);
    Graph g = through(rng, [](Graph& h, Value y) { return ops::reshape(h, y, {4, 9}); });
    Graph lifted = after(lift_maps, g);
    EXPECT_FALSE(map_reads_dot(lifted));
    expect_same(g, lifted, rng);
}

TEST(LiftMaps, AReshapeBehindAPermuteStays) {
    std::mt19937 rng(4);
    Graph g = through(rng, [](Graph& h, Value y) {
        return ops::permute(h, ops::reshape(h, y, {2, 3, 2, 3}), {0, 2, 1, 3});
    });
    Graph lifted = after(lift_maps, g);
    EXPECT_FALSE(map_reads_dot(lifted));
    expect_same(g, lifted, rng);
}

TEST(LiftMaps, AViewWithAnotherReaderStays) {
    std::mt19937 rng(5);
    Graph g;
    Value x = g.add_input("x", {DType::F32, {2, 3, 8}});
    Value y =
        ops::permute(g, ops::matmul(g, x, ops::constant(g, random_tensor(rng, {8, 6}))), {1, 0, 2});
    g.add_output("sum", ops::add(g, y, ops::unary(g, ExprOp::Neg, y)));
    g.add_output("seen", y);
    Graph lifted = after(lift_maps, g);
    EXPECT_FALSE(map_reads_dot(lifted));
    expect_same(g, lifted, rng);
}

} // namespace
} // namespace ingot::plan
