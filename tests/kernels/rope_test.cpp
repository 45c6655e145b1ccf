// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "ir/text.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

Graph rope_graph(const std::string& x, const std::string& angles, bool interleaved) {
    Graph g;
    Value v = g.add_input("x", parse_type(x));
    Value c = g.add_input("cos", parse_type(angles));
    Value s = g.add_input("sin", parse_type(angles));
    g.add_output("y", ops::rope(g, ops::Rope{interleaved}, v, c, s));
    return g;
}

TEST(Rope, EveryFloatAndBothPairings) {
    for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
        for (bool interleaved : {false, true}) {
            SCOPED_TRACE(dtype);
            Graph g = rope_graph(std::string(dtype) + "[2,3,7,64]", "f32[7,32]", interleaved);
            EXPECT_EQ(sweep(g), std::vector<std::string>{"pairs"});
            expect_family(g, {.strided = true});
        }
    }
}

TEST(Rope, OddShapes) {
    for (const char* x : {"f16[1,5,3,6]", "f32[2]", "f16[4,2]", "bf16[3,1,130]", "f16[1,1,1,80]"}) {
        SCOPED_TRACE(x);
        Type t = parse_type(x);
        std::string half = std::to_string(t.dims.back().value() / 2);
        for (bool interleaved : {false, true}) {
            expect_family(rope_graph(x, "f32[" + half + "]", interleaved));
            expect_family(rope_graph(x, "f32[1]", interleaved));
        }
    }
}

TEST(Rope, AnyOrderOfAxes) {
    Graph g = rope_graph("f16[2,4,5,16]", "f16[2,1,5,8]", false);
    expect_family(g, {.orders = {{0, 2, 1, 3}}});
    expect_family(g, {.orders = {{3, 2, 1, 0}}});
}

TEST(Rope, ReadsHeadsOfAProductAndWritesIntoACache) {
    Graph g;
    Value qkv = g.add_input("qkv", parse_type("f16[1,1,192]"));
    Value past = g.add_input("past", parse_type("f16[1,2,6,32]"));
    Value cos = g.add_input("cos", parse_type("f32[1,16]"));
    Value sin = g.add_input("sin", parse_type("f32[1,16]"));
    Value k = ops::reshape(g, ops::slice(g, qkv, -1, 64, 64), {1, 1, 2, 32});
    k = ops::permute(g, k, {0, 2, 1, 3});
    Value both[] = {past, ops::rope(g, {}, k, cos, sin)};
    g.add_output("present", ops::concat(g, both, 2));
    BackendRun run = expect_backend(g, {.tolerance = 1e-3});
    EXPECT_EQ(run.kernels, std::vector<std::string>{"rope + copy"})
        << "the past is copied, nothing else";
}

} // namespace
} // namespace ingot::test
