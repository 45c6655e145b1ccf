// SPDX-License-Identifier: Apache-2.0
// Convolutions over three axes of one volume whose weights come through a ring.
#include "base/text.h"
#include "kernels/conv_graphs.h"
#include "kernels/harness.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

/// All inputs have channels innermost, as TMA reads a residual.
FamilyOptions channels_inside() {
    FamilyOptions options;
    options.orders = {{0, 2, 3, 4, 1}, {0, 2, 3, 4, 1}, {0, 1, 2, 3}, {0, 2, 3, 4, 1}};
    return options;
}

std::string expect_stream(const Graph& g, const std::string& tile, FamilyOptions options = {}) {
    options.tactic = "conv_stream_" + tile;
    FamilyRun run = expect_family(g, options);
    EXPECT_EQ(run.tactic, options.tactic);
    return run.texts.at(0);
}

bool contains(const std::string& text, std::string_view what) {
    return text.find(what) != std::string::npos;
}

bool has_stream(const ConvCase& c, int cc = 90) {
    std::vector<std::string> names = tactic_names(conv_graph(c), {.cc = cc});
    return std::any_of(names.begin(), names.end(),
                       [](const std::string& n) { return n.starts_with("conv_stream"); });
}

TEST(ConvStream, EdgesOfVolumes) {
    // Tiles reach beyond the results on all sides; a residual by TMA or none; partial slabs.
    Graph with = with_residual(volume("f16[1,72,3,11,19]", "f16[64,72,3,3,3]"));
    EXPECT_TRUE(contains(expect_stream(with, "128x64", channels_inside()), "#define FULL 1"));
    expect_stream(with, "256x64", channels_inside());
    FamilyOptions options;
    options.backwards = true;
    options.seed = 2;
    Graph without = conv_graph(volume("bf16[1,48,4,17,9]", "bf16[40,48,3,3,3]"));
    EXPECT_TRUE(contains(expect_stream(without, "256x64", options), "#define STEPS 3\n"));
    expect_stream(without, "128x64", options);
}

TEST(ConvStream, ColumnsOfEachWidth) {
    for (const auto& [w, columns] : {std::pair("f16[8,32,3,3,3]", "16"),
                                     {"f16[24,32,3,3,3]", "32"},
                                     {"f16[96,32,3,3,3]", "96"},
                                     {"f16[136,32,3,3,3]", "64"}}) {
        SCOPED_TRACE(w);
        ConvCase c = volume("f16[1,32,2,5,17]", w);
        expect_stream(with_residual(c), str("128x", columns), channels_inside());
        expect_stream(conv_graph(c), str("256x", columns));
    }
    Graph wide = with_residual(volume("f16[1,32,2,5,17]", "f16[120,32,3,3,3]"));
    expect_stream(wide, "128x128", channels_inside());
}

TEST(ConvStream, PaddedBeforeTheFirstFrameOnly) {
    // As causal convolutions of video are.
    ConvCase c = volume("f16[1,16,5,9,8]", "f16[64,16,3,3,3]");
    c.low = {2, 1, 1};
    c.high = {0, 1, 1};
    expect_stream(with_residual(c), "256x64", channels_inside());
    c.low = {0, 1, 1};
    expect_stream(conv_graph(c), "128x64");
    c = volume("f16[1,48,3,20,24]", "f16[48,48,3,3,3]");
    c.low = {2, 1, 1};
    c.high = {0, 1, 1};
    expect_stream(with_residual(c), "256x64", channels_inside());
    c = volume("f16[1,96,3,20,24]", "f16[96,96,3,3,3]");
    c.low = {2, 1, 1};
    c.high = {0, 1, 1};
    expect_stream(with_residual(c), "256x96", channels_inside());
}

TEST(ConvStream, DistancesBetweenPositions) {
    ConvCase c = volume("f16[1,24,9,8,7]", "f16[16,24,3,2,3]");
    c.dilations = {3, 2, 1};
    c.low = {4, 0, 2};
    c.high = {1, 3, 0};
    expect_stream(conv_graph(c), "128x16");
    expect_stream(with_residual(c), "256x16", channels_inside());
}

TEST(ConvStream, WindowsOfOneRowInAPlane) {
    ConvCase c = volume("f16[1,64,6,9,8]", "f16[64,64,3,1,2]");
    c.low = c.high = {1, 0, 0};
    expect_stream(with_residual(c), "256x64", channels_inside());
}

TEST(ConvStream, ManyTilesOfABlock) {
    // 33 columns of tiles leave four blocks for each: rings and panels go round.
    ConvCase c = volume("f16[1,128,4,25,40]", "f16[2112,128,2,1,2]");
    c.low = c.high = {0, 0, 0};
    expect_stream(with_residual(c), "128x64", channels_inside());
    c = volume("f16[1,48,4,50,40]", "f16[2112,48,2,2,2]");
    c.low = c.high = {0, 0, 0};
    expect_stream(with_residual(c), "256x64", channels_inside());
}

TEST(ConvStream, TakesWhatFits) {
    auto c = [](const char* x, const char* w) { return volume(x, w); };
    EXPECT_TRUE(has_stream(c("f16[1,64,4,9,9]", "f16[64,64,3,3,3]")));
    EXPECT_FALSE(has_stream(c("f16[1,64,4,9,9]", "f16[64,64,3,3,3]"), 80));
    EXPECT_FALSE(has_stream(c("f16[1,64,4,9,9]", "f16[64,64,3,3,3]"), 100));
    EXPECT_FALSE(has_stream(c("f16[2,64,4,9,9]", "f16[64,64,3,3,3]"))); // several volumes
    EXPECT_FALSE(has_stream(c("f32[1,64,4,9,9]", "f32[64,64,3,3,3]")));
    EXPECT_FALSE(has_stream(c("f16[1,12,4,9,9]", "f16[64,12,3,3,3]"))); // rows of inputs
    EXPECT_FALSE(has_stream(c("f16[1,64,4,9,9]", "f16[66,64,3,3,3]"))); // rows of results
    ConvCase steps = c("f16[1,64,4,9,9]", "f16[64,64,3,3,3]");
    steps.strides = {2, 1, 1};
    EXPECT_FALSE(has_stream(steps));
    // Panels of 64 columns end behind the last result, or with a tile.
    std::vector<std::string> names =
        tactic_names(conv_graph(c("f16[1,64,4,9,9]", "f16[192,64,3,3,3]")));
    EXPECT_EQ(std::count(names.begin(), names.end(), "conv_stream_256x96"), 0);
    EXPECT_EQ(std::count(names.begin(), names.end(), "conv_stream_256x64"), 1);
}

TEST(ConvStream, Images) {
    for (const char* tile : {"128x64", "256x64", "256x96", "128x128"}) {
        SCOPED_TRACE(tile);
        ConvCase c{.x = "f16[3,40,19,21]", .w = "f16[96,40,5,5]", .low = {2, 2}, .high = {2, 2}};
        FamilyOptions options;
        options.orders = {{0, 2, 3, 1}, {0, 2, 3, 1}, {0, 1, 2}, {0, 2, 3, 1}};
        expect_stream(with_residual(c), tile, options);
        c.dilations = {2, 1};
        expect_stream(conv_graph(c), tile);
    }
}

TEST(ConvStream, ChosenForVideo) {
    auto best = [](const char* x, const char* w) {
        return tactic_names(with_residual(volume(x, w)), channels_inside())[0];
    };
    EXPECT_EQ(best("f16[1,48,3,256,256]", "f16[48,48,3,3,3]"), "conv_stream_256x64");
    EXPECT_EQ(best("f16[1,128,9,192,192]", "f16[64,128,3,3,3]"), "conv_stream_256x64");
    EXPECT_EQ(best("f16[1,64,9,192,192]", "f16[8,64,3,3,3]"), "conv_stream_256x16");
}

} // namespace
} // namespace ingot::test
