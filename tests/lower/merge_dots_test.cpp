// SPDX-License-Identifier: Apache-2.0
#include "lower/passes.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

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
    Graph merged = after(merge_dots, g);
    EXPECT_EQ(dots_of(merged), 1);
    expect_same(g, merged, rng);
}

/// Rows of several pieces, and one row that holds all: each element is where it belongs.
TEST(MergeDots, LargeConstantsAreJoinedElementByElement) {
    std::mt19937 rng(9);
    for (int64_t axis : {0, 1}) {
        Graph g;
        Value x = g.add_input("x", {DType::F32, {Dim::symbol("B"), 3}});
        std::vector<Tensor> parts;
        int64_t columns = 0;
        for (int64_t n : {40000, 16384, 16385, 7}) {
            parts.push_back(random_tensor(rng, axis == 0 ? Shape{n, 3} : Shape{3, n}));
            Dot d{{}, {}, {1}, {1 - axis}};
            g.add_output(str("y", n), ops::dot(g, d, x, ops::constant(g, parts.back())));
            columns += n;
        }
        Graph merged = after(merge_dots, g);
        auto dot = std::find_if(merged.nodes().begin(), merged.nodes().end(),
                                [](const Node& n) { return n.is(dot_def); });
        const Tensor& all = *merged.constant(dot->inputs[1]);
        EXPECT_FALSE(all.is_made());
        ASSERT_EQ(all.shape(), axis == 0 ? (Shape{columns, 3}) : (Shape{3, columns}));
        int64_t start = 0;
        for (const Tensor& p : parts) {
            int64_t n = p.shape()[static_cast<size_t>(axis)];
            for (int64_t i = 0; i < p.count(); ++i) {
                int64_t k = axis == 0 ? i % 3 : i / n;
                int64_t c = axis == 0 ? i / 3 : i % n;
                int64_t at = axis == 0 ? (start + c) * 3 + k : k * columns + start + c;
                ASSERT_EQ(all.as<float>()[static_cast<size_t>(at)],
                          p.as<float>()[static_cast<size_t>(i)])
                    << axis << ' ' << n << ' ' << i;
            }
            start += n;
        }
    }
}

TEST(MergeDots, BiasesMergeToo) {
    std::mt19937 rng(2);
    Graph g = products(rng, [&rng](Graph& graph, Value y, int64_t n) {
        return ops::add(graph, y, ops::constant(graph, random_tensor(rng, {n})));
    });
    Graph merged = after(merge_dots, g);
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
    Graph merged = after(merge_dots, g);
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
    EXPECT_EQ(dots_of(after(merge_dots, g)), 2);
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
    Graph merged = after(merge_dots, g);
    EXPECT_EQ(dots_of(merged), 1);
    expect_same(g, merged, rng);
}

/// x [2, 8] times quantised constants of 8 x {4, 6}, stored as [8, n] or [n, 8].
struct Quantised {
    DType type = DType::I4;
    bool rows_inside = true; // [n, 8]
    int64_t block = 0;
    std::array<int64_t, 2> zeros = {0, 0}; // where `one_zero`
    bool one_zero = false;
    bool permuted = false; // scales
};

Graph quantised_products(const Quantised& q) {
    std::mt19937 rng(6);
    std::uniform_int_distribution<int64_t> code(-7, 7);
    auto codes = [&](DType t, const Shape& shape) {
        std::vector<int64_t> v;
        for (int64_t i = 0; i < count_of(shape); ++i) {
            v.push_back(code(rng));
        }
        return Tensor::of(t, shape, std::span<const int64_t>(v));
    };
    Graph g;
    Value x = g.add_input("x", {DType::F32, {2, 3, 8}});
    for (size_t i : {0, 1}) {
        int64_t n = i == 0 ? 4 : 6;
        Value w = ops::constant(g, codes(q.type, q.rows_inside ? Shape{n, 8} : Shape{8, n}));
        ops::QuantizedDot a;
        a.a_contract = {2};
        a.b_contract = {q.rows_inside ? 1 : 0};
        a.block = q.block;
        a.axis = q.block > 0 ? a.b_contract[0] : 1 - a.b_contract[0];
        Shape places = q.block == 0                  ? Shape{n}
                       : q.rows_inside != q.permuted ? Shape{n, 8 / q.block}
                                                     : Shape{8 / q.block, n};
        Value scale = ops::constant(g, random_tensor(rng, places));
        scale = q.permuted ? ops::permute(g, scale, {1, 0}) : scale;
        Dims dims = g.type(scale).dims;
        Value zero = q.one_zero ? ops::scalar_i64(g, DType::I8, q.zeros[i])
                                : ops::constant(g, codes(DType::I8, eval(dims, {})));
        g.add_output(str("y", i), ops::quantized_dot(g, a, x, w, scale, zero));
    }
    return g;
}

void expect_merged(const Quantised& q, int64_t products) {
    Graph g = quantised_products(q);
    Graph merged = after(merge_dots, g);
    EXPECT_EQ(std::count_if(merged.nodes().begin(), merged.nodes().end(),
                            [](const Node& n) { return n.is(ops::quantized_dot_def); }),
              products);
    // Scales and zero points are joined once, not in every run.
    EXPECT_EQ(std::count_if(merged.nodes().begin(), merged.nodes().end(),
                            [](const Node& n) { return n.is(concat_def); }),
              0);
    std::mt19937 rng(7);
    expect_same(g, merged, rng);
}

TEST(MergeDots, QuantisedConstants) {
    expect_merged({}, 1);
    expect_merged({.type = DType::I8, .rows_inside = false}, 1);
    expect_merged({.block = 4}, 1);
    expect_merged({.block = 4, .permuted = true}, 1);
    expect_merged({.type = DType::I8, .rows_inside = false, .block = 4}, 1);
    expect_merged({.zeros = {3, 3}, .one_zero = true}, 1);
}

TEST(MergeDots, QuantisedConstantsThatStay) {
    expect_merged({.zeros = {3, 4}, .one_zero = true}, 2);
    expect_merged({.rows_inside = false}, 2); // rows of 4-bit elements would not begin at bytes
}

} // namespace
} // namespace ingot::plan
