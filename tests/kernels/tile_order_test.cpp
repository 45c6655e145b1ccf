// SPDX-License-Identifier: Apache-2.0
// The direction in which products of a plan make their tiles.
#include "backends/cuda/run/tile_order.h"
#include "kernels/harness.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

TEST(TileOrder, ProductsTurnWhereTheyReadWhatAProductWroteForwards) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[8,8]"));
    Value w = ops::constant(g, random_elements(DType::F16, {8, 8}, 1));
    Value first = ops::matmul(g, x, w);
    Value second = ops::matmul(g, first, w);
    Value third = ops::matmul(g, second, w);
    Value map = ops::maximum(g, second, 0.0);
    Value fourth = ops::matmul(g, map, w);
    g.add_output("y", third);
    g.add_output("z", fourth);
    cuda::TileOrder order;
    const Symbols symbols;
    auto step = [&](Value v) {
        const Node& n = *g.producer(v);
        plan::Group group{g, {&n, 1}, n.inputs, n.outputs};
        std::vector<plan::Operand> in;
        for (Value i : n.inputs) {
            in.push_back({DType::F16, static_cast<int>(i.id), plan::dense({8, 8}, {0, 1})});
        }
        std::vector<plan::Operand> out = {
            {DType::F16, static_cast<int>(v.id), plan::dense({8, 8}, {0, 1})}};
        return order.add({group, symbols, in, out, {}, kernels::arch_of(90)});
    };
    EXPECT_TRUE(step(first));
    EXPECT_FALSE(step(second));
    EXPECT_TRUE(step(third));
    EXPECT_FALSE(step(map)); // forwards, as all that is no product
    EXPECT_TRUE(step(fourth));
    order.begin_plan();
    EXPECT_TRUE(step(second)); // of a plan that does not know the first
}

} // namespace
} // namespace ingot::test
