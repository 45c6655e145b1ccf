// SPDX-License-Identifier: Apache-2.0
// Family conv: convolutions of few channels, the first of a network (conv_stem).
#include "kernels/conv_graphs.h"
#include "kernels/harness.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

TEST(Conv, Stem) {
    ConvCase c{.x = "f16[1,3,23,21]",
               .w = "f16[16,3,7,7]",
               .strides = {2, 2},
               .low = {3, 3},
               .high = {3, 3}};
    EXPECT_TRUE(ran(sweep(with_residual(c)), "conv_stem"));
    FamilyOptions channels_inside;
    channels_inside.orders = {{0, 2, 3, 1}, {0, 1, 2, 3}};
    EXPECT_TRUE(ran(sweep(conv_graph(c), channels_inside), "conv_stem"));
    // Several tiles a block, several blocks of columns, an odd width.
    c.x = "bf16[3,3,70,80]";
    c.w = "bf16[72,3,3,3]";
    FamilyOptions stem;
    stem.tactic = "conv_stem";
    EXPECT_TRUE(expect_family(with_residual(c), stem).tactic.starts_with("conv_stem"));
    std::string text = expect_family(conv_graph(c), stem).texts.at(0);
    EXPECT_NE(text.find("#define IN_REGISTERS 1"), std::string::npos);
    c.x = "f16[70,4,19,18]";
    c.w = "f16[45,4,5,2]";
    c.strides = {3, 1};
    c.low = {0, 1};
    EXPECT_TRUE(expect_family(conv_graph(c), stem).tactic.starts_with("conv_stem"));
    c.x = "f16[2,1,12,14]";
    c.w = "f16[9,1,3,3]";
    c.strides = {1, 2};
    std::vector<std::string> names = sweep(conv_graph(c));
    for (std::string_view prefix : {"conv_stem_4x16x32", "conv_stem_8x16x32"}) {
        EXPECT_TRUE(ran(names, prefix)) << prefix;
    }
}

/// Windows of 16 bits that begin at every element of a row: pixels get an element of zero.
TEST(Conv, StemWithOddSteps) {
    ConvCase c{.x = "f16[2,3,11,16]", .w = "f16[40,3,3,3]"};
    EXPECT_TRUE(ran(sweep(with_residual(c)), "conv_stem"));
    FamilyOptions channels_inside;
    channels_inside.orders = {{0, 2, 3, 1}, {0, 1, 2, 3}};
    EXPECT_TRUE(ran(sweep(conv_graph(c), channels_inside), "conv_stem"));
    EXPECT_TRUE(
        ran(sweep(conv_graph(
                {.x = "bf16[1,3,9,13]", .w = "bf16[16,3,7,7]", .low = {3, 3}, .high = {3, 3}})),
            "conv_stem"));
    EXPECT_TRUE(
        ran(sweep(conv_graph({.x = "f16[1,1,9,24]", .w = "f16[9,1,3,5]", .strides = {2, 3}})),
            "conv_stem"));
}

TEST(Conv, StemAsTf32) {
    FamilyOptions rounded;
    rounded.tolerance = 2e-3;
    // Planes and pixels; an epilogue in registers and one with a residual; an odd width.
    ConvCase c{.x = "f32[2,3,24,20]",
               .w = "f32[72,3,7,7]",
               .strides = {2, 2},
               .low = {3, 3},
               .high = {3, 3}};
    for (const char* x : {"f32[2,3,24,20]", "f32[1,3,19,21]"}) {
        c.x = x;
        for (bool inside : {false, true}) {
            rounded.orders.clear();
            if (inside) {
                rounded.orders = {{0, 2, 3, 1}, {0, 1, 2, 3}};
            }
            for (const char* tactic :
                 {"conv_stem_4x16x64", "conv_stem_8x16x64", "conv_stem_4x16x32"}) {
                rounded.tactic = tactic;
                EXPECT_EQ(expect_family(conv_graph(c), rounded).tactic, tactic);
                EXPECT_EQ(expect_family(with_residual(c), rounded).tactic, tactic);
            }
        }
    }
    rounded.orders = {{0, 2, 3, 1}, {0, 1, 2, 3}, {0, 1, 2}, {0, 2, 3, 1}};
    std::string text = expect_family(conv_graph(c), rounded).texts.at(0);
    EXPECT_NE(text.find("#define IN_REGISTERS 1"), std::string::npos);
    rounded.orders.clear();
    // Runs of 8, 5 and 20 elements, weights one by one, several images and odd steps.
    for (const ConvCase& other :
         {ConvCase{.x = "f32[2,1,12,14]", .w = "f32[9,1,3,5]", .strides = {1, 3}},
          ConvCase{.x = "f32[3,4,19,18]", .w = "f32[45,4,5,2]", .strides = {3, 1}, .low = {0, 1}},
          ConvCase{.x = "f32[70,4,13,9]", .w = "f32[8,4,2,5]"}}) {
        rounded.tactic = "conv_stem_8x16x32";
        EXPECT_EQ(expect_family(conv_graph(other), rounded).tactic, rounded.tactic);
    }
    rounded.tf32 = false;
    rounded.tactic.clear();
    EXPECT_FALSE(ran(tactic_names(conv_graph(c), rounded), "conv_stem"));
    // Without TF32 the same layout of weights is read along results.
    rounded.tolerance = 1e-5;
    FamilyRun exact = expect_family(conv_graph(c), rounded);
    EXPECT_EQ(exact.tactic, "conv_simt");
    EXPECT_NE(exact.texts.at(0).find("#define B_COLUMNS 1"), std::string::npos);
}

} // namespace
} // namespace ingot::test
