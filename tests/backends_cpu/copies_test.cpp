// SPDX-License-Identifier: Apache-2.0
// Copies that the planner avoids or merges.
#include "backends/backends.h"
#include "backends_cpu/compare.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot {
namespace {

using test::expect_same_as_evaluator;

int64_t copies_of(const Graph& g, const Symbols& symbols) {
    auto execution = cpu_backend().compile(std::make_shared<const Graph>(g))->create_execution();
    std::vector<Shape> shapes;
    for (Value v : g.inputs()) {
        shapes.push_back(eval(g.type(v).dims, symbols));
    }
    execution->prepare(shapes);
    auto steps = execution->steps();
    return std::count_if(steps.begin(), steps.end(),
                         [](const StepInfo& s) { return s.kernel == "copy"; });
}

/// Layers that each add one row to their part of a cache, as decoders do.
Graph cache_of_layers(int layers, bool reversed) {
    Graph g;
    Dim past = Dim::symbol("P");
    Value x = g.add_input("x", {DType::F32, {2, 1, 4}});
    Value cache = g.add_input("past", {DType::F32, {layers, 2, past, 4}});
    Values present;
    for (int i = 0; i < layers; ++i) {
        int from = reversed ? layers - 1 - i : i;
        Value old = ops::reshape(g, ops::slice(g, cache, 0, from, 1), {2, past, 4});
        x = ops::mul(g, x, 0.5);
        Value both = ops::concat(g, std::array{old, x}, 1);
        x = ops::add(g, x, ops::reduce_sum(g, both, {1}, true));
        present.push_back(ops::unsqueeze(g, both, {0}));
    }
    g.add_output("present", ops::concat(g, present, 0));
    g.add_output("y", x);
    return g;
}

TEST(Copies, LayersOfACacheAreOne) {
    Graph g = cache_of_layers(4, false);
    EXPECT_EQ(copies_of(g, {{"P", 5}}), 1);
    for (int64_t p : {0, 1, 5}) {
        expect_same_as_evaluator(g, {{"P", p}});
    }
}

TEST(Copies, AgainstTheOrderStayApart) {
    Graph g = cache_of_layers(3, true);
    EXPECT_EQ(copies_of(g, {{"P", 5}}), 3);
    expect_same_as_evaluator(g, {{"P", 5}});
}

TEST(Copies, WhatChangedMeanwhileIsReadAgain) {
    // Both halves of z go to parts of y at equal distances; the second half is written later.
    Graph g;
    Value a = g.add_input("a", {DType::F32, {1, 4}});
    Value b = g.add_input("b", {DType::F32, {1, 4}});
    Value first = ops::mul(g, a, 2);
    Value left = ops::concat(g, std::array{first, b}, 0);
    Value second = ops::add(g, ops::reduce_sum(g, left, {0}, true), b);
    Value z = ops::concat(g, std::array{left, second}, 0);
    Values parts;
    for (int64_t i : {0, 1, 2}) {
        parts.push_back(ops::slice(g, i < 2 ? left : z, 0, i, 1));
    }
    g.add_output("y", ops::concat(g, parts, 1));
    g.add_output("z", z);
    expect_same_as_evaluator(g);
}

TEST(Copies, NestedConcatsWithAxesOfOne) {
    Graph g;
    Value a = g.add_input("a", {DType::F32, {3, 4}});
    Value b = g.add_input("b", {DType::F32, {3, 4}});
    Value sum = ops::unsqueeze(g, ops::add(g, a, b), {0, 2});
    Value difference = ops::unsqueeze(g, ops::sub(g, a, b), {0, 2});
    Value inner = ops::concat(g, std::array{sum, difference}, 0); // [2,3,1,4]
    Value outer = ops::concat(g,
                              std::array{ops::reshape(g, inner, {2, 1, 3, 4, 1}),
                                         ops::reshape(g, inner, {2, 1, 3, 4, 1})},
                              1);
    g.add_output("y", outer);
    g.add_output("flat", ops::reshape(g, inner, {24}));
    expect_same_as_evaluator(g);
}

} // namespace
} // namespace ingot
