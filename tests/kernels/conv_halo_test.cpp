// SPDX-License-Identifier: Apache-2.0
// conv with inputs fetched once for all kernel positions.
#include "kernels/conv_graphs.h"
#include "kernels/harness.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

const std::vector<plan::Order> channels_last = {
    {0, 2, 3, 1}, {0, 2, 3, 1}, {0, 1, 2}, {0, 2, 3, 1}};

FamilyRun expect_halo(const Graph& g, const std::string& tactic, FamilyOptions options = {}) {
    options.tactic = tactic;
    FamilyRun run = expect_family(g, options);
    EXPECT_EQ(run.tactic, tactic);
    return run;
}

bool has_halo(const ConvCase& c, int cc = 90) {
    std::vector<std::string> names = tactic_names(conv_graph(c), {.cc = cc});
    return std::any_of(names.begin(), names.end(),
                       [](const std::string& n) { return n.starts_with("conv_halo"); });
}

TEST(ConvHalo, EdgesOfImages) {
    // Tiles of 8 x 8 reach beyond the results; several images; a residual by TMA or none.
    ConvCase c{.x = "f16[3,64,11,13]", .w = "f16[64,64,3,3]"};
    FamilyOptions options;
    options.orders = channels_last;
    EXPECT_NE(
        expect_halo(with_residual(c), "conv_halo_64", options).texts.at(0).find("#define FULL 1"),
        std::string::npos);
    options.orders = {};
    options.backwards = true;
    options.seed = 2;
    expect_halo(conv_graph(c), "conv_halo_64", options);
    c.x = "f16[2,64,1,3]"; // less than a window
    expect_halo(conv_graph(c), "conv_halo_64");
}

TEST(ConvHalo, SlabsAndPanelsThatAreNotFull) {
    // 72 channels are a slab and an eighth; 88 results a panel and three eighths.
    ConvCase c{.x = "bf16[2,72,10,9]", .w = "bf16[88,72,3,2]", .dilations = {1, 2}};
    c.low = {2, 0};
    c.high = {0, 3};
    expect_halo(with_residual(c), "conv_halo_64", {.orders = channels_last});
    c.x = "f16[1,32,9,8]";
    c.w = "f16[136,32,3,3]";
    c.dilations = {3, 1};
    c.low = {3, 1};
    c.high = {4, 2};
    for (const char* tactic : {"conv_halo_64", "conv_halo_128"}) {
        expect_halo(with_residual(c), tactic, {.orders = channels_last});
    }
}

TEST(ConvHalo, WindowsOfOneRow) {
    ConvCase c{.x = "f16[2,40,9,12]", .w = "f16[24,40,1,5]", .low = {0, 2}, .high = {0, 2}};
    expect_halo(conv_graph(c), "conv_halo_64");
    c.w = "f16[24,40,7,1]";
    c.low = {3, 0};
    c.high = {3, 0};
    expect_halo(conv_graph(c), "conv_halo_64");
}

TEST(ConvHalo, MoreTilesThanSlots) {
    // 33 columns of tiles leave four blocks for each, which make ten tiles of every one.
    ConvCase c{.x = "f16[10,32,13,14]", .w = "f16[2112,32,1,2]", .low = {0, 1}, .high = {0, 0}};
    FamilyRun run = expect_halo(with_residual(c), "conv_halo_64", {.orders = channels_last});
    EXPECT_NE(run.texts.at(0).find("#define SLOTS 8"), std::string::npos);
}

TEST(ConvHalo, FewSlots) {
    // Weights of 128 channels leave room for two halos; blocks make several tiles of each.
    ConvCase c{.x = "f16[6,128,9,9]", .w = "f16[1280,128,3,3]"};
    FamilyRun run = expect_halo(conv_graph(c), "conv_halo_64");
    EXPECT_NE(run.texts.at(0).find("#define SLOTS 2"), std::string::npos);
}

TEST(ConvHalo, TakesWhatFits) {
    EXPECT_TRUE(has_halo({.x = "f16[1,64,9,9]", .w = "f16[64,64,3,3]"}));
    EXPECT_FALSE(has_halo({.x = "f16[1,64,9,9]", .w = "f16[64,64,3,3]"}, 80));
    EXPECT_FALSE(has_halo({.x = "f16[1,64,9,9]", .w = "f16[64,64,3,3]"}, 100));
    EXPECT_FALSE(has_halo({.x = "f32[1,64,9,9]", .w = "f32[64,64,3,3]"}));
    EXPECT_FALSE(has_halo({.x = "f16[1,64,9,9]", .w = "f16[64,64,3,3]", .strides = {1, 2}}));
    EXPECT_FALSE(has_halo({.x = "f16[1,128,9,9]", .w = "f16[64,64,3,3]", .groups = 2}));
    EXPECT_FALSE(has_halo({.x = "f16[1,24,9,9]", .w = "f16[64,24,3,3]"}));   // half of a slab
    EXPECT_FALSE(has_halo({.x = "f16[1,192,9,9]", .w = "f16[64,192,3,3]"})); // weights
    EXPECT_FALSE(has_halo({.x = "f16[1,64,9,9]", .w = "f16[66,64,3,3]"}));   // rows of results
    EXPECT_FALSE(has_halo({.x = "f16[1,64,70,70]",
                           .w = "f16[64,64,3,3]",
                           .dilations = {30, 30},
                           .low = {30, 30},
                           .high = {30, 30}})); // halo
}

TEST(ConvHalo, ChosenForManyPositionsOfFewChannels) {
    auto best = [](const char* x, const char* w) {
        return tactic_names(with_residual({.x = x, .w = w}), {.orders = channels_last})[0];
    };
    EXPECT_EQ(best("f16[32,64,56,56]", "f16[64,64,3,3]"), "conv_halo_64");
    EXPECT_NE(best("f16[1,64,7,7]", "f16[64,64,3,3]"), "conv_halo_64");
}

} // namespace
} // namespace ingot::test
