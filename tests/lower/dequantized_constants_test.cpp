// SPDX-License-Identifier: Apache-2.0
// Dequantised constants, which the CPU's lowering turns into floats.
#include "lower/passes.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <array>

namespace ingot {
namespace {

struct DequantizeCase {
    DType type;
    Shape shape;
    int64_t axis;
    int64_t block;
    Shape scale;
    bool zero;
};

Tensor counting(DType type, const Shape& shape, double step) {
    Tensor t = Tensor::zeros(type, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, step * static_cast<double>(i % 7 + 1));
    }
    return t;
}

Graph graph_of(const DequantizeCase& c, bool constant) {
    Graph g;
    Tensor q = counting(c.type, c.shape, 1);
    Value x = constant ? ops::constant(g, q) : g.add_input("q", q.type());
    Value scale = ops::constant(g, counting(DType::F32, c.scale, 0.3));
    Value zero = c.zero ? ops::constant(g, counting(c.type, c.scale, 1)) : Value{};
    g.add_output("y", ops::dequantize(g, {c.axis, c.block, DType::F32}, x, scale, zero));
    return g;
}

TEST(DequantizedConstants, AreWhatDequantizeGives) {
    const DequantizeCase cases[] = {
        {DType::I8, {3, 4, 5}, 0, 0, {3}, false},        {DType::I8, {3, 4, 5}, 1, 0, {4}, true},
        {DType::U8, {3, 4, 5}, -1, 0, {5}, true},        {DType::I8, {6}, 0, 0, {}, true},
        {DType::I4, {8, 3}, 0, 4, {2, 3}, false},        {DType::U4, {3, 8}, 1, 2, {3, 4}, true},
        {DType::I4, {2, 10, 3}, 1, 4, {2, 3, 3}, false}, {DType::F8E4M3, {5, 2}, 1, 0, {2}, false},
    };
    for (const DequantizeCase& c : cases) {
        Graph folded = plan::after(plan::dequantized_constants, graph_of(c, true));
        ASSERT_NE(folded.constant(folded.outputs()[0]), nullptr);
        Tensor q = counting(c.type, c.shape, 1);
        EXPECT_EQ(*folded.constant(folded.outputs()[0]),
                  evaluate(graph_of(c, false), std::array{q})[0])
            << str(c.type, c.shape);
    }
}

TEST(DequantizedConstants, OthersStay) {
    DequantizeCase c{DType::I8, {3, 4}, 0, 0, {3}, false};
    Graph g = plan::after(plan::dequantized_constants, graph_of(c, false));
    EXPECT_EQ(g.constant(g.outputs()[0]), nullptr);
    c.type = DType::I32;
    g = plan::after(plan::dequantized_constants, graph_of(c, true));
    EXPECT_EQ(g.constant(g.outputs()[0]), nullptr);
}

} // namespace
} // namespace ingot
