// SPDX-License-Identifier: Apache-2.0
// Products of f32, rounded to TF32 or exact.
#include "kernels/gemm_graphs.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

TEST(Gemm, SingleByWgmmaAsTf32) {
    Product single = {.type = DType::F32, .result = DType::F32};
    std::vector<std::string> names = sweep(product({70, 72, 136}, single), rounded());
    for (std::string_view prefix : {"wgmma_64x64", "wgmma_128x128_s1", "wgmma_128x128_r2",
                                    "wgmma_128x128_turns", "wgmma_256x160"}) {
        EXPECT_TRUE(ran(names, prefix)) << prefix;
    }
    // Columns that are no multiple of 8 are not stored by TMA.
    EXPECT_TRUE(ran(sweep(product({70, 76, 136}, single), rounded()), "wgmma_64x64"));
    // Parts of the depth, the last slab a partial one.
    EXPECT_TRUE(ran(sweep(product({40, 56, 1108}, single), rounded()), "wgmma_64x32_s8"));
    // Rows of 268 bytes, no multiple of 16: TMA cannot address them.
    EXPECT_FALSE(ran(tactic_names(product({40, 56, 67}, single)), "wgmma"));
    FamilyOptions options = rounded();
    for (const char* tactic : {"wgmma_128x256", staying[0], staying[1]}) {
        options.tactic = tactic;
        EXPECT_TRUE(
            expect_family(product({300, 408, 584}, single), options).tactic.starts_with(tactic));
    }
    single.batch = 3;
    EXPECT_TRUE(ran(sweep(product({33, 40, 36}, single), rounded()), "wgmma"));
}

TEST(Gemm, Float32WithoutTf32) {
    FamilyOptions exact;
    exact.tf32 = false;
    exact.tolerance = 1e-6;
    std::vector<std::string> names =
        sweep(product({33, 40, 96}, {.type = DType::F32, .result = DType::F32}), exact);
    EXPECT_FALSE(ran(names, "mma") || ran(names, "wgmma"));
}

TEST(Gemm, EndingsOfSingles) {
    FamilyOptions options;
    options.tolerance = 1e-2; // erf magnifies TF32's error where terms cancel
    Ending e = {.type = DType::F32,
                .result = DType::F32,
                .operands = {"f32[72]", "f32[70,72]"},
                .stored = DType::F32};
    auto takes = [&options, &e](const char* tactic, ExprOp last) {
        options.tactic = tactic;
        return expect_family(with_ending(e, last), options).tactic.starts_with(tactic);
    };
    for (const char* tactic :
         {"wgmma_64x64_s1", "wgmma_128x128_s1", "wgmma_256x160", staying[0], staying[1]}) {
        EXPECT_TRUE(takes(tactic, ExprOp::Erf)) << tactic;
    }
    // TMA reads one operand of the result's shape.
    e.operands = {"f32[70,72]", "f32[70,72]"};
    EXPECT_TRUE(takes("wgmma_128x128_pp", ExprOp::Max));
    // Halves whose results are singles.
    e = {.extents = {200, 264, 72}, .operands = {"f16[264]", "f32[200,264]"}, .stored = DType::F32};
    EXPECT_TRUE(takes(staying[1], ExprOp::Max));
}

TEST(Gemm, SinglesOfManyTiles) {
    // Several panels and tiles of a warpgroup, a short depth.
    FamilyOptions options = rounded();
    Ending e = {.extents = {2100, 1288, 36},
                .type = DType::F32,
                .result = DType::F32,
                .operands = {"f32[1288]", "f32[2100,1288]", "f32[]"},
                .stored = DType::F32};
    for (const char* tactic : {staying[0], staying[1]}) {
        options.tactic = tactic;
        EXPECT_TRUE(expect_family(with_ending(e, ExprOp::Max), options).tactic.starts_with(tactic));
    }
}

TEST(Gemm, FunctionsOfRoundedOperandsAreQuick) {
    Ending e = {
        .type = DType::F32, .result = DType::F32, .operands = {"f32[72]"}, .stored = DType::F32};
    FamilyOptions options;
    options.tolerance = 1e-2;
    auto is_quick = [&options](const Graph& g) {
        return expect_family(g, options).texts.at(0).find("fast_sigmoid(") != std::string::npos;
    };
    EXPECT_TRUE(is_quick(with_ending(e, ExprOp::Sigmoid)));
    options.tf32 = false;
    EXPECT_FALSE(is_quick(with_ending(e, ExprOp::Sigmoid)));
    // Halves are not rounded.
    e.type = DType::F16;
    options.tf32 = true;
    EXPECT_FALSE(is_quick(with_ending(e, ExprOp::Sigmoid)));
}

} // namespace
} // namespace ingot::test
