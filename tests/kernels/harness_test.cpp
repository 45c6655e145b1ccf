#include "kernels/harness.h"
#include "ops/ops.h"
#include <gtest/gtest.h>
#include <iostream>
namespace ingot::test { namespace {
TEST(Try, Softmax) {
    Graph g; Value a = g.add_input("a", parse_type("f32[4,300]"));
    g.add_output("y", ops::softmax(g, a, 1));
    auto r = refusal(g); if (r) std::cerr << *r << "\n";
    for (auto& t : sweep(g)) std::cerr << t << "\n";
}
TEST(Try, Dot) {
    Graph g; Value a = g.add_input("a", parse_type("f16[70,64]")); Value b = g.add_input("b", parse_type("f16[64,72]"));
    g.add_output("y", ops::matmul(g, a, b));
    auto r = refusal(g); if (r) std::cerr << *r << "\n";
    for (auto& t : sweep(g, {.tolerance=1e-2})) std::cerr << t << "\n";
}
TEST(Try, Map) {
    Graph g; Value a = g.add_input("a", parse_type("f16[70,64]")); Value b = g.add_input("b", parse_type("f16[64]"));
    g.add_output("y", ops::exp(g, ops::add(g, a, b)));
    expect_backend(g);
}
}}
