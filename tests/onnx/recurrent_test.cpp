// SPDX-License-Identifier: Apache-2.0
// How recurrent operators are imported; the suites and contrib cases compare their results.
#include "onnx/model_builder.h"
#include "ops/primitives.h"
#include "ops/recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::onnx::test {

namespace {

ingot::Tensor ramp(const Shape& shape) {
    ingot::Tensor t = ingot::Tensor::empty(DType::F32, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, 0.01 * static_cast<double>(i % 37));
    }
    return t;
}

TEST(Recurrent, OneProductMakesTheInputsOfBothDirections) {
    for (const auto& [type, gates] :
         {std::pair{"LSTM", int64_t{4}}, std::pair{"GRU", int64_t{3}}}) {
        SCOPED_TRACE(type);
        ingot::Graph g = import_verified(model(graph(
            {"x:f32[5,2,3]"}, {"y"},
            {node(type, {"x", "w", "r", "b"}, {"y"},
                  {int_of("hidden_size", 4), string_of("direction", "bidirectional")})},
            {initializer("w", ramp({2, gates * 4, 3})), initializer("r", ramp({2, gates * 4, 4})),
             initializer("b", ramp({2, gates * 8}))})));
        const auto& nodes = g.nodes();
        auto is_product = [](const auto& n) { return n.is(dot_def); };
        EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), is_product), 1);
        auto layer = std::find_if(nodes.begin(), nodes.end(),
                                  [](const auto& n) { return n.is(ops::recurrence_def); });
        ASSERT_NE(layer, nodes.end());
        EXPECT_EQ(g.type(layer->inputs[0]), (Type{DType::F32, {5, 2, 2 * gates * 4}}));
    }
}

TEST(Recurrent, DirectionsWithOtherFunctionsAreLayersOfTheirOwn) {
    ingot::Graph g = import_verified(
        model(graph({"x:f32[5,2,3]"}, {"y"},
                    {node("RNN", {"x", "w", "r"}, {"y"},
                          {int_of("hidden_size", 4), string_of("direction", "bidirectional"),
                           strings_of("activations", {"Relu", "Tanh"})})},
                    {initializer("w", ramp({2, 4, 3})), initializer("r", ramp({2, 4, 4}))})));
    const auto& nodes = g.nodes();
    EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(),
                            [](const auto& n) { return n.is(ops::recurrence_def); }),
              2);
}

} // namespace

} // namespace ingot::onnx::test
