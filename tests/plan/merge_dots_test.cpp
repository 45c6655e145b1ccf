// SPDX-License-Identifier: Apache-2.0
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "plan/lowering.h"

#include <gtest/gtest.h>

#include <algorithm>
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

int64_t dots_of(const Graph& g) {
    return std::count_if(g.nodes().begin(), g.nodes().end(),
                         [](const Node& n) { return n.is(dot_def); });
}

/// x [B, 3, 8] times three constants of 8 x {4, 6, 5}, each with what `after` adds.
template <class F>
Graph products(std::mt19937& rng, const F& after) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {Dim::symbol("B"), 3, 8}});
    int i = 0;
    for (int64_t n : {4, 6, 5}) {
        Value y = ops::matmul(g, x, ops::constant(g, random_tensor(rng, {8, n})));
        g.add_output(str("y", i++), after(g, y, n));
    }
    return g;
}

void expect_same(const Graph& before, const Graph& after, std::mt19937& rng) {
    std::vector<Tensor> in{random_tensor(rng, {2, 3, 8})};
    std::vector<Tensor> want = evaluate(before, in);
    std::vector<Tensor> got = evaluate(after, in);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(got[i] == want[i]) << "output " << i;
    }
}

TEST(MergeDots, ProductsOfOneOperandBecomeOne) {
    std::mt19937 rng(1);
    Graph g = products(rng, [](Graph&, Value y, int64_t) { return y; });
    Graph merged = merge_dots(g);
    EXPECT_EQ(dots_of(merged), 1);
    expect_same(g, merged, rng);
}

TEST(MergeDots, BiasesMergeToo) {
    std::mt19937 rng(2);
    Graph g = products(rng, [&rng](Graph& graph, Value y, int64_t n) {
        return ops::add(graph, y, ops::constant(graph, random_tensor(rng, {n})));
    });
    Graph merged = merge_dots(g);
    EXPECT_EQ(dots_of(merged), 1);
    EXPECT_EQ(std::count_if(merged.nodes().begin(), merged.nodes().end(),
                            [](const Node& n) { return n.is(map_def); }),
              1);
    expect_same(g, merged, rng);
}

TEST(MergeDots, MapsThatDifferStayBehindTheSlices) {
    std::mt19937 rng(3);
    Graph g = products(rng, [](Graph& graph, Value y, int64_t n) {
        return ops::mul(graph, y, static_cast<double>(n));
    });
    Graph merged = merge_dots(g);
    EXPECT_EQ(dots_of(merged), 1);
    expect_same(g, merged, rng);
}

TEST(MergeDots, ProductsOfDifferentOperandsStay) {
    std::mt19937 rng(4);
    Graph g;
    for (int i = 0; i < 2; ++i) {
        Value x = g.add_input(str("x", i), {DType::F32, {3, 8}});
        g.add_output(str("y", i), ops::matmul(g, x, ops::constant(g, random_tensor(rng, {8, 4}))));
    }
    EXPECT_EQ(dots_of(merge_dots(g)), 2);
}

TEST(MergeDots, TransposedConstantsJoinAlongTheOtherAxis) {
    std::mt19937 rng(5);
    Graph g;
    Value x = g.add_input("x", {DType::F32, {2, 3, 8}});
    Dot d;
    d.a_contract = {2};
    d.b_contract = {1};
    for (int64_t n : {4, 6}) {
        Value w = ops::constant(g, random_tensor(rng, {n, 8}));
        g.add_output(str("y", n), ops::dot(g, d, x, w));
    }
    Graph merged = merge_dots(g);
    EXPECT_EQ(dots_of(merged), 1);
    expect_same(g, merged, rng);
}

} // namespace
} // namespace ingot::plan
