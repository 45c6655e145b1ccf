// SPDX-License-Identifier: Apache-2.0
// Convolutions over three axes of one volume by wgmma, whose positions along the first axis take
// the place of images.
#include "base/text.h"
#include "kernels/conv_graphs.h"
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

/// All inputs have channels innermost, as TMA reads a residual.
FamilyOptions channels_inside(const std::string& tactic) {
    FamilyOptions options;
    options.tactic = tactic;
    options.orders = {{0, 2, 3, 4, 1}, {0, 2, 3, 4, 1}, {0, 1, 2, 3}, {0, 2, 3, 4, 1}};
    return options;
}

TEST(ConvVolume, PaddedOnAllSides) {
    // 72 channels: the second step of 64 is a partial one.
    Graph g = with_residual(volume("f16[1,72,4,5,6]", "f16[24,72,3,3,3]"));
    FamilyOptions options;
    for (const char* tactic :
         {"conv_wgmma_64x64_s1", "conv_wgmma_64x64_s8", "conv_wgmma_128x128_r2_s1",
          "conv_wgmma_128x160_pp_s1", "conv_wgmma_128x192_s1", "conv_mma_64x64_s1"}) {
        options.tactic = tactic;
        EXPECT_EQ(expect_family(g, options).tactic, tactic);
    }
}

TEST(ConvVolume, PaddedBeforeTheFirstFrameOnly) {
    ConvCase c = volume("bf16[1,64,5,7,9]", "bf16[40,64,3,3,3]");
    c.low = {2, 1, 1};
    c.high = {0, 1, 1};
    FamilyOptions options;
    for (const char* tactic : {"conv_wgmma_64x64_s1", "conv_wgmma_64x64_s3"}) {
        options.tactic = tactic;
        EXPECT_EQ(expect_family(with_residual(c), options).tactic, tactic);
    }
}

TEST(ConvVolume, DistancesBetweenPositions) {
    ConvCase c = volume("f16[1,24,9,8,7]", "f16[16,24,3,2,3]");
    c.dilations = {3, 2, 1};
    c.low = {4, 0, 2};
    c.high = {1, 3, 0};
    FamilyOptions options;
    options.tactic = "conv_wgmma_64x64_s1";
    EXPECT_EQ(expect_family(conv_graph(c), options).tactic, options.tactic);
    // One frame, most of whose windows are padding; two axes that windows walk alone.
    c = volume("f16[1,16,1,6,6]", "f16[16,16,3,3,3]");
    EXPECT_EQ(expect_family(conv_graph(c), options).tactic, options.tactic);
    c = volume("f16[1,16,6,1,7]", "f16[16,16,3,1,3]");
    c.low = c.high = {1, 0, 1};
    EXPECT_EQ(expect_family(conv_graph(c), options).tactic, options.tactic);
}

TEST(ConvVolume, StepsBetweenSingleElements) {
    ConvCase c = volume("f16[1,64,7,6,9]", "f16[40,64,1,1,1]");
    c.strides = {2, 2, 3};
    c.low = c.high = {0, 0, 0};
    EXPECT_TRUE(ran(sweep(with_residual(c)), "conv_wgmma_64x64_s1"));
    // Steps along the first axis alone.
    c = volume("f16[1,16,7,6,9]", "f16[24,16,1,3,3]");
    c.strides = {3, 1, 1};
    c.low = c.high = {0, 1, 1};
    FamilyOptions options;
    options.tactic = "conv_wgmma_64x64_s1";
    EXPECT_EQ(expect_family(conv_graph(c), options).tactic, options.tactic);
}

TEST(ConvVolume, PatchesStoredByTma) {
    // Results of odd sizes, of which a tile covers several depths.
    ConvCase c = volume("f16[1,64,5,7,9]", "f16[200,64,3,3,3]");
    for (const char* tactic :
         {"conv_wgmma_128x160_turns", "conv_wgmma_128x192_turns", "conv_wgmma_192x128_turns"}) {
        FamilyOptions options = channels_inside(tactic);
        EXPECT_TRUE(expect_family(with_residual(c), options).tactic.starts_with(tactic));
        options.backwards = true;
        EXPECT_TRUE(expect_family(with_residual(c), options).tactic.starts_with(tactic));
    }
}

TEST(ConvVolume, GapsBetweenRows) {
    FamilyOptions options;
    options.strided = true;
    options.tactic = "conv_wgmma_64x64_s1";
    Graph g = with_residual(volume("f16[1,16,4,5,7]", "f16[24,16,3,3,3]"));
    EXPECT_EQ(expect_family(g, options).tactic, options.tactic);
}

TEST(ConvVolume, Groups) {
    ConvCase c = volume("f16[1,96,3,5,6]", "f16[48,48,3,3,3]");
    c.groups = 2;
    FamilyOptions options;
    options.tactic = "conv_wgmma_64x64_s1";
    EXPECT_EQ(expect_family(conv_graph(c), options).tactic, options.tactic);
}

TEST(ConvVolume, SingleAsTf32) {
    FamilyOptions options = channels_inside("");
    options.tolerance = 2e-3;
    Graph g = with_residual(volume("f32[1,40,3,5,6]", "f32[24,40,3,3,3]"));
    for (const char* tactic :
         {"conv_wgmma_64x64_s1", "conv_wgmma_64x64_s8", "conv_wgmma_128x128_r2"}) {
        options.tactic = tactic;
        EXPECT_TRUE(expect_family(g, options).tactic.starts_with(tactic));
    }
}

TEST(ConvVolume, Bytes) {
    for (auto [x, w] : {std::pair("i8", "i8"), {"u8", "i8"}, {"f8e4m3", "f8e4m3"}}) {
        SCOPED_TRACE(x);
        ConvCase c = volume(str(x, "[1,144,3,5,6]"), str(w, "[24,144,3,3,3]"));
        c.low = {2, 1, 1};
        c.high = {0, 1, 1};
        c.result = w == std::string_view("i8") ? DType::I32 : DType::F32;
        FamilyOptions options;
        options.low = -20;
        options.high = 20;
        for (const char* tactic : {"conv_wgmma_64x64_s1", "conv_wgmma_128x128_s1"}) {
            options.tactic = tactic;
            EXPECT_EQ(expect_family(with_residual(c), options).tactic, tactic);
        }
    }
}

TEST(ConvVolume, OneAtATime) {
    auto takes = [](const ConvCase& c) { return ran(tactic_names(conv_graph(c)), "conv_wgmma"); };
    EXPECT_TRUE(takes(volume("f16[1,64,4,5,6]", "f16[24,64,3,3,3]")));
    EXPECT_FALSE(takes(volume("f16[2,64,4,5,6]", "f16[24,64,3,3,3]")));
    EXPECT_FALSE(takes(volume("f16[1,60,4,5,6]", "f16[24,60,3,3,3]"))); // rows of inputs
    ConvCase steps = volume("f16[1,64,4,6,6]", "f16[24,64,3,3,3]");
    steps.strides = {1, 2, 2};
    EXPECT_FALSE(takes(steps));
    steps.strides = {2, 1, 1};
    EXPECT_FALSE(takes(steps));
}

/// conv(relu(x)) + bias + relu(x) through the whole backend, of so many operations that a
/// convolution over two axes, with copies of x, would be the other choice.
TEST(ConvVolume, ReadsItsInputWithoutCopies) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[1,64,8,13,14]"));
    x = ops::maximum(g, x, 0.0);
    ops::Conv a;
    a.strides = a.dilations = {1, 1, 1};
    a.low = to_dims({2, 1, 1});
    a.high = to_dims({0, 1, 1});
    a.dtype = DType::F16;
    auto weights = [&](const Shape& s, unsigned seed) {
        return ops::constant(g, random_elements(DType::F16, s, seed, -0.1, 0.1));
    };
    Value y = ops::conv(g, a, x, weights({64, 64, 3, 3, 3}, 1));
    g.add_output("y", ops::add(g, ops::add(g, y, weights({64, 1, 1, 1}, 2)), x));
    BackendRun run = expect_backend(g, {.tolerance = 6e-3, .runs = 1});
    // The copies move the channels inside and outside again.
    EXPECT_EQ(run.kernels, (std::vector<std::string>{"map", "copy", "conv", "copy"}));
    EXPECT_NE(run.implementations.at(2).find("conv_wgmma"), std::string::npos);
    run = expect_backend(g, {.tolerance = 6e-3, .runs = 1, .batch_invariant = true});
    EXPECT_GT(run.kernels.size(), 4U);
}

TEST(ConvVolume, PrefersTheRightTactic) {
    Graph g = conv_graph(volume("f16[1,96,12,48,48]", "f16[96,96,3,3,3]"));
    EXPECT_TRUE(tactic_names(g)[0].starts_with("conv_stream"));
    EXPECT_TRUE(tactic_names(g, {.cc = 80})[0].starts_with("conv_mma"));
}

} // namespace
} // namespace ingot::test
