// SPDX-License-Identifier: Apache-2.0
// Inputs of a graph, and those that are initializers.
#include "ir/rewrite.h"
#include "onnx/model_builder.h"

namespace ingot::onnx {
namespace {

using test::elements;
using test::floats;
using test::graph;
using test::import_verified;
using test::initializer;
using test::model;
using test::node;

// Each copy of a graph of a million nodes costs seconds.
TEST(Inputs, StandBeforeInitializersSoThatRewritesShareTheGraph) {
    Model m = model(graph({"x:f32[2]", "w:f32[2]"}, {"y"},
                          {node("Add", {"x", "v"}, {"t"}), node("Mul", {"t", "w"}, {"y"})},
                          {initializer("v", floats({2}, {1, 2}))}));
    ingot::Graph g = import_verified(m);
    ASSERT_EQ(g.inputs().size(), 2U);
    EXPECT_EQ(g.inputs()[0].id, 0U);
    EXPECT_EQ(g.inputs()[1].id, 1U);
    EXPECT_EQ(g.value_name(g.inputs()[1]), "w");
    ingot::Graph same = rewrite(g, [](Rewriter&, const ingot::Node&, std::span<const Value>) {
        return std::optional<Values>();
    });
    EXPECT_TRUE(same.shares_all(g));
}

TEST(Inputs, OfTheNameOfAnInitializerAreItsValue) {
    Model m = model(graph({"x:f32[2]", "w:f32[2]"}, {"y"}, {node("Mul", {"x", "w"}, {"y"})},
                          {initializer("w", floats({2}, {3, 5}))}));
    ingot::Graph g = import_verified(m);
    ASSERT_EQ(g.inputs().size(), 1U);
    EXPECT_EQ(elements(evaluate(g, std::vector{floats({2}, {1, 2})})[0]),
              (std::vector<double>{3, 10}));
}

TEST(Inputs, OfTheNameOfARefusedInitializerAreRefusedWithIt) {
    Tensor w = initializer("w", floats({2}, {3, 5}));
    w.data_type = 8; // strings
    Model m = model(graph({"x:f32[2]", "w:f32[2]"}, {"y"}, {node("Mul", {"x", "w"}, {"y"})}, {w}));
    ImportResult r = import_model(m);
    ASSERT_EQ(r.refusals.size(), 1U);
    EXPECT_EQ(r.refusals[0].node, "initializer 'w'");
    EXPECT_EQ(r.graph.inputs().size(), 1U);
}

} // namespace
} // namespace ingot::onnx
