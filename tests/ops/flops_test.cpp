// SPDX-License-Identifier: Apache-2.0
// Operations of single nodes against numbers computed by hand.
#include "ops/ops.h"
#include "ops/primitives.h"
#include "ops/support/flops.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

Operations last_node(const Graph& g, const Symbols& symbols = {}) {
    return count_operations(g, g.nodes().back(), symbols);
}

TEST(Operations, OfAProduct) {
    Graph g;
    Value a = g.add_input("a", parse_type("f32[4,8]"));
    Value b = g.add_input("b", parse_type("f32[8,16]"));
    ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F32}, a, b);
    EXPECT_EQ(last_node(g).products, 2 * 4 * 8 * 16);
    EXPECT_EQ(last_node(g).scalars, 0);
}

TEST(Operations, OfAProductWithSymbolicRows) {
    Graph g;
    Value a = g.add_input("a", parse_type("f32[n,8]"));
    Value b = g.add_input("b", parse_type("f32[8,16]"));
    ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F32}, a, b);
    EXPECT_EQ(last_node(g, {{"n", 5}}).products, 2 * 5 * 8 * 16);
    EXPECT_EQ(last_node(g).products, 2 * 1 * 8 * 16) << "a size that is not known counts as 1";
}

TEST(Operations, OfAConvolution) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[1,16,6,6]"));
    Value w = g.add_input("w", parse_type("f32[32,16,3,3]"));
    ops::conv(g, {.strides = {1, 1}, .dilations = {1, 1}, .low = {1, 1}, .high = {1, 1}}, x, w);
    EXPECT_EQ(last_node(g).products, 2.0 * (32 * 6 * 6) * (16 * 3 * 3));
    EXPECT_EQ(last_node(g).scalars, 0) << "padding computes nothing";
}

TEST(Operations, OfAttention) {
    constexpr int64_t scores = 2 * 3 * 8 * 10; // batch, heads, queries, keys
    Graph g;
    Value q = g.add_input("q", parse_type("f16[2,3,8,16]"));
    Value k = g.add_input("k", parse_type("f16[2,3,10,16]"));
    Value v = g.add_input("v", parse_type("f16[2,3,10,16]"));
    ops::attention(g, {.scale = 0.25}, q, k, v);
    EXPECT_EQ(last_node(g).products, 2 * (2 * scores * 16));
    // Scale, largest, difference, exponential, sum, division.
    EXPECT_EQ(last_node(g).scalars, 6 * scores);
}

TEST(Operations, OfANorm) {
    constexpr int64_t all = 4 * 64;
    constexpr int64_t rows = 4;
    Graph g;
    Value x = g.add_input("x", parse_type("f16[4,64]"));
    Value scale = g.add_input("scale", parse_type("f16[64]"));
    Value bias = g.add_input("bias", parse_type("f16[64]"));
    ops::layer_norm(g, {.axis = 1, .epsilon = 1e-5}, x, scale, bias);
    EXPECT_EQ(last_node(g).products, 0);
    // Sum, difference, square, sum, quotient, scale, bias; for each row two means, epsilon, root.
    EXPECT_EQ(last_node(g).scalars, 7 * all + 4 * rows);
}

TEST(Operations, OfAMapAreItsFunctionsWithoutCastsAndConstants) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[3,5]"));
    Value y = ops::mul(g, ops::cast(g, x, DType::F32), 2.0);
    EXPECT_EQ(count_operations(g, *g.producer(y), {}).scalars, 3 * 5);
    Value z = ops::cast(g, y, DType::F16);
    EXPECT_EQ(count_operations(g, *g.producer(z), {}).all(), 0);
}

TEST(Operations, OfAWholeModelAreTheProducts) {
    Graph g;
    Value a = g.add_input("a", parse_type("f32[n,8]"));
    Value b = g.add_input("b", parse_type("f32[8,8]"));
    Value y = ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F32}, a, b);
    g.add_output("z", ops::maximum(g, ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F32}, y, b), 0.0));
    Shape shapes[] = {{3, 8}, {8, 8}};
    EXPECT_EQ(count_flops(g, shapes), 2 * (2 * 3 * 8 * 8));
}

} // namespace
} // namespace ingot
