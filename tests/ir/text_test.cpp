// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "error_of.h"
#include "ir/rewrite.h"
#include "ir/sample_graphs.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/op_table.h"

#include <gtest/gtest.h>

#include <set>

namespace ingot {
namespace {

const ParseOptions ops_only{find_op, {}};

std::string parse_error(std::string_view text) {
    return test::error_of([&] { parse_graph(text, ops_only); });
}

// Composites have cases in tests/ops, which go through text and binary too.
TEST(Text, SamplesUseEveryPrimitive) {
    std::set<std::string_view> used;
    for (const Graph& g : test::sample_graphs()) {
        visit_nodes(g, [&](const Graph&, const Node& n) { used.insert(n.def->name); });
    }
    for (const OpTable* table : all_ops()) {
        for (const OpDef* def : *table) {
            EXPECT_TRUE(def->is_composite() || used.contains(def->name))
                << def->name << " is in no sample graph";
        }
    }
}

TEST(Text, PrintedGraphsParseBackToTheSameText) {
    PrintOptions full;
    full.full = true;
    for (const Graph& g : test::sample_graphs()) {
        verify(g);
        std::string text = print(g, full);
        Graph again = parse_graph(text, ops_only);
        verify(again);
        EXPECT_EQ(print(again, full), text);
        ASSERT_EQ(again.nodes().size(), g.nodes().size());
        for (size_t i = 0; i < g.nodes().size(); ++i) {
            const Node& a = g.nodes()[i];
            const Node& b = again.nodes()[i];
            EXPECT_EQ(attrs_key(*a.def, a.attrs.get()), attrs_key(*b.def, b.attrs.get()));
            EXPECT_EQ(a.name, b.name);
        }
    }
}

TEST(Text, ConstantsAreElidedByHashAndResolved) {
    Graph g = test::primitives_graph();
    std::string text = print(g);
    ASSERT_NE(text.find("value=f32[5,7] <"), std::string::npos) << text;
    EXPECT_NE(parse_error(text).find("print the graph in full"), std::string::npos);
    ParseOptions options = ops_only;
    options.tensor = [&](const Type& t, std::string_view) {
        for (const Node& n : g.nodes()) {
            if (n.is(constant_def) && n.as<Constant>().value.type() == t) {
                return n.as<Constant>().value;
            }
        }
        return Tensor();
    };
    EXPECT_EQ(print(parse_graph(text, options)), text);
}

TEST(Text, FreshSymbolsStartAboveThoseOfTheText) {
    Graph g =
        parse_graph("graph a(%x: f32[N]) { %y = nonzero(%x) {count=?7} return %y }", ops_only);
    EXPECT_EQ(to_text(g.fresh_symbol()), "?8");
}

TEST(Text, AttributesOfOneOpParse) {
    auto a = parse_attrs(reduce_def, "fn=\"max\" axes=[1,2]");
    EXPECT_EQ(print_attrs(reduce_def, a.get()), "fn=\"max\", axes=[1,2]");
    EXPECT_THROW(parse_attrs(reduce_def, "fn=\"max\" fn=\"min\""), Error);
}

TEST(Text, ErrorsSayWhere) {
    EXPECT_EQ(parse_error("graph a() {\n  %x = frobnicate()\n return }"),
              "line 2, column 18: unknown op 'frobnicate'");
    EXPECT_EQ(parse_error("graph a() { return %y }"), "line 1, column 20: %y is not defined here");
    EXPECT_EQ(parse_error("graph a(%x: f32[2]) { %x = map(%x) return }").substr(0, 16),
              "line 1, column 2");
    EXPECT_EQ(parse_error("graph a() {"), "line 1, column 12: unknown op ''");
    EXPECT_EQ(parse_error("graph a(%x: f3[2]) { return }"),
              "line 1, column 15: 'f3' is not an element type");
    EXPECT_NE(parse_error("graph a() { %c = constant() {value=f32[2] [1]} return }")
                  .find("got 1 elements for f32[2], expected 2"),
              std::string::npos);
    EXPECT_NE(parse_error("graph a(%x: f32[2]) { %r = reshape(%x) {dims=[3]} return }")
                  .find("line 1, column 28: cannot reshape"),
              std::string::npos);
    EXPECT_NE(parse_error("graph a(%x: f32[2]) { %r = reshape(%x) {dims=[1,2]} : f32[2] return }")
                  .find("the type is f32[1,2], not f32[2]"),
              std::string::npos);
    EXPECT_NE(parse_error("graph a() { %c = constant() {valu=f32[] [1]} return }")
                  .find("'constant' has no attribute 'valu', expected one of [value]"),
              std::string::npos);
}

TEST(Text, DeepNestingIsRefused) {
    std::string text = "graph a(%x: f32[]) { ";
    for (int i = 0; i < 5000; ++i) {
        text += "%y = fused(%x) {body=graph b(%x: f32[]) {";
    }
    EXPECT_NE(parse_error(text).find("nested deeper than 64"), std::string::npos);
}

TEST(Text, SizesOfAllMagnitudesComeBack) {
    for (const char* text : {"9223372036854775807", "-9223372036854775808", "-7", "-N", "N-7",
                             "N-9223372036854775808", "-3*N+2", "-floordiv(N,2)"}) {
        Dim d = parse_dim(text);
        EXPECT_EQ(parse_dim(str(d)), d) << text << " printed as " << str(d);
    }
    EXPECT_EQ(parse_dim("-9223372036854775808"), Dim(INT64_MIN));
    EXPECT_EQ(parse_dim("10-3*N").eval(Symbols{{"N", 2}}), 4);
    EXPECT_THROW(parse_dim("9223372036854775808"), Error);
    EXPECT_THROW(parse_dim("-9223372036854775809"), Error);
}

} // namespace
} // namespace ingot
