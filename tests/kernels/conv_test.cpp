// SPDX-License-Identifier: Apache-2.0
// conv with its epilogue map: ranks, strides, dilations, pads, groups, element types.
#include "kernels/conv_graphs.h"
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

TEST(Conv, ThreeByThree) {
    std::vector<std::string> names =
        sweep(with_residual({.x = "f16[2,16,9,11]", .w = "f16[24,16,3,3]"}));
    for (std::string_view prefix : {"conv_wgmma_64x64", "conv_wgmma_128x128", "conv_mma_64x64",
                                    "conv_mma_128x128", "conv_simt"}) {
        EXPECT_TRUE(ran(names, prefix)) << prefix;
    }
}

TEST(Conv, ChannelsBeyondAStep) {
    // 72 channels: the second step of 64 is a partial one; the depth is split.
    EXPECT_TRUE(ran(sweep(conv_graph({.x = "bf16[1,72,7,7]", .w = "bf16[40,72,3,3]"})),
                    "conv_wgmma_64x64_s8"));
}

TEST(Conv, SmallImagesShareATile) {
    sweep(conv_graph({.x = "f16[5,16,3,3]", .w = "f16[8,16,3,3]"}));
}

/// Depthwise ones round no operand.
TEST(Conv, FunctionsOfRoundedOperandsAreQuick) {
    auto is_quick = [](const ConvCase& c) {
        Graph g;
        Value y = add_conv(g, c);
        Expr body;
        body.op(ExprOp::Sigmoid, body.in(0, DType::F32));
        g.add_output("z", ops::map(g, body, DType::F32, std::vector<Value>{y}));
        FamilyOptions options;
        options.tolerance = 2e-3;
        return expect_family(g, options).texts.at(0).find("fast_sigmoid(") != std::string::npos;
    };
    EXPECT_TRUE(is_quick({.x = "f32[1,8,9,9]", .w = "f32[8,8,3,3]"}));
    EXPECT_FALSE(is_quick({.x = "f32[1,8,9,9]", .w = "f32[8,1,3,3]", .groups = 8}));
}

TEST(Conv, WindowsSideBySide) {
    // Patches of a vision transformer; one image with a rest at its edges; 2 x 2 windows.
    ConvCase patches{.x = "f16[2,3,32,48]",
                     .w = "f16[40,3,16,16]",
                     .strides = {16, 16},
                     .low = {0, 0},
                     .high = {0, 0}};
    for (std::string_view prefix : {"conv_wgmma_64x64_s1", "conv_wgmma_128x128_r2",
                                    "conv_wgmma_128x160_pp", "conv_mma_64x64"}) {
        EXPECT_TRUE(ran(sweep(with_residual(patches)), prefix)) << prefix;
    }
    patches.x = "f16[1,3,35,56]";
    EXPECT_TRUE(ran(sweep(conv_graph(patches)), "conv_wgmma"));
    EXPECT_TRUE(ran(sweep(conv_graph({.x = "bf16[3,16,6,10]",
                                      .w = "bf16[24,16,2,2]",
                                      .strides = {2, 2},
                                      .low = {0, 0},
                                      .high = {0, 0}})),
                    "conv_wgmma"));
}

TEST(Conv, PatchesStoredByTma) {
    // A tile covers two rows of an image at its edge; windows side by side, whose runs are
    // channels.
    ConvCase c{.x = "f16[2,64,11,70]", .w = "f16[200,64,3,3]"};
    ConvCase beside{.x = "f16[3,16,6,10]",
                    .w = "f16[24,16,2,2]",
                    .strides = {2, 2},
                    .low = {0, 0},
                    .high = {0, 0}};
    FamilyOptions options;
    for (const char* tactic :
         {"conv_wgmma_128x160_turns", "conv_wgmma_128x192_turns", "conv_wgmma_192x128_turns"}) {
        options.tactic = tactic;
        options.orders = {{0, 2, 3, 1}, {0, 2, 3, 1}, {0, 1, 2}, {0, 2, 3, 1}};
        EXPECT_TRUE(expect_family(with_residual(c), options).tactic.starts_with(tactic));
        options.backwards = true;
        options.orders = {};
        EXPECT_TRUE(expect_family(conv_graph(beside), options).tactic.starts_with(tactic));
        options.backwards = false;
    }
}

TEST(Conv, WindowsTwoApart) {
    ConvCase c{.x = "f16[2,64,10,14]", .w = "f16[24,64,3,3]", .strides = {2, 2}};
    std::vector<std::string> names = sweep(with_residual(c));
    EXPECT_TRUE(ran(names, "conv_wgmma_64x64_s1"));
    EXPECT_TRUE(ran(names, "conv_wgmma_128x128_r2_s1"));
    c.dilations = {2, 1};
    c.low = {2, 0};
    c.high = {1, 2};
    FamilyOptions options;
    options.tactic = "conv_wgmma_64x64_s1";
    EXPECT_EQ(expect_family(conv_graph(c), options).tactic, options.tactic);
    // Slabs that the channels do not fill.
    for (const auto& [x, w] : {std::pair{"f16[2,24,10,14]", "f16[40,24,3,3]"},
                               std::pair{"bf16[1,104,6,18]", "bf16[24,104,3,3]"}}) {
        EXPECT_TRUE(ran(sweep(with_residual({.x = x, .w = w, .strides = {2, 2}})), "conv_wgmma"));
    }
}

TEST(Conv, SingleByWgmmaAsTf32) {
    FamilyOptions rounded;
    rounded.tolerance = 2e-3;
    // Slabs of 32 channels, of which the second is a partial one; windows two apart and side by
    // side.
    std::vector<std::string> names =
        sweep(with_residual({.x = "f32[2,40,9,11]", .w = "f32[24,40,3,3]"}), rounded);
    for (std::string_view prefix : {"conv_wgmma_64x64_s1", "conv_wgmma_64x64_s8",
                                    "conv_wgmma_128x128_r2", "conv_wgmma_128x128_pp"}) {
        EXPECT_TRUE(ran(names, prefix)) << prefix;
    }
    rounded.tactic = "conv_wgmma_64x64_s1";
    for (const ConvCase& c :
         {ConvCase{.x = "f32[2,32,10,14]", .w = "f32[24,32,3,3]", .strides = {2, 2}},
          ConvCase{.x = "f32[2,3,32,48]",
          .w = "f32[40,3,16,16]",
          .strides = {16, 16},
          .low = {0, 0},
          .high = {0, 0}}}) {
        EXPECT_EQ(expect_family(conv_graph(c), rounded).tactic, rounded.tactic);
    }
    rounded.tf32 = false;
    EXPECT_FALSE(ran(tactic_names(conv_graph({.x = "f32[1,8,9,9]", .w = "f32[8,8,3,3]"}), rounded),
                     "conv_wgmma"));
}

TEST(Conv, StridesDilationsAndUnevenPads) {
    sweep(conv_graph({.x = "f16[1,16,11,13]",
                      .w = "f16[8,16,3,2]",
                      .strides = {2, 3},
                      .dilations = {2, 1},
                      .low = {0, 1},
                      .high = {2, 0}}));
    sweep(conv_graph({.x = "f16[1,16,11,13]",
                      .w = "f16[8,16,3,3]",
                      .dilations = {2, 3},
                      .low = {2, 3},
                      .high = {2, 3}}));
}

TEST(Conv, Pointwise) {
    ConvCase c{.x = "f16[2,32,9,9]", .w = "f16[40,32,1,1]", .low = {0, 0}, .high = {0, 0}};
    EXPECT_TRUE(ran(sweep(with_residual(c)), "wgmma_64x64"));
    c.strides = {2, 2};
    EXPECT_TRUE(ran(sweep(with_residual(c)), "conv_wgmma_64x64"));
}

TEST(Conv, Groups) {
    sweep(with_residual({.x = "f16[2,32,7,7]", .w = "f16[16,8,3,3]", .groups = 4}));
    sweep(conv_graph({.x = "f16[1,6,5,5]", .w = "f16[9,2,3,3]", .groups = 3}));
}

/// Groups whose last slab reaches into the next one, whole slabs two windows apart, and TF32.
TEST(Conv, GroupsByWgmma) {
    ConvCase c{.x = "f16[2,120,9,11]", .w = "f16[120,40,3,3]", .groups = 3};
    std::vector<std::string> names = sweep(with_residual(c));
    for (std::string_view prefix : {"conv_wgmma_64x64_s1", "conv_wgmma_64x64_s4",
                                    "conv_wgmma_128x128_r2", "conv_wgmma_128x128_pp"}) {
        EXPECT_TRUE(ran(names, prefix)) << prefix;
    }
    FamilyOptions options;
    options.tactic = "conv_wgmma_64x64_s1";
    for (const ConvCase& other :
         {ConvCase{
              .x = "bf16[1,128,10,14]", .w = "bf16[96,64,3,3]", .strides = {2, 2}, .groups = 2},
          ConvCase{.x = "f16[1,96,6,7]", .w = "f16[24,48,3,3]", .dilations = {1, 2}, .groups = 2},
          ConvCase{.x = "f16[1,64,7,7]",
          .w = "f16[34,32,1,1]",
          .strides = {2, 2},
          .low = {0, 0},
          .high = {0, 0},
          .groups = 2}}) {
        EXPECT_EQ(expect_family(conv_graph(other), options).tactic, options.tactic);
    }
    options.tolerance = 2e-3;
    EXPECT_EQ(
        expect_family(
            conv_graph(
                {.x = "f32[2,64,10,14]", .w = "f32[24,32,3,3]", .strides = {2, 2}, .groups = 2}),
            options)
            .tactic,
        options.tactic);
    // Groups that leave most of a slab empty.
    for (const auto& [x, w] : {std::pair{"f16[1,104,14,14]", "f16[104,8,3,3]"},
                               std::pair{"f16[1,312,14,14]", "f16[104,24,3,3]"}}) {
        EXPECT_FALSE(ran(tactic_names(conv_graph({.x = x, .w = w, .groups = 13})), "conv_wgmma"));
    }
    EXPECT_TRUE(
        tactic_names(conv_graph({.x = "f16[1,128,56,56]", .w = "f16[128,64,3,3]", .groups = 2}))[0]
            .starts_with("conv_wgmma"));
}

TEST(Conv, NarrowGroupsThroughTheBackend) {
    for (int cc : {80, 90}) {
        SCOPED_TRACE(cc);
        Graph g;
        ops::Conv a;
        a.strides = {2, 2};
        a.dilations = {1, 1};
        a.low = to_dims({1, 1});
        a.high = a.low;
        a.groups = 16;
        a.dtype = DType::F16;
        Value w = ops::constant(g, random_elements(DType::F16, {64, 4, 3, 3}, 3, -0.2, 0.2));
        Value bias = ops::constant(g, random_elements(DType::F16, {64, 1, 1}, 4));
        Value x = g.add_input("x", parse_type("f16[2,64,10,14]"));
        g.add_output("y", ops::maximum(g, ops::add(g, ops::conv(g, a, x, w), bias), 0.0));
        BackendRun run = expect_backend(g, {.cc = cc, .tolerance = 6e-3});
        std::string_view expected = cc == 90 ? "conv_wgmma" : "conv_mma";
        EXPECT_TRUE(std::any_of(
            run.implementations.begin(), run.implementations.end(),
            [&](const std::string& i) { return i.find(expected) != std::string::npos; }));
    }
}

/// Rows of wide windows of few channels are one run each, and overlap.
TEST(Conv, OverlappingRuns) {
    ConvCase c{.x = "f16[2,16,9,24]",
               .w = "f16[24,16,5,7]",
               .strides = {1, 2},
               .low = {2, 0},
               .high = {2, 0}};
    std::vector<std::string> names = sweep(with_residual(c));
    EXPECT_TRUE(ran(names, "conv_wgmma_64x64_s1"));
    FamilyOptions options;
    options.orders = {{0, 2, 3, 1}, {0, 2, 3, 1}, {0, 1, 2}, {0, 2, 3, 1}};
    EXPECT_TRUE(ran(sweep(with_residual(c), options), "conv_wgmma_64x64_s1"));
}

/// Channels of 8 or 4 aligned bytes, and of fewer.
TEST(Conv, ChannelsOfFewAlignedBytes) {
    for (const char* groups_of : {"4", "2", "5"}) {
        SCOPED_TRACE(groups_of);
        std::string n = groups_of;
        std::string all = std::to_string(std::stoi(n) * 3);
        EXPECT_TRUE(ran(sweep(with_residual({.x = "f16[2," + all + ",7,9]",
                                             .w = "f16[24," + n + ",3,3]",
                                             .strides = {2, 1},
                                             .groups = 3})),
                        "conv_mma_64x32"));
        EXPECT_TRUE(ran(sweep(conv_graph({.x = "bf16[1," + n + ",6,11]",
                                          .w = "bf16[20," + n + ",3,2]",
                                          .dilations = {1, 2},
                                          .low = {1, 0},
                                          .high = {0, 1}})),
                        "conv_mma_64x32"));
    }
    EXPECT_TRUE(
        ran(sweep(conv_graph(
                {.x = "f16[2,116,5,7]", .w = "f16[58,116,1,1]", .low = {0, 0}, .high = {0, 0}})),
            "mma_64x64"));
}

/// Taps along the last axis count as channels where no padding cuts them.
TEST(Conv, TapsSideBySide) {
    ConvCase patches{.x = "f16[2,3,28,42]",
                     .w = "f16[40,3,14,14]",
                     .strides = {14, 14},
                     .low = {0, 0},
                     .high = {0, 0}};
    EXPECT_TRUE(ran(sweep(with_residual(patches)), "conv_mma_64x64"));
    patches.x = "f16[1,3,30,47]";
    EXPECT_TRUE(ran(sweep(conv_graph(patches)), "conv_mma_64x64"));
    patches.strides = {5, 4}; // windows overlap
    EXPECT_TRUE(ran(sweep(conv_graph(patches)), "conv_mma_64x64"));
    patches.high = {0, 1};
    EXPECT_TRUE(ran(sweep(conv_graph(patches)), "conv_mma_64x64"));
}

/// Patches whose rows are 84 bytes: gathered once, then a product.
TEST(Conv, PatchesThroughTheBackend) {
    for (int cc : {80, 90}) {
        SCOPED_TRACE(cc);
        Graph g;
        ops::Conv a;
        a.strides = {14, 14};
        a.dilations = {1, 1};
        a.low = to_dims({0, 0});
        a.high = a.low;
        a.dtype = DType::F16;
        Value w = ops::constant(g, random_elements(DType::F16, {40, 3, 14, 14}, 3, -0.2, 0.2));
        Value bias = ops::constant(g, random_elements(DType::F16, {40, 1, 1}, 4));
        Value x = g.add_input("x", parse_type("f16[n,3,30,47]"));
        Value y = ops::add(g, ops::conv(g, a, x, w), bias);
        y = ops::reshape(g, y, {Dim::symbol("n"), 40, 6}); // tokens, as vision transformers
        g.add_output("y", ops::permute(g, y, {0, 2, 1}));
        BackendRun run = expect_backend(g, {.cc = cc, .symbols = {{"n", 2}}, .tolerance = 6e-3});
        EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "dot"), 1);
        EXPECT_LE(run.kernels.size(), 3U); // gathered, multiplied, copied to the output
    }
}

TEST(Conv, Depthwise) {
    EXPECT_TRUE(
        ran(sweep(with_residual({.x = "f16[2,16,9,11]", .w = "f16[16,1,3,3]", .groups = 16})),
            "conv_depthwise"));
    sweep(with_residual(
        {.x = "f16[1,15,9,11]", .w = "f16[15,1,3,3]", .strides = {2, 2}, .groups = 15}));
    sweep(conv_graph({.x = "f32[1,16,9,6]",
                      .w = "f32[16,1,5,3]",
                      .dilations = {1, 2},
                      .low = {2, 0},
                      .high = {2, 3},
                      .groups = 16}));
    // Three axes: several batches of taps, the last one not full, and windows beyond all edges.
    sweep(with_residual({.x = "f16[2,16,4,7,9]",
                         .w = "f16[16,1,3,3,3]",
                         .strides = {1, 2, 2},
                         .dilations = {1, 1, 1},
                         .low = {1, 1, 1},
                         .high = {1, 1, 1},
                         .groups = 16}));
    sweep(conv_graph({.x = "f32[1,5,3,6,6]",
                      .w = "f32[5,1,2,5,2]",
                      .strides = {2, 1, 1},
                      .dilations = {2, 1, 3},
                      .low = {4, 0, 3},
                      .high = {1, 2, 0},
                      .groups = 5}));
    // Two results a channel.
    sweep(conv_graph({.x = "f16[1,8,6,6]", .w = "f16[16,1,3,3]", .groups = 8}));
}

TEST(Conv, DepthwiseTiles) {
    FamilyOptions strip;
    strip.tactic = "conv_strip";
    auto runs = [&](const Graph& g) {
        EXPECT_TRUE(expect_family(g, strip).tactic.starts_with("conv_strip"));
    };
    // The last tiles reach beyond the plane and the channels.
    EXPECT_TRUE(
        ran(sweep(with_residual({.x = "f16[3,72,9,13]", .w = "f16[72,1,3,3]", .groups = 72})),
            "conv_strip"));
    sweep(conv_graph({.x = "bf16[1,24,14,11]",
                      .w = "bf16[24,1,5,5]",
                      .strides = {2, 2},
                      .low = {2, 2},
                      .high = {2, 2},
                      .groups = 24}));
    runs(with_residual({.x = "f16[1,240,14,14]",
                        .w = "f16[240,1,5,5]",
                        .low = {2, 2},
                        .high = {2, 2},
                        .groups = 240}));
    runs(with_residual({.x = "f32[2,40,9,10]",
                        .w = "f32[40,1,7,7]",
                        .low = {3, 3},
                        .high = {3, 3},
                        .groups = 40}));
    runs(conv_graph({.x = "f32[1,8,13,9]",
                     .w = "f32[8,1,3,2]",
                     .strides = {1, 3},
                     .dilations = {3, 1},
                     .low = {0, 2},
                     .high = {5, 1},
                     .groups = 8}));
    runs(conv_graph({.x = "f16[2,16,50]",
                     .w = "f16[16,1,9]",
                     .strides = {1},
                     .dilations = {1},
                     .low = {8},
                     .high = {0},
                     .groups = 16}));
    runs(conv_graph({.x = "f16[1,16,9,14]",
                     .w = "f16[16,1,3,3]",
                     .strides = {1, 2},
                     .dilations = {2, 3},
                     .low = {2, 3},
                     .high = {2, 1},
                     .groups = 16}));
    strip.orders = {{0, 2, 3, 1}, {2, 3, 1, 0}};
    runs(with_residual({.x = "bf16[2,1152,7,7]", .w = "bf16[1152,1,3,3]", .groups = 1152}));
}

TEST(Conv, OneAndThreeSpatialAxes) {
    sweep(conv_graph({.x = "f16[2,16,19]",
                      .w = "f16[8,16,5]",
                      .strides = {2},
                      .dilations = {1},
                      .low = {2},
                      .high = {2}}));
    sweep(conv_graph({.x = "f16[1,8,5,6,7]",
                      .w = "f16[16,8,3,3,3]",
                      .strides = {1, 2, 1},
                      .dilations = {1, 1, 1},
                      .low = {1, 1, 1},
                      .high = {1, 1, 1}}));
}

/// Windows over two axes of three: the first axis is images, or the other two are one.
TEST(Conv, WindowsOverTwoAxesOfThree) {
    auto windows = [](std::string x, std::string w, const std::vector<int64_t>& pads) {
        ConvCase c{std::move(x), std::move(w), {1, 1, 1}, {1, 1, 1}, pads, pads};
        return c;
    };
    EXPECT_TRUE(ran(sweep(conv_graph(windows("f16[2,16,3,5,4]", "f16[8,16,1,3,3]", {0, 1, 1}))),
                    "conv_wgmma"));
    EXPECT_TRUE(ran(sweep(with_residual(windows("f16[2,16,4,3,4]", "f16[8,16,3,1,1]", {1, 0, 0}))),
                    "conv_wgmma"));
    ConvCase apart = windows("f16[1,16,7,2,3]", "f16[8,16,3,1,1]", {0, 0, 0});
    apart.strides = apart.dilations = {2, 1, 1};
    sweep(conv_graph(apart));
    // The first axis has padding, or steps.
    FamilyOptions o;
    expect_family(conv_graph(windows("f16[2,8,4,5,6]", "f16[8,8,1,3,3]", {1, 1, 1})), o);
    ConvCase steps = windows("f16[2,8,4,5,6]", "f16[8,8,1,3,3]", {0, 1, 1});
    steps.strides = {2, 1, 1};
    expect_family(conv_graph(steps), o);
    // Depthwise, and the first layer of a network for videos.
    ConvCase depthwise = windows("f16[1,16,4,5,4]", "f16[16,1,1,3,3]", {0, 1, 1});
    depthwise.groups = 16;
    sweep(conv_graph(depthwise));
    ConvCase first = windows("f16[1,3,3,9,8]", "f16[16,3,1,3,3]", {0, 1, 1});
    first.strides = {1, 2, 2};
    EXPECT_TRUE(ran(sweep(conv_graph(first)), "conv_stem"));
}

TEST(Conv, ElementTypes) {
    FamilyOptions rounded; // to TF32
    rounded.tolerance = 2e-3;
    sweep(with_residual({.x = "f32[1,8,9,9]", .w = "f32[8,8,3,3]"}), rounded);
    sweep(conv_graph({.x = "f64[1,3,5,6]", .w = "f64[5,3,3,3]"}));
    sweep(conv_graph({.x = "i8[1,16,5,6]", .w = "i8[8,16,3,3]", .result = DType::I32}));
    sweep(conv_graph({.x = "u8[1,3,5,6]", .w = "u8[5,3,3,3]", .result = DType::I32}));
}

TEST(Conv, GapsBetweenRows) {
    FamilyOptions options;
    options.strided = true;
    sweep(with_residual({.x = "f16[2,16,5,7]", .w = "f16[24,16,3,3]"}), options);
}

TEST(Conv, PrefersTheRightTactic) {
    auto best = [](const char* x, const char* w, int cc) {
        return tactic_names(conv_graph({.x = x, .w = w}), {.cc = cc})[0];
    };
    EXPECT_TRUE(best("f16[1,64,56,56]", "f16[64,64,3,3]", 90).starts_with("conv_wgmma"));
    EXPECT_TRUE(best("f16[1,64,56,56]", "f16[64,64,3,3]", 80).starts_with("conv_mma"));
    EXPECT_FALSE(best("f16[1,512,7,7]", "f16[512,512,3,3]", 90).ends_with("_s1"));
}

} // namespace
} // namespace ingot::test
