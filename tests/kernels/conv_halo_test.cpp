// SPDX-License-Identifier: Apache-2.0
// conv with inputs fetched once for all kernel positions.
#include "base/text.h"
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

/// By both tiles; the texts of their programs.
std::vector<std::string> expect_tiles(const Graph& g, const std::string& columns,
                                      const FamilyOptions& options = {}) {
    std::vector<std::string> texts;
    for (const char* tile : {"square", "strip"}) {
        texts.push_back(expect_halo(g, str("conv_halo_", tile, "_", columns), options).texts.at(0));
    }
    return texts;
}

bool contains(const std::vector<std::string>& texts, std::string_view what) {
    return std::all_of(texts.begin(), texts.end(), [what](const std::string& text) {
        return text.find(what) != std::string::npos;
    });
}

bool has_halo(const ConvCase& c, int cc = 90) {
    std::vector<std::string> names = tactic_names(conv_graph(c), {.cc = cc});
    return std::any_of(names.begin(), names.end(),
                       [](const std::string& n) { return n.starts_with("conv_halo"); });
}

TEST(ConvHalo, EdgesOfImages) {
    // Tiles reach beyond the results; several images; a residual by TMA or none.
    ConvCase c{.x = "f16[3,64,11,13]", .w = "f16[64,64,3,3]"};
    FamilyOptions options;
    options.orders = channels_last;
    EXPECT_TRUE(contains(expect_tiles(with_residual(c), "64", options), "#define FULL 1"));
    options.orders = {};
    options.backwards = true;
    options.seed = 2;
    EXPECT_TRUE(contains(expect_tiles(conv_graph(c), "64", options), "#define FULL 0"));
    c.x = "f16[2,64,1,3]"; // less than a window
    expect_tiles(conv_graph(c), "64");
}

TEST(ConvHalo, SlabsAndPanelsThatAreNotFull) {
    // 72 channels are a slab and an eighth; 88 results a panel and three eighths.
    ConvCase c{.x = "bf16[2,72,10,9]", .w = "bf16[88,72,3,2]", .dilations = {1, 2}};
    c.low = {2, 0};
    c.high = {0, 3};
    expect_tiles(with_residual(c), "64", {.orders = channels_last});
    c.x = "f16[1,32,9,8]";
    c.w = "f16[136,32,3,3]";
    c.dilations = {3, 1};
    c.low = {3, 1};
    c.high = {4, 2};
    expect_tiles(with_residual(c), "64", {.orders = channels_last});
    expect_tiles(with_residual(c), "128", {.orders = channels_last});
}

TEST(ConvHalo, FewColumns) {
    // 32 results, and 24, have tiles of half a panel; a residual, a slot or more, two slabs.
    ConvCase c{.x = "f16[2,128,11,9]", .w = "f16[32,128,3,3]"};
    FamilyOptions options;
    options.orders = channels_last;
    EXPECT_TRUE(contains(expect_tiles(with_residual(c), "32", options), "#define BN 32"));
    c = {.x = "bf16[9,40,16,8]", .w = "bf16[24,40,3,3]"};
    expect_tiles(with_residual(c), "32", options);
    options.seed = 4;
    expect_tiles(conv_graph(c), "32", options);
    std::vector<std::string> names =
        tactic_names(conv_graph({.x = "f16[1,64,9,9]", .w = "f16[40,64,3,3]"}), {});
    EXPECT_EQ(std::count(names.begin(), names.end(), "conv_halo_square_32"), 0);
}

TEST(ConvHalo, FewChannels) {
    // Products for the channels that a line has; all architectures run the other algorithms.
    struct Row {
        const char* x;
        const char* w;
        const char* columns;
        const char* steps;
    };
    for (const Row& r : {Row{"f16[2,16,11,13]", "f16[16,16,3,3]", "16", "#define STEPS 1\n"},
                         {"bf16[3,24,9,10]", "bf16[8,24,3,3]", "16", "#define STEPS 2\n"},
                         {"f16[1,8,17,9]", "f16[24,8,3,2]", "32", "#define STEPS 1\n"},
                         {"f16[2,16,7,30]", "f16[72,16,1,3]", "64", "#define STEPS 1\n"},
                         {"bf16[1,48,12,11]", "bf16[16,48,3,3]", "16", "#define STEPS 3\n"},
                         {"f16[1,80,9,9]", "f16[16,80,3,3]", "16", "#define STEPS 4\n"}}) {
        SCOPED_TRACE(r.x);
        ConvCase c{.x = r.x, .w = r.w};
        FamilyOptions options;
        EXPECT_TRUE(contains(expect_tiles(conv_graph(c), r.columns, options), r.steps));
        options.orders = channels_last;
        options.seed = 3;
        EXPECT_TRUE(contains(expect_tiles(with_residual(c), r.columns, options), r.steps));
    }
}

TEST(ConvHalo, SlicesOfVolumes) {
    // Windows over the last two of three axes, as stack_depth leaves them.
    ConvCase c{.x = "f16[2,8,3,9,11]", .w = "f16[8,8,1,3,3]"};
    c.strides = c.dilations = {1, 1, 1};
    c.low = c.high = {0, 1, 1};
    expect_tiles(conv_graph(c), "16");
    c.x = "bf16[1,16,3,9,11]";
    c.w = "bf16[40,16,1,3,3]";
    expect_tiles(conv_graph(c), "64");
}

TEST(ConvHalo, WindowsOfOneRow) {
    ConvCase c{.x = "f16[2,40,9,12]", .w = "f16[24,40,1,5]", .low = {0, 2}, .high = {0, 2}};
    expect_tiles(conv_graph(c), "64");
    c.w = "f16[24,40,7,1]";
    c.low = {3, 0};
    c.high = {3, 0};
    expect_tiles(conv_graph(c), "64");
}

TEST(ConvHalo, MoreTilesThanSlots) {
    // 33 columns of tiles leave four blocks for each, which make ten tiles of every one.
    ConvCase c{.x = "f16[10,32,13,14]", .w = "f16[2112,32,1,2]", .low = {0, 1}, .high = {0, 0}};
    EXPECT_TRUE(contains(expect_tiles(with_residual(c), "64", {.orders = channels_last}),
                         "#define SLOTS 8"));
}

TEST(ConvHalo, FewSlots) {
    // Weights of 128 channels leave room for two halos; blocks make several tiles of each.
    ConvCase c{.x = "f16[6,128,9,9]", .w = "f16[1280,128,3,3]"};
    EXPECT_TRUE(contains(expect_tiles(conv_graph(c), "64"), "#define SLOTS 2"));
    // Wide strips then leave room for two warpgroups, not three.
    c = {.x = "f16[2,128,3,28]", .w = "f16[1280,128,3,3]"};
    std::vector<std::string> texts =
        expect_tiles(with_residual(c), "64", {.orders = channels_last});
    EXPECT_NE(texts[0].find("#define NC 3"), std::string::npos);
    EXPECT_NE(texts[1].find("#define NC 2"), std::string::npos);
}

TEST(ConvHalo, TakesWhatFits) {
    EXPECT_TRUE(has_halo({.x = "f16[1,64,9,9]", .w = "f16[64,64,3,3]"}));
    EXPECT_FALSE(has_halo({.x = "f16[1,64,9,9]", .w = "f16[64,64,3,3]"}, 80));
    EXPECT_FALSE(has_halo({.x = "f16[1,64,9,9]", .w = "f16[64,64,3,3]"}, 100));
    EXPECT_FALSE(has_halo({.x = "f32[1,64,9,9]", .w = "f32[64,64,3,3]"}));
    EXPECT_FALSE(has_halo({.x = "f16[1,64,9,9]", .w = "f16[64,64,3,3]", .strides = {1, 2}}));
    EXPECT_FALSE(has_halo({.x = "f16[1,128,9,9]", .w = "f16[64,64,3,3]", .groups = 2}));
    EXPECT_TRUE(has_halo({.x = "f16[1,8,9,9]", .w = "f16[8,8,3,3]"}));
    EXPECT_FALSE(has_halo({.x = "f16[1,12,9,9]", .w = "f16[64,12,3,3]"}));   // rows of inputs
    EXPECT_FALSE(has_halo({.x = "f16[1,192,9,9]", .w = "f16[64,192,3,3]"})); // weights
    EXPECT_FALSE(has_halo({.x = "f16[1,64,9,9]", .w = "f16[66,64,3,3]"}));   // rows of results
    EXPECT_FALSE(has_halo({.x = "f16[1,64,70,70]",
                           .w = "f16[64,64,3,3]",
                           .dilations = {30, 30},
                           .low = {30, 30},
                           .high = {30, 30}})); // halo
}

TEST(ConvHalo, StripsOfAtMost64Pixels) {
    auto has_strip = [](const char* x) {
        std::vector<std::string> names = tactic_names(conv_graph({.x = x, .w = "f16[64,64,3,3]"}));
        return std::find(names.begin(), names.end(), "conv_halo_strip_64") != names.end();
    };
    EXPECT_TRUE(has_strip("f16[1,64,4,62]"));
    EXPECT_FALSE(has_strip("f16[1,64,4,63]"));
    FamilyOptions options;
    options.orders = channels_last;
    expect_halo(with_residual({.x = "f16[1,64,4,62]", .w = "f16[64,64,3,3]"}), "conv_halo_strip_64",
                options);
}

TEST(ConvHalo, ChosenForManyPositionsOfFewChannels) {
    auto best = [](const char* x, const char* w) {
        return tactic_names(with_residual({.x = x, .w = w}), {.orders = channels_last})[0];
    };
    EXPECT_EQ(best("f16[32,64,56,56]", "f16[64,64,3,3]"), "conv_halo_square_64");
    EXPECT_EQ(best("f16[32,128,28,28]", "f16[128,128,3,3]"), "conv_halo_strip_64");
    EXPECT_EQ(best("f16[1,16,512,512]", "f16[16,16,3,3]"), "conv_halo_square_16");
    EXPECT_EQ(best("f16[1,32,512,512]", "f16[16,32,3,3]"), "conv_halo_square_16");
    EXPECT_FALSE(best("f16[1,64,7,7]", "f16[64,64,3,3]").starts_with("conv_halo"));
}

/// To three colours, and one: whole vectors of results, of which readers take a part.
void expect_few_results(int64_t channels, int64_t results) {
    Graph g;
    ops::Conv a;
    a.strides = a.dilations = {1, 1};
    a.low = a.high = to_dims({1, 1});
    a.dtype = DType::F16;
    Value w =
        ops::constant(g, random_elements(DType::F16, {results, channels, 3, 3}, 3, -0.2, 0.2));
    Value bias = ops::constant(g, random_elements(DType::F16, {results, 1, 1}, 4));
    Value x = g.add_input("x", parse_type(str("f16[1,", channels, ",128,130]")));
    g.add_output("y", ops::maximum(g, ops::add(g, ops::conv(g, a, x, w), bias), 0.0));
    BackendRun run = expect_backend(g, {.cc = 90, .tolerance = 6e-3});
    EXPECT_EQ(run.kernels, (std::vector<std::string>{"copy", "conv", "copy"}));
}

TEST(ConvHalo, FewResultsThroughTheBackend) {
    expect_few_results(32, 3);
    expect_few_results(16, 1);
    expect_few_results(8, 5);
}

} // namespace
} // namespace ingot::test
