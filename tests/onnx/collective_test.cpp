// SPDX-License-Identifier: Apache-2.0
// The collectives of com.microsoft become ops, or nothing where there is one rank.
#include "onnx/model_builder.h"
#include "onnx/test_util.h"
#include "ops/collective.h"

namespace ingot::onnx::test {

namespace {

/// The graph of y = op(x: f32[2,3]).
ingot::Graph imported(const char* op, std::vector<Attribute> attributes) {
    Node n = in_domain("com.microsoft", node(op, {"x"}, {"y"}, std::move(attributes)));
    return import_verified(model(graph({"x:f32[2,3]"}, {"y"}, {n}), 24));
}

std::string result(const ingot::Graph& g) {
    return str(g.type(g.outputs()[0]));
}

TEST(OnnxCollectives, BecomeOps) {
    ingot::Graph g = imported("AllReduce", {int_of("group_size", 4)});
    ASSERT_EQ(g.nodes().size(), 1);
    const auto& c = g.nodes()[0].as<Collective>();
    EXPECT_EQ(c.operation, "all_reduce");
    EXPECT_EQ(c.reduction, "sum");
    EXPECT_EQ(c.ranks, 4);
    EXPECT_EQ(result(imported("AllGather", {int_of("group_size", 4)})), "f32[8,3]");
    EXPECT_EQ(result(imported("AllGather", {int_of("group_size", 4), int_of("axis", -1)})),
              "f32[2,12]");
    EXPECT_EQ(result(imported("AllToAll", {int_of("group_size", 2)})), "f32[2,3]");
}

TEST(OnnxCollectives, OfOneRankAreNothing) {
    for (const char* op : {"AllReduce", "AllGather", "AllToAll"}) {
        EXPECT_EQ(imported(op, {}).nodes().size(), 0) << op;
    }
}

TEST(OnnxCollectives, RefuseWhatDoesNotFit) {
    std::string text = error_of([] { imported("AllToAll", {int_of("group_size", 3)}); });
    EXPECT_NE(text.find("axis 0 of f32[2,3] does not divide into 3 parts for all_to_all"),
              std::string::npos)
        << text;
    text = error_of([] { imported("AllReduce", {int_of("group_size", 0)}); });
    EXPECT_NE(text.find("group_size is 0, expected 1 or more"), std::string::npos) << text;
}

} // namespace

} // namespace ingot::onnx::test
