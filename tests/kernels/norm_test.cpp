// SPDX-License-Identifier: Apache-2.0
// Family norm: softmax, layer_norm, group_norm in all forms.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

namespace ingot::test {
namespace {

Graph softmax_graph(const std::string& type, int64_t axis, bool log = false) {
    Graph g;
    Value a = g.add_input("a", parse_type(type));
    g.add_output("y", ops::softmax(g, a, axis, log));
    return g;
}

Graph layer_graph(const std::string& type, const char* scale, const char* bias, int64_t axis,
                  bool rms = false) {
    Graph g;
    Value a = g.add_input("a", parse_type(type));
    Value s = g.add_input("s", parse_type(scale));
    Value b = bias == nullptr ? Value() : g.add_input("b", parse_type(bias));
    ops::LayerNorm n;
    n.axis = axis;
    n.rms = rms;
    g.add_output("y", ops::layer_norm(g, n, a, s, b));
    return g;
}

Graph group_graph(const std::string& type, int64_t groups) {
    Graph g;
    Type t = parse_type(type);
    Value a = g.add_input("a", t);
    Value s = g.add_input("s", {t.dtype, {t.dims[1]}});
    Value b = g.add_input("b", {t.dtype, {t.dims[1]}});
    g.add_output("y", ops::group_norm(g, {groups, 1e-5}, a, s, b));
    return g;
}

TEST(Softmax, RowsOfEveryLength) {
    for (const char* t : {"f32[3,7]", "f16[9,96]", "f32[3,1000]", "f16[2,2500]", "f32[2,9000]"}) {
        sweep(softmax_graph(t, 1));
    }
    expect_family(softmax_graph("f32[1,40000]", 1));
    expect_family(softmax_graph("f16[2,16384]", 1, true));
}

/// Where there are more rows than warps, several share one.
TEST(Norm, FewLongRowsFallIntoASumAndAMap) {
    auto kernels = [](const Shape& shape) {
        Graph g;
        Value x = g.add_input("x", {DType::F16, to_dims(shape)});
        Value one = ops::full(g, DType::F32, {Dim(shape.back())}, 1);
        g.add_output("y", ops::layer_norm(g, {.axis = 3, .epsilon = 1e-12, .rms = true}, x, one));
        return expect_backend(g, {.cc = 90, .tolerance = 6e-3}).kernels;
    };
    std::vector<std::string> apart = kernels({1, 1, 6, 4096});
    EXPECT_EQ(std::count(apart.begin(), apart.end(), "layer_norm"), 0);
    EXPECT_EQ(std::count(apart.begin(), apart.end(), "reduce"), 1);
    EXPECT_EQ(kernels({1, 1, 6, 2048}), std::vector<std::string>{"layer_norm"});
}

TEST(Norm, ShortRowsShareWarps) {
    auto tactic_of = [](const Graph& g) { return expect_family(g).tactic; };
    EXPECT_EQ(tactic_of(layer_graph("f16[8500,40]", "f16[40]", "f16[40]", 1)), "registers_8x8");
    EXPECT_EQ(tactic_of(layer_graph("f16[8500,100]", "f32[100]", nullptr, 1, true)),
              "registers_16x8");
    EXPECT_EQ(tactic_of(softmax_graph("f16[8500,49]", 1)), "registers_8x8");
    EXPECT_EQ(tactic_of(layer_graph("f16[85,40]", "f16[40]", "f16[40]", 1)), "registers_32x8");
}

TEST(Softmax, OtherAxesAndDTypes) {
    sweep(softmax_graph("f32[3,20,40]", 1));
    sweep(softmax_graph("f32[3,20,5]", 0, true));
    for (const char* t : {"f64[5,60]", "bf16[5,60]", "f64[3,4000]", "f8e5m2[3,60]"}) {
        expect_family(softmax_graph(t, 1));
        expect_family(softmax_graph(t, 1, true));
    }
}

TEST(Softmax, HiddenElements) {
    FamilyOptions o;
    float none = -std::numeric_limits<float>::infinity();
    o.inputs = {
        Tensor::of<float>(DType::F32, {2, 4}, std::vector<float>{1, none, 2, none, 4, 5, none, 7})};
    sweep(softmax_graph("f32[2,4]", 1), o);
}

TEST(Softmax, MapOverTheResult) {
    Graph g;
    Value a = g.add_input("a", parse_type("f16[4,6,64]"));
    Value b = g.add_input("b", parse_type("f32[6,1]"));
    Expr e;
    int x = e.in(0, DType::F16);
    e.op(ExprOp::Mul, x, e.in(1, DType::F32));
    Value y = ops::softmax(g, a, 2);
    g.add_output("y", ops::map(g, e, DType::F32, std::array{y, b}));
    FamilyOptions o;
    o.tolerance = 2e-3;
    sweep(g, o);
}

TEST(LayerNorm, Forms) {
    sweep(layer_graph("f32[5,48]", "f32[48]", "f32[48]", -1));
    sweep(layer_graph("f16[5,768]", "f16[768]", "f16[768]", -1));
    sweep(layer_graph("f16[5,768]", "f32[768]", nullptr, -1, true));
    sweep(layer_graph("bf16[2,3001]", "bf16[3001]", "bf16[3001]", -1));
    sweep(layer_graph("f16[301,40]", "f16[40]", "f16[40]", -1));
    sweep(layer_graph("f16[3,1280]", "f16[1280]", "f16[1280]", -1));
    sweep(layer_graph("f32[2,1032]", "f32[1032]", nullptr, -1, true));
    sweep(layer_graph("f32[2,3,5,7]", "f32[5,1]", "f32[7]", 2));
    expect_family(layer_graph("f64[3,300]", "f64[300]", "f64[300]", 1));
    FamilyRun r = expect_family(layer_graph("f32[2,40000]", "f32[40000]", "f32[40000]", 1));
    EXPECT_EQ(r.entries.size(), 3U);
}

TEST(LayerNorm, ColumnsAndStrides) {
    FamilyOptions o;
    o.orders = {{1, 0}};
    sweep(layer_graph("f32[40,24]", "f32[24]", "f32[24]", 1), o);
    FamilyOptions gaps;
    gaps.strided = true;
    sweep(layer_graph("f16[6,64]", "f16[64]", "f16[64]", 1), gaps);
}

TEST(LayerNorm, NeighbouringSizesShareKernels) {
    std::set<std::string> texts;
    for (const char* n : {"320", "640", "768"}) {
        std::string size = str("[", n, "]");
        FamilyRun run = expect_family(layer_graph(str("f16[2,", n, "]"), str("f16", size).c_str(),
                                                  str("f16", size).c_str(), -1));
        texts.insert(run.texts.begin(), run.texts.end());
    }
    EXPECT_EQ(texts.size(), 1U);
}

/// A block a row takes many waves of blocks, a warp a row one.
TEST(LayerNorm, ManyRowsTakeAWarpEach) {
    for (const char* t : {"320", "640", "768"}) {
        std::string size = str("f16[", t, "]");
        auto best = [&](const char* rows) {
            return tactic_names(
                       layer_graph(str("f16[", rows, ",", t, "]"), size.c_str(), size.c_str(), -1))
                .front();
        };
        EXPECT_EQ(best("8192"), "registers_32x24") << t;
        EXPECT_EQ(best("2048"), "registers_32x24") << t;
    }
    std::vector<std::string> wide =
        tactic_names(layer_graph("f16[8192,1280]", "f16[1280]", "f16[1280]", -1));
    EXPECT_EQ(wide.front(), "registers_32x40");
}

TEST(GroupNorm, Forms) {
    sweep(group_graph("f32[2,8,5,6]", 2));
    sweep(group_graph("f16[2,16,8,8]", 4));
    sweep(group_graph("f32[2,6,7]", 6));
    FamilyRun r = expect_family(group_graph("f16[1,8,100,100]", 2));
    EXPECT_EQ(r.entries.size(), 3U);
}

TEST(GroupNorm, ChannelsLast) {
    FamilyOptions o;
    o.orders = {{0, 2, 3, 1}};
    sweep(group_graph("f16[2,32,6,6]", 4), o);
    sweep(group_graph("f32[2,20,5,5]", 2), o);
    // Values far from zero. Groups that vectors cross, parts of unequal size and of nothing.
    o.low = 90;
    o.high = 110;
    for (const char* tactic : {"cluster", "slices"}) {
        o.tactic = tactic;
        for (const char* t : {"f32[3,40,30,31]", "bf16[2,80,9,9]", "f16[1,320,17,13]"}) {
            expect_family(group_graph(t, 8), o);
        }
        FamilyRun r = expect_family(group_graph("f16[1,64,100,100]", 16), o);
        EXPECT_EQ(r.entries.size(), std::string_view(tactic) == "cluster" ? 1U : 2U);
    }
    // Groups of two channels, doubles and bytes.
    o.tactic = "channels";
    expect_family(group_graph("f64[1,12,9,9]", 3), o);
    // One group, by threads whose channels it has; channels apart.
    for (const char* t : {"f16[2,320,7,7]", "f32[1,512,5,4]", "f16[1,512,3,2]"}) {
        o.tactic = "channels";
        EXPECT_EQ(expect_family(group_graph(t, 1), o).tactic, "channels") << t;
        o.tactic.clear();
    }
    expect_family(group_graph("f8e5m2[2,64,5,7]", 4), o);
    expect_family(group_graph("f16[2,48,30,31]", 24), o);
    o.orders = {{0, 2, 1}};
    o.tactic = "";
    expect_family(group_graph("f32[2,64,360]", 32), o);
    // One row a channel, whose elements lie far apart.
    EXPECT_EQ(tactic_names(group_graph("f16[1,512,6399]", 512), o).front(), "channels");
    o.strided = true;
    sweep(group_graph("f16[3,64,36]", 8), o);
}

TEST(GroupNorm, SlicesInRegisters) {
    FamilyOptions o;
    o.orders = {{0, 2, 3, 1}};
    o.tactic = "cluster";
    o.low = 90;
    o.high = 110;
    // Groups of 10, 20, 40, 30 and 5 channels; blocks of one pixel, and of none.
    for (const char* t :
         {"f16[2,320,13,11]", "bf16[3,640,7,9]", "f16[2,1280,5,5]", "f16[1,960,9,7]",
          "f32[2,160,29,31]", "f32[1,320,3,3]", "f16[1,320,40,41]", "f16[1,1280,16,17]",
          "f16[2,2560,8,8]", "f16[1,640,32,31]"}) {
        FamilyRun r = expect_family(group_graph(t, 32), o);
        ASSERT_EQ(r.texts.size(), 1U) << t;
        EXPECT_EQ(r.texts[0].find("#define PACKS 0"), std::string::npos) << t;
    }
    // The most vectors of a thread.
    for (const char* t : {"f16[1,40,64,64]", "bf16[1,40,64,72]", "f32[1,20,64,64]"}) {
        FamilyRun r = expect_family(group_graph(t, 4), o);
        EXPECT_NE(r.texts.at(0).find("#define PACKS 6"), std::string::npos) << t;
    }
    o.cc = 80; // a block alone
    expect_family(group_graph("f16[2,320,13,11]", 32), o);
    o.cc = 90;
    // A slice that is too large for registers stays in shared memory.
    FamilyRun r = expect_family(group_graph("f16[1,64,100,100]", 16), o);
    ASSERT_EQ(r.texts.size(), 1U);
    EXPECT_NE(r.texts[0].find("#define PACKS 0"), std::string::npos);
}

TEST(GroupNorm, InfinityStaysInItsGroup) {
    FamilyOptions o;
    o.orders = {{0, 2, 3, 1}};
    o.tactic = "cluster";
    Tensor x = random_elements(DType::F16, {2, 320, 4, 5}, 3);
    constexpr int64_t channel = 14; // group 1 shares its first column with group 0
    x.set_f64(channel * 20 + 7, std::numeric_limits<double>::infinity());
    o.inputs = {x};
    FamilyRun r = expect_family(group_graph("f16[2,320,4,5]", 32), o);
    ASSERT_EQ(r.results.size(), 1U);
    for (int64_t i = 0; i < int64_t{2} * 320 * 20; ++i) {
        ASSERT_EQ(std::isnan(r.results[0].get_f64(i)), i >= 200 && i < 400) << i;
    }
}

TEST(GroupNorm, ChoosesByParallelism) {
    FamilyOptions o;
    o.orders = {{0, 2, 3, 1}};
    for (const char* t : {"f16[2,320,64,64]", "f16[2,1280,8,8]"}) {
        EXPECT_EQ(tactic_names(group_graph(t, 32), o).front(), "cluster") << t;
    }
    // Measured: one launch of blocks that fill their SMs takes longer than two.
    EXPECT_EQ(tactic_names(group_graph("f16[2,960,64,64]", 32), o).front(), "slices");
    // Too large for the shared memory of a cluster.
    EXPECT_EQ(tactic_names(group_graph("f16[1,128,512,512]", 32), o).front(), "slices");
    o.cc = 80;
    EXPECT_EQ(tactic_names(group_graph("f16[2,960,64,64]", 32), o).front(), "slices");
}

TEST(GroupNorm, ChannelsLastThenSilu) {
    Graph g;
    Value a = g.add_input("a", parse_type("bf16[2,80,12,12]"));
    Value s = g.add_input("s", parse_type("f32[80]"));
    Value b = g.add_input("b", parse_type("f32[80]"));
    Value y = ops::group_norm(g, {8, 1e-5}, a, s, b);
    Expr e;
    int x = e.in(0, DType::BF16);
    e.op(ExprOp::Mul, x, e.op(ExprOp::Sigmoid, x));
    g.add_output("y", ops::map(g, e, DType::BF16, std::array{y}));
    FamilyOptions o;
    o.orders = {{0, 2, 3, 1}};
    o.tolerance = 1e-2;
    sweep(g, o);
}

TEST(GroupNorm, SlicesInRegistersThenSilu) {
    Graph g;
    Value a = g.add_input("a", parse_type("f16[1,40,64,64]"));
    Value s = g.add_input("s", parse_type("f16[40]"));
    Value b = g.add_input("b", parse_type("f16[40]"));
    Value y = ops::group_norm(g, {4, 1e-5}, a, s, b);
    Expr e;
    int x = e.in(0, DType::F16);
    e.op(ExprOp::Mul, x, e.op(ExprOp::Sigmoid, x));
    g.add_output("y", ops::map(g, e, DType::F16, std::array{y}));
    FamilyOptions o;
    o.orders = {{0, 2, 3, 1}};
    o.tactic = "cluster";
    o.tolerance = 2e-3;
    expect_family(g, o);
}

/// y = group_norm(x) * a + b, leaky where negative.
Graph modulated(const char* x, int64_t groups, const char* a, const char* b) {
    Graph g;
    Type t = parse_type(x);
    Value in = g.add_input("x", t);
    Value scale = g.add_input("scale", {t.dtype, {t.dims[1]}});
    Value bias = g.add_input("bias", {t.dtype, {t.dims[1]}});
    Value y = ops::group_norm(g, {groups, 1e-5}, in, scale, bias);
    Expr e;
    int sum =
        e.op(ExprOp::Add, e.op(ExprOp::Mul, e.in(0, t.dtype), e.in(1, t.dtype)), e.in(2, t.dtype));
    e.op(ExprOp::Max, sum, e.op(ExprOp::Mul, sum, e.constant(DType::F32, 0.01)));
    Value of[] = {y, g.add_input("a", parse_type(a)), g.add_input("b", parse_type(b))};
    g.add_output("y", ops::map(g, e, t.dtype, of));
    return g;
}

TEST(GroupNorm, ChannelsLastThenOperands) {
    FamilyOptions o;
    o.tactic = "channels";
    o.orders = {{0, 2, 3, 4, 1}};
    // Skips, in another order too; a value a channel; pixels along two and three axes.
    for (const char* x : {"f16[1,32,6,5,7]", "f32[2,12,3,4,5]", "bf16[3,24,2,9,4]"}) {
        Type t = parse_type(x);
        std::string type(name(t.dtype));
        std::string channels = str(t.dims[1]);
        std::string plane = str(type, "[1,1,", t.dims[2], ",1,", t.dims[4], "]");
        std::string row = str(type, "[", t.dims[1], ",", t.dims[2], ",1,1]");
        std::string slope = str(type, "[1]");
        std::string each = str(type, "[", channels, ",1,1,1]");
        o.tolerance = t.dtype == DType::F32 ? 1e-5 : t.dtype == DType::F16 ? 4e-3 : 3e-2;
        expect_family(modulated(x, 4, x, each.c_str()), o);
        expect_family(modulated(x, t.dims[1].value(), slope.c_str(), plane.c_str()), o);
        expect_family(modulated(x, 2, row.c_str(), x), o);
    }
    o.orders = {};
    o.tactic.clear();
    o.tolerance = 4e-3;
    sweep(modulated("f16[1,16,9,8]", 16, "f16[1,16,9,8]", "f16[16,1,1]"), o);
    o.orders = {{0, 2, 3, 1}};
    sweep(modulated("f16[1,16,9,8]", 16, "f16[1,16,9,8]", "f16[16,9,1]"), o);
    // Rows of elements apart would read a sector for each.
    o.orders = {{0, 2, 3, 4, 1}};
    EXPECT_EQ(tactic_names(group_graph("f16[1,32,40,40,40]", 32), o).front(), "channels");
}

TEST(GroupNorm, ThenSilu) {
    Graph g;
    Value a = g.add_input("a", parse_type("f16[1,8,4,6]"));
    Value s = g.add_input("s", parse_type("f16[8]"));
    Value b = g.add_input("b", parse_type("f16[8]"));
    Value add = g.add_input("c", parse_type("f16[1,8,1,1]"));
    Value y = ops::group_norm(g, {2, 1e-5}, a, s, b);
    Expr e;
    int x = e.op(ExprOp::Add, e.in(0, DType::F16), e.in(1, DType::F16));
    e.op(ExprOp::Mul, x, e.op(ExprOp::Sigmoid, x));
    g.add_output("y", ops::map(g, e, DType::F16, std::array{y, add}));
    sweep(g);
}

} // namespace
} // namespace ingot::test
