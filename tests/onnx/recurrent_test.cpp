// SPDX-License-Identifier: Apache-2.0
// How recurrent operators are imported; the suites and contrib cases compare their results.
#include "onnx/model_builder.h"
#include "ops/primitives.h"

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

TEST(Recurrent, BiasesAreAddedToTheProductOfADirection) {
    // Both directions side by side would be a pass over all steps of its own.
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
        auto loop =
            std::find_if(nodes.begin(), nodes.end(), [](const auto& n) { return n.is(loop_def); });
        ASSERT_NE(loop, nodes.end());
        const Dims steps = {5, 2, 2, gates * 4};
        auto x = std::find_if(loop->inputs.begin(), loop->inputs.end(),
                              [&](Value v) { return g.type(v).dims == steps; });
        ASSERT_NE(x, loop->inputs.end());
        const ingot::Node* made = g.producer(*x);
        ASSERT_NE(made, nullptr);
        EXPECT_TRUE(made->is(concat_def)) << made->def->name;
    }
}

} // namespace

} // namespace ingot::onnx::test
