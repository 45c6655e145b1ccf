// SPDX-License-Identifier: Apache-2.0
#include "harness.h"
#include "ir/text.h"
#include "ops/squeeze_excite.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

struct Layers {
    std::string x;
    int64_t channels = 1;
    int64_t hidden = 1;
};

Expr swish() {
    return parse_expr("0=in(0):f32; 1=sigmoid(0):f32; 2=mul(0,1):f32");
}

Expr sigmoid() {
    return parse_expr("0=in(0):f32; 1=sigmoid(0):f32");
}

Value excite(Graph& g, const Layers& l) {
    Type x = parse_type(l.x);
    auto input = [&g, &x](const char* name, const Dims& d) {
        return g.add_input(name, Type{x.dtype, d});
    };
    std::array in{g.add_input("x", x), input("w1", {l.hidden, l.channels}), input("b1", {l.hidden}),
                  input("w2", {l.channels, l.hidden}), input("b2", {l.channels})};
    return ops::squeeze_excite(g, {swish(), sigmoid()}, in);
}

Graph excite_graph(const Layers& l) {
    Graph g;
    g.add_output("y", excite(g, l));
    return g;
}

void expect_both(const Graph& g) {
    for (const char* tactic : {"cluster", "slices"}) {
        SCOPED_TRACE(tactic);
        expect_family(g, {.tactic = tactic});
    }
}

TEST(SqueezeExcite, EveryArchitectureAndType) {
    std::vector<std::string> ran = sweep(excite_graph({"f16[2,48,5,7]", 48, 6}));
    EXPECT_EQ(std::count(ran.begin(), ran.end(), "cluster"), 1);
    EXPECT_EQ(std::count(ran.begin(), ran.end(), "slices"), 1);
    expect_both(excite_graph({"f32[2,48,5,7]", 48, 6}));
    expect_both(excite_graph({"bf16[2,48,5,7]", 48, 6}));
    EXPECT_TRUE(refusal(excite_graph({"f64[1,8,4]", 8, 4})));
    EXPECT_EQ(
        refusal(excite_graph({"f16[1,1536,4]", 1536, 768})).value_or(""),
        "no family 'squeeze_excite' takes the group: weights [768,1536] are more than 262144;");
}

TEST(SqueezeExcite, OddChannelsAndOtherSpatialAxes) {
    expect_both(excite_graph({"f16[1,13,9]", 13, 5}));
    expect_both(excite_graph({"f16[3,36,2,3,2]", 36, 4}));
    expect_family(excite_graph({"f32[1,3,1]", 3, 1}), {.tactic = "cluster"});
}

TEST(SqueezeExcite, LayersOfModels) {
    // Slices of an uneven number of columns; blocks without pixels; channels that outnumber
    // threads.
    FamilyRun run =
        expect_family(excite_graph({"f16[1,1152,7,7]", 1152, 48}), {.tactic = "cluster"});
    EXPECT_EQ(run.entries, std::vector<std::string>{"squeeze_excite"});
    expect_family(excite_graph({"f16[1,1152,7,7]", 1152, 48}), {.tactic = "slices"});
    expect_family(excite_graph({"f16[1,32,56,56]", 32, 8}), {.tactic = "cluster"});
    run = expect_family(excite_graph({"f16[2,144,28,28]", 144, 6}), {.tactic = "slices"});
    EXPECT_EQ(run.entries, (std::vector<std::string>{"excite_parts", "squeeze_excite"}));
    EXPECT_GT(run.scratch, 0);
}

TEST(SqueezeExcite, WhatDoesNotFitTakesTwoLaunches) {
    Graph g = excite_graph({"f16[1,16,400,400]", 16, 4});
    EXPECT_EQ(tactic_names(g), std::vector<std::string>{"slices"});
    // Weights that find no room are read where they lie.
    Graph wide = excite_graph({"f16[1,960,5,5]", 960, 270});
    expect_family(wide, {.tactic = "cluster"});
    expect_family(wide, {.tactic = "slices"});
}

TEST(SqueezeExcite, SizesThatVary) {
    Graph g = excite_graph({"f16[N,24,H,W]", 24, 10});
    expect_family(g, {.symbols = {{"N", 5}, {"H", 3}, {"W", 4}}});
    expect_family(g, {.symbols = {{"N", 1}, {"H", 1}, {"W", 1}}});
    expect_family(g, {.symbols = {{"N", 0}, {"H", 3}, {"W", 4}}});
}

TEST(SqueezeExcite, MapBehindIt) {
    Graph g;
    Value y = excite(g, {"f16[2,24,4,6]", 24, 6});
    Value r = g.add_input("r", parse_type("f16[2,24,4,6]"));
    Value c = g.add_input("c", parse_type("f16[24,1,1]"));
    Value one = g.add_input("one", parse_type("f16[1]"));
    Expr e = parse_expr("0=in(0):f32; 1=in(1):f32; 2=add(0,1):f32; 3=in(2):f32; 4=mul(2,3):f32; "
                        "5=in(3):f32; 6=sub(4,5):f32");
    g.add_output("z", ops::map(g, e, DType::F32, std::array{y, r, c, one}));
    expect_both(g);
    Graph across;
    y = excite(across, {"f16[2,24,4,6]", 24, 6});
    r = across.add_input("r", parse_type("f16[4,6]"));
    across.add_output("z", ops::add(across, y, r));
    std::string reason = refusal(across).value_or("");
    EXPECT_NE(reason.find("the map reads [4,6] beside [2,24,4,6]"), std::string::npos) << reason;
}

TEST(SqueezeExcite, ThroughTheBackend) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[1,24,6,6]"));
    auto weights = [&g](const Shape& shape, unsigned seed) {
        return ops::constant(g, random_elements(DType::F16, shape, seed));
    };
    std::array in{x, weights({6, 24}, 2), weights({6}, 3), weights({24, 6}, 4), weights({24}, 5)};
    Value y = ops::squeeze_excite(g, {swish(), sigmoid()}, in);
    g.add_output("y", ops::add(g, y, x));
    expect_backend(g, {.tolerance = 2e-3});
}

} // namespace
} // namespace ingot::test
