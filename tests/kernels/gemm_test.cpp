// SPDX-License-Identifier: Apache-2.0
// dot with its epilogue map: every tactic, odd extents, every element type and kind of epilogue.
#include "kernels/gemm_graphs.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

TEST(Gemm, OddExtents) {
    for (Extents x :
         {Extents{1, 1, 1}, Extents{7, 129, 31}, Extents{127, 1, 40}, Extents{129, 127, 72}}) {
        SCOPED_TRACE(testing::PrintToString(x));
        EXPECT_TRUE(ran(sweep(product(x)), "simt"));
    }
}

TEST(Gemm, TensorCoresInHalf) {
    std::vector<std::string> names = sweep(product({70, 72, 136}));
    for (std::string_view prefix :
         {"wgmma_64x64", "wgmma_128x128_s1", "wgmma_128x128_r2", "wgmma_256x160",
          "wgmma_128x160_turns", "mma_64x64", "mma_128x128", "mma_16x64", "simt"}) {
        EXPECT_TRUE(ran(names, prefix)) << prefix;
    }
}

/// Rows of 8 or 4 aligned bytes, which TMA cannot walk, and of fewer.
TEST(Gemm, RowsOfFewAlignedBytes) {
    for (int64_t depth : {116, 58, 67}) {
        SCOPED_TRACE(depth);
        EXPECT_TRUE(ran(sweep(product({49, 40, depth})), "mma_64x64"));
        EXPECT_TRUE(ran(sweep(product({49, 34, depth}, {.b_columns = true})), "mma_64x64"));
    }
    sweep(product({33, 24, 90}, {.type = DType::BF16, .batch = 3}));
    Product single = {.type = DType::F32, .result = DType::F32};
    EXPECT_TRUE(ran(sweep(product({40, 56, 67}, single), rounded()), "mma_64x64"));
    sweep(product({40, 24, 36}, {.type = DType::I8, .result = DType::I32}));
}

TEST(Gemm, ManyStagesAndTiles) {
    FamilyOptions options;
    for (const char* tactic : {"wgmma_128x128_r2", "wgmma_256x160"}) {
        options.tactic = tactic;
        EXPECT_TRUE(expect_family(product({300, 408, 584}, {.type = DType::BF16}), options)
                        .tactic.starts_with(tactic));
    }
}

TEST(Gemm, TilesStoredByTma) {
    FamilyOptions options;
    for (const char* tactic : staying) {
        options.tactic = tactic;
        EXPECT_TRUE(
            expect_family(product({300, 408, 328}, {.type = DType::BF16, .result = DType::BF16}),
                          options)
                .tactic.starts_with(tactic));
    }
    options.backwards = true;
    for (const char* tactic :
         {staying[1], "wgmma_128x160_s2", "wgmma_64x64_s2", "wgmma_64x48_s1"}) {
        options.tactic = tactic;
        EXPECT_TRUE(expect_family(product({300, 408, 328}), options).tactic.starts_with(tactic));
    }
    // More tiles than SMs have warpgroups.
    options.tactic = staying[0];
    EXPECT_TRUE(expect_family(product({20, 24, 200}, {.batch = 270}), options)
                    .tactic.starts_with(options.tactic));
}

TEST(Gemm, SplitDepth) {
    std::vector<std::string> names = sweep(product({40, 56, 1104}, {.type = DType::BF16}));
    for (std::string_view name :
         {"wgmma_64x64_s4", "wgmma_64x32_s8", "mma_64x64_s2", "mma_32x64_s8"}) {
        EXPECT_TRUE(ran(names, name)) << name;
    }
}

/// Splits whose steps all fit into the stages: their loading warps wait for nothing before they
/// wait for the cluster.
TEST(Gemm, SplitDepthWithinTheStages) {
    std::vector<std::string> names = sweep(product({72, 56, 376}, {.type = DType::BF16}));
    for (std::string_view name : {"wgmma_64x64_s3", "wgmma_128x128_s2", "mma_64x64_s2"}) {
        EXPECT_TRUE(ran(names, name)) << name;
    }
    FamilyOptions options;
    for (const char* tactic : {"wgmma_64x64_s4", "wgmma_64x32_s8"}) {
        options.tactic = tactic;
        EXPECT_EQ(expect_family(product({40, 56, 1104}, {.type = DType::BF16}), options).tactic,
                  tactic);
    }
}

TEST(Gemm, ElementTypes) {
    struct Row {
        DType type, result;
        std::string_view tactic; // that must be among those that run
    };
    for (Row r : {Row{DType::BF16, DType::BF16, "wgmma"}, Row{DType::F16, DType::F32, "mma"},
                  Row{DType::F32, DType::F32, "mma"}, Row{DType::I8, DType::I32, "mma"},
                  Row{DType::I8, DType::I8, "mma"}, Row{DType::U8, DType::I32, "simt"},
                  Row{DType::I16, DType::I64, "simt"}, Row{DType::I32, DType::I32, "simt"},
                  Row{DType::U64, DType::U64, "simt"}, Row{DType::F64, DType::F64, "simt"},
                  Row{DType::F8E4M3, DType::F16, "simt"}, Row{DType::F8E5M2, DType::F32, "simt"}}) {
        SCOPED_TRACE(str(r.type, " to ", r.result));
        EXPECT_TRUE(ran(sweep(product({33, 40, 96}, {.type = r.type, .result = r.result}),
                              r.type == DType::F32 ? rounded() : FamilyOptions{}),
                        r.tactic));
    }
}

TEST(Gemm, MixedSmallIntegers) {
    Graph g;
    Dot d;
    d.a_contract = {1};
    d.b_contract = {1};
    d.dtype = DType::I32;
    Value a = g.add_input("a", parse_type("u8[9,50]"));
    Value b = g.add_input("b", parse_type("i8[11,50]"));
    g.add_output("y", ops::dot(g, d, a, b));
    sweep(g);
}

TEST(Gemm, FewRowsAndFewColumns) {
    for (Extents x :
         {Extents{1, 70, 512}, Extents{3, 33, 256}, Extents{8, 20, 2048}, Extents{40, 1, 256}}) {
        SCOPED_TRACE(testing::PrintToString(x));
        EXPECT_TRUE(ran(sweep(product(x)), "gemv"));
    }
    sweep(product({2, 20, 64}, {.type = DType::I8, .result = DType::I32}));
    sweep(product({2, 20, 64}, {.type = DType::F8E4M3, .result = DType::F16}));
}

TEST(Gemm, BatchesAndColumnsInside) {
    sweep(product({40, 48, 72}, {.batch = 3}));
    std::vector<std::string> names = sweep(product({40, 64, 72}, {.b_columns = true, .batch = 3}));
    EXPECT_TRUE(ran(names, "mma"));
    sweep(product({20, 24, 40}, {.type = DType::F32, .result = DType::F32, .b_columns = true}),
          rounded());
}

TEST(Gemm, GapsBetweenRows) {
    FamilyOptions options;
    options.strided = true;
    sweep(product({33, 40, 64}), options);
    sweep(product({33, 40, 64}, {.type = DType::F64, .result = DType::F64}), options);
}

TEST(Gemm, TransposedOperands) {
    FamilyOptions options;
    options.orders = {{1, 0}, {1, 0}};
    sweep(product({33, 40, 64}), options);
    sweep(product({33, 40, 64}, {.type = DType::I32, .result = DType::I32}), options);
}

TEST(Gemm, ManyAxes) {
    // [2,3,4,5] * [5,2,6,4] over axes 2 and 3, batch 0: neither rows nor depth is one axis.
    Graph g;
    Dot d;
    d.a_batch = {0};
    d.b_batch = {1};
    d.a_contract = {2, 3};
    d.b_contract = {3, 0};
    d.dtype = DType::F32;
    Value a = g.add_input("a", parse_type("f32[2,3,4,5]"));
    Value b = g.add_input("b", parse_type("f32[5,2,6,4]"));
    g.add_output("y", ops::dot(g, d, a, b));
    sweep(g, rounded());
}

TEST(Gemm, EmptyAndDepthless) {
    sweep(product({5, 6, 0}));
    sweep(product({0, 6, 8}));
    sweep(product({5, 0, 8}));
}

// --- epilogues

TEST(Gemm, Bias) {
    sweep(with_ending({.operands = {"f16[72]"}}, ExprOp::Erf));
}

TEST(Gemm, PersistentBlocks) {
    // More tiles than 132 SMs have warpgroups; the pipeline continues across tiles.
    FamilyOptions options;
    Ending e = {.extents = {17000, 24, 200}, .operands = {"f16[17000,1]"}};
    for (const char* tactic : {"wgmma_128x128_pp", "wgmma_128x160_pp"}) {
        options.tactic = tactic;
        EXPECT_TRUE(expect_family(with_ending(e, ExprOp::Max), options).tactic.starts_with(tactic));
        e.extents = {300, 408, 200};
        e.operands = {"f16[300,1]"};
    }
}

TEST(Gemm, EpiloguesOfTilesStoredByTma) {
    Ending whole = {.extents = {200, 264, 72}, .operands = {"f16[264]", "f16[200,264]", "f32[]"}};
    Ending by_column = {.extents = {200, 264, 72}, .operands = {"f32[264]"}};
    FamilyOptions options;
    for (const char* tactic : staying) {
        options.tactic = tactic;
        EXPECT_TRUE(
            expect_family(with_ending(whole, ExprOp::Tanh), options).tactic.starts_with(tactic));
        EXPECT_TRUE(
            expect_family(with_ending(by_column, ExprOp::Erf), options).tactic.starts_with(tactic));
    }
    // Two operands of the result's shape.
    std::vector<std::string> names =
        tactic_names(with_ending({.operands = {"f16[70,72]", "f16[70,72]"}}, ExprOp::Max));
    EXPECT_FALSE(ran(names, staying[0]));
}

TEST(Gemm, EpiloguesOfTilesStoredByTmaAreRepeatedWhereTheyAreShort) {
    auto repeated = [](const Ending& e, ExprOp last, const char* tactic) {
        FamilyOptions options;
        options.tactic = tactic;
        FamilyRun run = expect_family(with_ending(e, last), options);
        constexpr std::string_view define = "#define REPEATED ";
        size_t at = run.texts.at(0).find(define);
        return at == std::string::npos ? 'x' : run.texts[0][at + define.size()];
    };
    Ending bias = {.extents = {200, 264, 72}, .operands = {"f16[264]"}};
    Ending whole = {.extents = {200, 264, 72}, .operands = {"f16[264]", "f16[200,264]", "f32[]"}};
    EXPECT_EQ(repeated(bias, ExprOp::Max, "wgmma_128x192_turns"), '2');
    EXPECT_EQ(repeated(whole, ExprOp::Tanh, "wgmma_128x192_turns"), '1');
    EXPECT_EQ(repeated(whole, ExprOp::Tanh, "wgmma_128x128_turns"), '0');
    EXPECT_EQ(repeated(bias, ExprOp::Max, "wgmma_192x128_turns"), '2');
    EXPECT_EQ(repeated(whole, ExprOp::Tanh, "wgmma_192x128_turns"), '0');
}

TEST(Gemm, BiasPerRowAndScalar) {
    sweep(with_ending({.operands = {"f16[70,1]", "f32[]"}}, ExprOp::Sigmoid));
}

TEST(Gemm, ResidualAndBiasOfOtherTypes) {
    sweep(with_ending({.operands = {"f32[72]", "bf16[70,72]"}}, ExprOp::Tanh));
}

TEST(Gemm, OddWidthEpilogue) {
    sweep(
        with_ending({.extents = {33, 41, 64}, .operands = {"f16[41]", "f16[33,41]"}}, ExprOp::Max));
}

TEST(Gemm, StoresAnotherType) {
    sweep(with_ending({.operands = {"f16[72]"}, .stored = DType::I8}, ExprOp::Round));
    sweep(with_ending({.operands = {}, .stored = DType::F32}, ExprOp::Abs));
    sweep(with_ending({.operands = {"f32[72]"}, .stored = DType::F8E4M3}, ExprOp::Abs));
}

TEST(Gemm, EpilogueBehindSplitDepth) {
    sweep(with_ending({.extents = {20, 40, 1024}, .operands = {"f16[40]", "f16[20,40]"}},
                      ExprOp::Erf));
}

TEST(Gemm, RequantisedIntegers) {
    Graph g;
    Value y = add_product(g, {33, 40, 96}, {.type = DType::I8, .result = DType::I32});
    Value scale = g.add_input("scale", parse_type("f32[40]"));
    Expr body;
    int x = body.cast(body.in(0, DType::I32), DType::F32);
    x = body.op(ExprOp::Round, body.op(ExprOp::Mul, x, body.in(1, DType::F32)));
    body.cast(x, DType::I8, true);
    g.add_output("z", ops::map(g, body, DType::I8, std::vector<Value>{y, scale}));
    sweep(g);
}

TEST(Gemm, FunctionsWithOneAdded) {
    // gelu as exporters spell it, and with tanh: neither loses digits where the function is near
    // -1.
    for (auto [op, factor] :
         {std::pair(ExprOp::Erf, 0.25), {ExprOp::Erf, 0.7071067811865476}, {ExprOp::Tanh, 0.25}}) {
        Graph g;
        Value y = add_product(g, {33, 40, 64}, {});
        Expr body;
        int x = body.in(0, DType::F16);
        int f = body.op(op, body.op(ExprOp::Mul, x, body.constant(DType::F32, factor)));
        int sum = body.op(ExprOp::Add, f, body.constant(DType::F32, 1));
        body.op(ExprOp::Mul, sum, body.op(ExprOp::Mul, x, body.constant(DType::F32, 0.5)));
        g.add_output("z", ops::map(g, body, DType::F16, std::vector<Value>{y}));
        sweep(g);
    }
}

TEST(Gemm, RefusesWhatIsNoEpilogue) {
    Graph g;
    Value y = add_product(g, {4, 1, 8}, {});
    Value wide = g.add_input("wide", parse_type("f16[4,6]"));
    g.add_output("z", ops::add(g, y, wide));
    EXPECT_NE(refusal(g), std::nullopt);
}

TEST(Gemm, TwoLayersThroughTheBackend) {
    // Weights in ONNX's layout, [in, out]: packed once, and fetched before the preceding kernel
    // ends.
    for (int cc : {80, 90}) {
        for (DType t : {DType::F16, DType::F32}) {
            SCOPED_TRACE(str(t, " on ", cc));
            Graph g;
            Value x = g.add_input("x", {t, {2, 20, 64}});
            Value w1 = ops::constant(g, random_elements(t, {64, 96}, 3, -0.2, 0.2));
            Value b1 = ops::constant(g, random_elements(t, {96}, 4));
            Value w2 = ops::constant(g, random_elements(t, {96, 64}, 5, -0.2, 0.2));
            Value h = ops::gelu(g, ops::add(g, ops::matmul(g, x, w1), b1));
            g.add_output("y", ops::add(g, ops::matmul(g, h, w2), x));
            expect_backend(g, {.cc = cc, .tolerance = 4e-3});
        }
    }
}

TEST(Gemm, PrefersTheRightTactic) {
    auto best = [](Extents x, int cc) { return tactic_names(product(x), {.cc = cc})[0]; };
    EXPECT_TRUE(best({128, 3072, 768}, 90).starts_with("wgmma_64x"));
    EXPECT_TRUE(best({4096, 4096, 4096}, 90).starts_with("wgmma_"));
    // Three tiles for every SM, whatever follows.
    EXPECT_EQ(best({12288, 768, 768}, 90), "wgmma_128x192_turns_s1");
    // Measured, in one wave and in several.
    EXPECT_EQ(best({4096, 768, 3072}, 90), "wgmma_128x192_turns_s1");
    EXPECT_EQ(best({6304, 2304, 768}, 90), "wgmma_128x128_turns_s1");
    EXPECT_EQ(best({6304, 3072, 768}, 90), "wgmma_192x128_turns_s1");
    EXPECT_TRUE(best({4096, 4096, 4096}, 80).starts_with("mma_128x128"));
    EXPECT_TRUE(best({1, 4096, 4096}, 90).starts_with("gemv"));
    // Few tiles and a long depth: split.
    EXPECT_FALSE(best({49, 512, 4608}, 90).ends_with("_s1"));
}

TEST(Dot, LongProductsOfFewBlocksFillAnSm) {
    auto stages = [](const std::string& text) {
        size_t at = text.find("#define ST ");
        return at == std::string::npos ? 0 : std::stoi(text.substr(at + 11));
    };
    auto run = [&](const std::string& a, const std::string& b, const std::string& tactic) {
        Graph g;
        Value x = g.add_input("a", parse_type(a));
        g.add_output("y", ops::matmul(g, x, g.add_input("b", parse_type(b))));
        FamilyOptions o;
        o.cc = 90;
        o.tactic = tactic;
        o.tolerance = 2e-3;
        FamilyRun r = expect_family(g, o);
        EXPECT_EQ(r.tactic, tactic);
        return stages(r.texts.at(0));
    };
    EXPECT_EQ(run("f16[70,1000]", "f16[1000,72]", "wgmma_64x64_s1"), 12);
    EXPECT_EQ(run("f16[70,1000]", "f16[1000,72]", "wgmma_64x32_s1"), 16);
    EXPECT_EQ(run("f16[70,1480]", "f16[1480,72]", "wgmma_64x64_s3"), 12);
    EXPECT_EQ(run("f16[70,384]", "f16[384,72]", "wgmma_64x64_s1"), 6) << "six steps";
    EXPECT_EQ(run("f16[70,1000]", "f16[1000,72]", "wgmma_64x64_s3"), 6) << "six steps a split";
}

} // namespace
} // namespace ingot::test
