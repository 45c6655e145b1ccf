// SPDX-License-Identifier: Apache-2.0
// conv along one axis with steps between its windows: windows as rows of a plain product, where no
// padding cuts them, else columns that are joined, or walked as pairs.
#include "kernels/conv_graphs.h"
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

ConvCase line(std::string x, std::string w, int64_t stride, int64_t low = 0, int64_t high = 0) {
    return {.x = std::move(x),
            .w = std::move(w),
            .strides = {stride},
            .dilations = {1},
            .low = {low},
            .high = {high}};
}

TEST(ConvRuns, WindowsAreRowsOfAProduct) {
    std::vector<std::string> names = sweep(with_residual(line("f16[1,16,37]", "f16[24,16,3]", 2)));
    for (std::string_view prefix :
         {"wgmma_64x64_s1", "wgmma_128x128_r2", "conv_wgmma_64x64_s1", "mma_64x64_s1", "simt"}) {
        EXPECT_TRUE(ran(names, prefix)) << prefix;
    }
    EXPECT_FALSE(ran(names, "conv_mma"));
}

TEST(ConvRuns, RowsOfImagesAreNoSingleAxis) {
    std::vector<std::string> names = sweep(with_residual(line("f16[3,16,37]", "f16[24,16,8]", 4)));
    EXPECT_TRUE(ran(names, "conv_wgmma_64x64_s1"));
    EXPECT_TRUE(ran(names, "mma_64x64_s1"));
    EXPECT_FALSE(ran(names, "wgmma_64x64"));
    // Windows side by side and to the last column, whose images follow one another as rows do.
    EXPECT_TRUE(ran(sweep(conv_graph(line("bf16[2,24,32]", "bf16[40,24,8]", 8))), "wgmma_64x64"));
}

TEST(ConvRuns, AnyStepLengthAndType) {
    FamilyOptions rounded;
    rounded.tolerance = 2e-3;
    for (const auto& [c, wgmma] :
         {std::pair{line("bf16[2,8,41]", "bf16[16,8,5]", 3), true}, // columns that no window reads
          std::pair{line("f16[1,72,23]", "f16[40,72,4]", 1), true}, // no steps
          std::pair{line("f16[1,8,9]", "f16[8,8,9]", 4), true},     // one window
          std::pair{line("f32[2,20,31]", "f32[24,20,3]", 2), true},
          std::pair{line("u8[1,32,33]", "i8[16,32,4]", 2), true},
          std::pair{line("f16[2,6,35]", "f16[8,6,3]", 2), false}, // rows of 24 bytes apart
          std::pair{line("f16[1,9,35]", "f16[8,9,3]", 2), false},
          std::pair{line("f64[1,4,19]", "f64[8,4,3]", 2), false}}) {
        FamilyOptions options = c.x.starts_with("f32") ? rounded : FamilyOptions{};
        ConvCase whole = c;
        if (c.x.starts_with("u8")) {
            whole.result = DType::I32;
        }
        std::vector<std::string> names = sweep(conv_graph(whole), options);
        EXPECT_EQ(ran(names, "conv_wgmma"), wgmma) << c.x;
    }
}

TEST(ConvRuns, WaveformsHaveOneChannel) {
    for (const ConvCase& c :
         {line("f16[1,1,301]", "f16[24,1,51]", 10), line("f16[2,1,75]", "f16[16,1,10]", 5),
          line("bf16[1,1,130]", "bf16[8,1,15]", 8), line("f16[3,2,67]", "f16[8,2,9]", 3)}) {
        EXPECT_TRUE(ran(sweep(with_residual(c)), "mma_64x64")) << c.x;
    }
    // Steps and weights of whole 16 bytes.
    EXPECT_TRUE(ran(sweep(conv_graph(line("f16[1,1,301]", "f16[24,1,32]", 16))), "wgmma_64x64_s1"));
}

TEST(ConvRuns, PaddedColumnsAreJoined) {
    // Groups of 2, 4 and 2 columns; steps of one group, and of two.
    for (const ConvCase& c :
         {line("f16[2,16,32]", "f16[24,16,8]", 4, 2, 2),
          line("f16[1,8,64]", "f16[16,8,16]", 8, 4, 4),
          line("bf16[1,40,22]", "bf16[24,40,4]", 2, 2, 0),
          line("f16[1,16,31]", "f16[24,16,4]", 2, 2, 0)}) { // the last column is read by no window
        std::vector<std::string> names = sweep(with_residual(c));
        for (std::string_view prefix :
             {"conv_wgmma_64x64_s1", "conv_wgmma_128x128_r2", "conv_mma_64x64"}) {
            EXPECT_TRUE(ran(names, prefix)) << c.x << ' ' << prefix;
        }
    }
}

TEST(ConvRuns, PaddedColumnsTwoApart) {
    ConvCase c = line("f16[2,64,14]", "f16[24,64,3]", 2, 1, 1);
    std::vector<std::string> names = sweep(with_residual(c));
    EXPECT_TRUE(ran(names, "conv_wgmma_64x64_s1"));
    c.w = "f16[24,64,4]";
    c.dilations = {2};
    c.low = {3};
    EXPECT_TRUE(ran(sweep(conv_graph(c)), "conv_wgmma"));
    FamilyOptions rounded;
    rounded.tolerance = 2e-3;
    EXPECT_TRUE(ran(sweep(conv_graph(line("f32[1,40,18]", "f32[24,40,5]", 2, 2, 2)), rounded),
                    "conv_wgmma"));
}

TEST(ConvRuns, PaddedLinesOfOddLengthAreCutByTma) {
    // Pairs of columns would reach into the next image, or past the last one.
    EXPECT_FALSE(
        ran(sweep(conv_graph(line("f16[2,16,15]", "f16[24,16,3]", 2, 1, 1))), "conv_wgmma"));
    EXPECT_FALSE(
        ran(sweep(conv_graph(line("f16[1,16,30]", "f16[24,16,8]", 4, 2, 2))), "conv_wgmma"));
}

TEST(ConvRuns, LongLines) {
    // More positions than 16 bits count, copied by 16 and 4 bytes and by elements.
    for (const ConvCase& c : {line("f16[2,8,30100]", "f16[16,8,5]", 61, 2, 2),
                              line("f16[1,6,66000]", "f16[8,6,4]", 131, 1, 2),
                              line("bf16[1,5,33001]", "bf16[8,5,3]", 64, 1, 1)}) {
        EXPECT_TRUE(ran(sweep(with_residual(c)), "conv_mma_64x64_s1")) << c.x;
    }
    FamilyOptions options;
    options.tactic = "conv_mma_128x64_s1";
    for (int cc : {80, 120}) {
        options.cc = cc;
        ConvCase c = line("f16[1,16,32001]", "f16[8,16,3]", 1, 2, 2);
        c.dilations = {2};
        EXPECT_EQ(expect_family(conv_graph(c), options).tactic, options.tactic);
    }
}

TEST(ConvRuns, OneRowOfAPlane) {
    ConvCase c{.x = "f16[2,48,1,37]",
               .w = "f16[24,48,1,5]",
               .strides = {1, 2},
               .low = {0, 0},
               .high = {0, 0}};
    EXPECT_TRUE(ran(sweep(with_residual(c)), "conv_wgmma"));
    c.x = "f16[2,48,1,36]";
    c.low = {0, 2};
    c.high = {0, 2};
    EXPECT_TRUE(ran(sweep(with_residual(c)), "conv_wgmma"));
}

TEST(ConvRuns, StridedOperands) {
    FamilyOptions options;
    options.strided = true;
    sweep(conv_graph(line("f16[2,16,37]", "f16[24,16,3]", 2)), options);
    options.strided = false;
    options.backwards = true;
    options.tactic = "wgmma_64x64_s1";
    EXPECT_EQ(expect_family(conv_graph(line("f16[1,64,137]", "f16[24,64,3]", 2)), options).tactic,
              options.tactic);
}

TEST(ConvRuns, TilesStoredByTma) {
    FamilyOptions options;
    options.orders = {{0, 2, 1}, {0, 2, 1}, {0, 1}, {0, 2, 1}};
    for (const char* tactic : {"wgmma_128x160_turns", "conv_wgmma_192x128_turns"}) {
        options.tactic = tactic;
        ConvCase c = line("f16[1,16,811]", "f16[200,16,4]", 2);
        EXPECT_TRUE(expect_family(with_residual(c), options).tactic.starts_with(tactic));
    }
    ConvCase c = line("f16[2,64,142]", "f16[200,64,3]", 2, 1, 1);
    EXPECT_TRUE(expect_family(with_residual(c), options).tactic.starts_with(options.tactic));
}

TEST(ConvRuns, LengthsKnownAtRunTime) {
    for (int64_t low : {0, 1}) {
        Graph g;
        ops::Conv a;
        a.strides = {2};
        a.dilations = {1};
        a.low = to_dims({low});
        a.high = a.low;
        a.dtype = DType::F16;
        Value x = g.add_input("x", parse_type("f16[2,64,n]"));
        Value w = ops::constant(g, random_elements(DType::F16, {72, 64, 4}, 1, -0.2, 0.2));
        g.add_output("y", ops::conv(g, a, x, w));
        for (int64_t length : {4, 130, 131}) {
            expect_backend(g, {.symbols = {{"n", length}}, .tolerance = 6e-3});
        }
    }
}

/// The lowering joins windows; a bias and a map lie behind them.
TEST(ConvRuns, WaveformsThroughTheBackend) {
    struct Case {
        int64_t images, channels, kernel, stride, low, high;
    };
    for (const Case& c :
         {Case{1, 1, 10, 5, 0, 0}, Case{3, 1, 10, 5, 0, 0}, Case{1, 1, 51, 10, 2, 7},
          Case{2, 2, 9, 3, 0, 1}, Case{1, 1, 15, 8, 0, 0}, Case{2, 1, 16, 8, 4, 4}}) {
        Graph g;
        ops::Conv a;
        a.strides = {c.stride};
        a.dilations = {1};
        a.low = to_dims({c.low});
        a.high = to_dims({c.high});
        a.dtype = DType::F16;
        Value x = g.add_input("x", {DType::F16, {c.images, c.channels, Dim::symbol("n")}});
        auto constant = [&g](const Shape& shape) {
            return ops::constant(g, random_elements(DType::F16, shape, 3, -0.2, 0.2));
        };
        Value y = ops::conv(g, a, x, constant({24, c.channels, c.kernel}));
        y = ops::maximum(g, ops::add(g, y, constant({24, 1})), 0.0);
        g.add_output("y", y);
        for (int64_t length : {c.kernel, int64_t{203}, int64_t{408}}) {
            BackendRun run = expect_backend(g, {.symbols = {{"n", length}}, .tolerance = 6e-3});
            EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "conv"), 1);
            EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "map"), 0);
        }
    }
}

TEST(ConvRuns, BatchInvariantDepthsAreNotSplit) {
    for (int64_t images : {1, 3}) {
        Graph g;
        ops::Conv a;
        a.strides = {2};
        a.dilations = {1};
        a.low = a.high = to_dims({0});
        a.dtype = DType::F16;
        Value x = g.add_input("x", {DType::F16, {images, 64, 35}});
        Value w = ops::constant(g, random_elements(DType::F16, {24, 64, 8}, 1, -0.2, 0.2));
        g.add_output("y", ops::conv(g, a, x, w));
        BackendRun run = expect_backend(g, {.tolerance = 6e-3, .batch_invariant = true});
        auto whole = [](const std::string& i) {
            return i.find(" mma_") != std::string::npos && i.ends_with("_s1");
        };
        EXPECT_EQ(std::count_if(run.implementations.begin(), run.implementations.end(), whole), 1);
    }
}

TEST(ConvRuns, OddLinesArePaddedByACopy) {
    Graph g;
    ops::Conv a;
    a.strides = {2};
    a.dilations = {1};
    a.low = a.high = to_dims({1});
    a.dtype = DType::F16;
    Value x = g.add_input("x", parse_type("f16[2,64,1031]"));
    Value w = ops::constant(g, random_elements(DType::F16, {136, 64, 3}, 1, -0.2, 0.2));
    g.add_output("y", ops::conv(g, a, x, w));
    BackendRun run = expect_backend(g, {.tolerance = 6e-3});
    EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "pad"), 0);
    // 16 times as many results pay for the copy.
    Graph wide;
    x = wide.add_input("x", parse_type("f16[2,64,1031]"));
    w = ops::constant(wide, random_elements(DType::F16, {1096, 64, 3}, 1, -0.2, 0.2));
    wide.add_output("y", ops::conv(wide, a, x, w));
    run = expect_backend(wide, {.tactic = "conv_wgmma_128x128", .tolerance = 6e-3, .runs = 1});
    EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "pad"), 1);
    EXPECT_TRUE(std::any_of(
        run.implementations.begin(), run.implementations.end(),
        [](const std::string& i) { return i.find("conv_wgmma_128x128") != std::string::npos; }));
}

} // namespace
} // namespace ingot::test
