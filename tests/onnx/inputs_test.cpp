// SPDX-License-Identifier: Apache-2.0
// Inputs of a graph, and those that are initializers.
#include "ir/rewrite.h"
#include "onnx/input_defaults.h"
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

TEST(Inputs, ThatAreOptionalAreInputsWithADefault) {
    Model m = model(
        graph({"x:f32[2]", "w:f32[2]", "v:f32[2]"}, {"y"},
              {node("Mul", {"x", "w"}, {"t"}), node("Add", {"t", "v"}, {"y"})},
              {initializer("w", floats({2}, {3, 5})), initializer("v", floats({2}, {1, 1}))}));
    m.ir_version = 4;
    make_optional(m, std::vector<std::string>{"w"});
    make_optional(m, std::vector<std::string>{"w"}); // again
    ingot::Graph g = import_verified(m);
    ASSERT_EQ(g.inputs().size(), 2U); // v is a constant
    EXPECT_EQ(g.value_name(g.inputs()[1]), "w");
    EXPECT_EQ(elements(evaluate(g, std::vector{floats({2}, {1, 2}), floats({2}, {7, 7})})[0]),
              (std::vector<double>{8, 15}));
    ASSERT_EQ(m.input_defaults.size(), 1U);
    EXPECT_EQ(m.input_defaults[0].name, "w");
}

TEST(Inputs, WithoutADefaultCannotBeOptional) {
    struct Case {
        const char* name;
        std::function<void(Model&)> change;
        const char* text;
    };
    const Case cases[] = {
        {"z", [](Model&) {}, "optional input 'z': the model has no such input"},
        {"v", [](Model&) {}, "optional input 'v': the model has no such input"},
        {"x", [](Model&) {},
         "optional input 'x': it has no default: the model has no initializer of this name; add "
         "one, or let every run bring the input"},
        {"w", [](Model& m) { m.ir_version = 3; },
         "optional input 'w': the model has IR version 3, and initializers are defaults from 4 on"},
        {"w",
         [](Model& m) {
             m.graph.initializers[0] = initializer("w", floats({3}, {1, 2, 3}));
         },
         "optional input 'w': it is f32[2], and its default is f32[3]"},
        {"w",
         [](Model& m) {
             m.graph.inputs[1].dims[0].value = int64_t{1} << 20;
             m.graph.initializers[0] =
                 initializer("w", ingot::Tensor::zeros(DType::F32, {int64_t{1} << 20}));
         },
         "optional input 'w': its default has 4194304 bytes, at most 1048576 are kept"},
        {"w", [](Model& m) { m.graph.initializers[0].missing = "no file w.data"; },
         "optional input 'w': its default cannot be read: no file w.data"},
    };
    for (const Case& c : cases) {
        Model m = model(
            graph({"x:f32[2]", "w:f32[2]"}, {"y"},
                  {node("Mul", {"x", "w"}, {"t"}), node("Mul", {"t", "v"}, {"y"})},
                  {initializer("w", floats({2}, {3, 5})), initializer("v", floats({2}, {1, 1}))}));
        m.ir_version = 8;
        c.change(m);
        try {
            make_optional(m, std::vector<std::string>{c.name});
            ADD_FAILURE() << c.text;
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find(c.text), std::string::npos) << e.what();
        }
        EXPECT_EQ(m.graph.initializers.size(), 2U);
    }
}

} // namespace
} // namespace ingot::onnx
