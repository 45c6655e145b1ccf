// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

std::string error_of(const Graph& g) {
    try {
        verify(g, ErrorCode::InvalidEngine);
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidEngine);
        return e.what();
    }
    return "no error";
}

TEST(Verify, NamesMustBeUnique) {
    Graph g("g");
    Value x = g.add_input("x", {DType::F32, {2}});
    g.add_input("x", {DType::F32, {2}});
    EXPECT_EQ(error_of(g), "graph 'g': two inputs are named 'x'");
    Graph h("h");
    x = h.add_input("x", {DType::F32, {2}});
    h.add_output("y", x);
    h.add_output("y", x);
    EXPECT_EQ(error_of(h), "graph 'h': two outputs are named 'y'");
}

TEST(Verify, SizesMustBeDefined) {
    Graph g("g");
    Value x = g.add_input("x", {DType::F32, {1}});
    g.set_origin("grow");
    g.add_output("y", ops::broadcast_to(g, x, {Dim::symbol("N")}));
    EXPECT_EQ(error_of(g), "graph 'g': node 0 'grow' (broadcast): mentions the size 'N', which "
                           "neither an input nor an earlier node defines");
}

TEST(Verify, ConstantsNeedAValue) {
    Graph g("g");
    try {
        g.add1(constant_def, Constant{}, {});
        FAIL() << "a constant without a value";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "constant: the tensor has no value");
    }
}

TEST(Verify, BodiesAreCheckedToo) {
    Graph g("g");
    Value x = g.add_input("x", {DType::F32, {1}});
    Graph body = g.sibling("inner");
    Value b = body.add_input("", {DType::F32, {1}});
    Value wide = ops::broadcast_to(body, b, {Dim::symbol("M")});
    body.add_output("", ops::slice(body, wide, 0, 0, 1));
    g.add1(fused_def, Fused{"pointwise", std::make_shared<const Graph>(std::move(body))}, {x});
    EXPECT_NE(error_of(g).find("graph 'inner': node 0 '' (broadcast): mentions the size 'M'"),
              std::string::npos)
        << error_of(g);
}

} // namespace
} // namespace ingot
