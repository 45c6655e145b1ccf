// SPDX-License-Identifier: Apache-2.0
// dot of 8-bit integers and floats, and the epilogues of quantised products.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

using Extents = std::array<int64_t, 3>; // rows, columns, depth

struct Product {
    DType type = DType::I8;
    DType result = DType::I32;
    int64_t batch = 0;
};

/// Adds a [m,k] * b [n,k] with graph inputs.
Value add_product(Graph& g, Extents x, DType a, DType b, DType sum, int64_t batch) {
    Dot d;
    d.dtype = sum;
    Dims rows = {x[0], x[2]};
    Dims columns = {x[1], x[2]};
    d.a_contract = d.b_contract = {batch > 0 ? 2 : 1};
    if (batch > 0) {
        rows.insert(rows.begin(), batch);
        columns.insert(columns.begin(), batch);
        d.a_batch = d.b_batch = {0};
    }
    Value va = g.add_input("a", {a, rows});
    Value vb = g.add_input("b", {b, columns});
    return ops::dot(g, d, va, vb);
}

Graph product(Extents x, Product p) {
    Graph g;
    g.add_output("y", add_product(g, x, p.type, p.type, p.result, p.batch));
    return g;
}

/// Tiles stored by TMA.
constexpr const char* staying[] = {"wgmma_128x128_turns", "wgmma_128x160_turns",
                                   "wgmma_128x192_turns", "wgmma_192x128_turns"};

/// Types of a product of bytes, and where it is stored by a map.
struct Bytes {
    DType a = DType::I8;
    DType b = DType::I8;
    DType stored = DType::F16;
    bool residual = false;
    int64_t batch = 0;
    double low = -128; // of I8
};

/// sums * scale per column + bias per column (+ residual), as a quantised product is lowered;
/// rounded and saturated where a byte is stored.
Graph dequantised(Extents x, Bytes t) {
    Graph g;
    DType sum = is_float(t.a) ? DType::F32 : DType::I32;
    Value y = add_product(g, x, t.a, t.b, sum, t.batch);
    Values in = {y, g.add_input("scale", {DType::F32, {x[1]}}),
                 g.add_input("bias", {DType::F32, {x[1]}})};
    Expr body;
    int v = body.in(0, sum);
    v = is_float(t.a) ? v : body.cast(v, DType::F32);
    v = body.op(ExprOp::Mul, v, body.in(1, DType::F32));
    v = body.op(ExprOp::Add, v, body.in(2, DType::F32));
    if (t.residual) {
        in.push_back(g.add_input("residual", {t.stored, g.type(y).dims}));
        int r = body.in(3, t.stored);
        v = body.op(ExprOp::Add, v, is_integer(t.stored) ? body.cast(r, DType::F32) : r);
    }
    if (is_integer(t.stored)) {
        v = body.op(ExprOp::Max, v, body.constant(DType::F32, -100)); // an activation
        double low = t.stored == DType::I8 ? t.low : 0;
        double high = t.stored == DType::I8 ? 127 : 255;
        v = body.op(ExprOp::Max, body.op(ExprOp::Round, v), body.constant(DType::F32, low));
        v = body.cast(body.op(ExprOp::Min, v, body.constant(DType::F32, high)), t.stored, true);
    }
    g.add_output("z", ops::map(g, body, t.stored, in));
    return g;
}

/// Integers of the whole range.
FamilyOptions whole_range(DType t) {
    FamilyOptions options;
    if (is_integer(t)) {
        options.low = t == DType::U8 ? 0 : -128;
        options.high = t == DType::U8 ? 255 : 127;
    }
    return options;
}

TEST(GemmBytes, IntegersByWgmma) {
    Product whole = {.type = DType::I8, .result = DType::I32};
    FamilyOptions options = whole_range(DType::I8);
    std::vector<std::string> names = sweep(product({70, 72, 272}, whole), options);
    for (std::string_view prefix : {"wgmma_64x64", "wgmma_128x128_s1", "wgmma_128x128_r2",
                                    "wgmma_128x128_pp", "wgmma_256x160", "mma_64x64"}) {
        EXPECT_TRUE(ran(names, prefix)) << prefix;
    }
    // Parts of the depth, the last slab a partial one; an odd width.
    EXPECT_TRUE(ran(sweep(product({40, 57, 2192}, whole), options), "wgmma_64x32_s8"));
    // Rows of 136 bytes, no multiple of 16: TMA cannot address them.
    names = tactic_names(product({40, 56, 136}, whole));
    EXPECT_FALSE(ran(names, "wgmma"));
    EXPECT_TRUE(ran(names, "mma"));
    for (const char* tactic : {"wgmma_128x256", "wgmma_128x128_pp", "wgmma_64x64_s4"}) {
        options.tactic = tactic;
        EXPECT_TRUE(
            expect_family(product({300, 408, 1168}, whole), options).tactic.starts_with(tactic));
    }
    options.tactic = {};
    whole.batch = 3;
    EXPECT_TRUE(ran(sweep(product({33, 40, 48}, whole), options), "wgmma"));
    EXPECT_TRUE(
        tactic_names(product({4096, 1024, 1024}, {.type = DType::I8, .result = DType::I32}))[0]
            .starts_with("wgmma"));
}

TEST(GemmBytes, UnsignedIntegersByWgmma) {
    for (DType b : {DType::I8, DType::U8}) {
        Graph g = dequantised({70, 72, 144}, {.a = DType::U8, .b = b, .stored = DType::F32});
        EXPECT_TRUE(ran(sweep(g, whole_range(DType::U8)), "wgmma_64x64"));
    }
}

/// f32 sums of 8-bit floats: exact products, a slab at a time.
TEST(GemmBytes, EightBitFloatsByWgmma) {
    Product eight = {.type = DType::F8E4M3, .result = DType::F32};
    std::vector<std::string> names = sweep(product({70, 72, 272}, eight));
    for (std::string_view prefix :
         {"wgmma_64x64", "wgmma_64x144", "wgmma_128x128_s1", "wgmma_128x192", "wgmma_128x64_r2",
          "wgmma_64x96_s1", "mma_64x64", "mma_128x64"}) {
        EXPECT_TRUE(ran(names, prefix)) << prefix;
    }
    // Two sets of sums do not fit.
    EXPECT_FALSE(ran(names, "wgmma_128x256") || ran(names, "wgmma_256x160") ||
                 ran(names, "wgmma_128x160") || ran(names, "wgmma_128x128_r2"));
    EXPECT_TRUE(ran(sweep(product({40, 57, 2192}, eight)), "wgmma_64x32_s8"));
    FamilyOptions options;
    for (const char* tactic : {"wgmma_128x192", "wgmma_128x128_s1", "wgmma_64x96_s2"}) {
        options.tactic = tactic;
        FamilyRun r = expect_family(product({300, 408, 1168}, eight), options);
        EXPECT_TRUE(r.tactic.starts_with(tactic));
        EXPECT_NE(r.texts[0].find("#define PARTS"), std::string::npos);
    }
    options.tactic = "wgmma_64x64_s1"; // adds one slab while the next one is multiplied
    for (int64_t depth : {128, 256, 384, 400}) {
        FamilyRun r = expect_family(product({65, 40, depth}, eight), options);
        EXPECT_NE(r.texts[0].find("#define PARTS"), std::string::npos);
    }
    eight.batch = 3;
    eight.result = DType::F16;
    EXPECT_TRUE(ran(sweep(product({33, 40, 48}, eight)), "wgmma"));
    // Before 8.9 there are no such instructions.
    EXPECT_FALSE(ran(tactic_names(product({70, 72, 272}, eight), {.cc = 86}), "mma"));
    EXPECT_TRUE(ran(tactic_names(product({70, 72, 272}, eight), {.cc = 89}), "mma"));
}

TEST(GemmBytes, DequantisedInTheEpilogue) {
    for (Bytes t :
         {Bytes{}, Bytes{.stored = DType::BF16, .residual = true},
          Bytes{.a = DType::U8, .residual = true}, Bytes{.stored = DType::I8},
          Bytes{.stored = DType::I8, .residual = true, .low = -127},
          Bytes{.a = DType::U8, .stored = DType::U8}, Bytes{.a = DType::F8E4M3, .b = DType::F8E4M3},
          Bytes{.a = DType::F8E4M3, .b = DType::F8E4M3, .residual = true},
          Bytes{.a = DType::F8E4M3, .b = DType::F8E4M3, .stored = DType::F8E4M3}}) {
        SCOPED_TRACE(str(t.a, " by ", t.b, " to ", t.stored, " residual ", t.residual));
        std::vector<std::string> names = sweep(dequantised({70, 80, 144}, t));
        EXPECT_TRUE(ran(names, "wgmma_64x64") && ran(names, "wgmma_128x128_s1"));
        EXPECT_TRUE(ran(names, "wgmma_128x128_turns"));
        // Sums take all registers.
        EXPECT_EQ(ran(names, "wgmma_128x192_turns"), is_integer(t.a) && bit_width(t.stored) == 16);
    }
    FamilyOptions options;
    for (const char* tactic : staying) {
        options.tactic = tactic;
        for (bool residual : {false, true}) {
            Graph g = dequantised({300, 408, 336}, {.a = DType::U8, .residual = residual});
            EXPECT_TRUE(expect_family(g, options).tactic.starts_with(tactic));
        }
        // Panels of 128 columns, and narrower last ones.
        for (DType stored : {DType::I8, DType::U8, DType::F8E4M3}) {
            if (options.tactic == staying[2] || options.tactic == staying[3]) {
                continue; // few registers are left beside so many sums
            }
            for (bool residual : {false, true}) {
                if (residual && options.tactic != staying[0]) { // would spill
                    continue;
                }
                Bytes t{.stored = stored, .residual = residual};
                EXPECT_TRUE(expect_family(dequantised({300, 400, 336}, t), options)
                                .tactic.starts_with(tactic));
            }
        }
    }
    options.tactic = "wgmma_128x128_turns";
    for (DType stored : {DType::F16, DType::F8E4M3}) {
        Bytes eight{.a = DType::F8E4M3, .b = DType::F8E4M3, .stored = stored};
        EXPECT_EQ(expect_family(dequantised({300, 400, 336}, eight), options).tactic,
                  "wgmma_128x128_turns_s1");
    }
    options.tactic = "wgmma_128x160_turns";
    for (DType stored : {DType::F16, DType::U8}) {
        Graph g = dequantised({20, 48, 208}, {.stored = stored, .batch = 270});
        EXPECT_EQ(expect_family(g, options).tactic, "wgmma_128x160_turns_s1");
    }
    // Rows of results that TMA cannot address.
    EXPECT_FALSE(
        ran(tactic_names(dequantised({40, 40, 64}, {.stored = DType::I8})), "wgmma_128x128_turns"));
    EXPECT_EQ(expect_family(dequantised({20, 24, 208}, {.batch = 270}), options).tactic,
              "wgmma_128x160_turns_s1");
}

} // namespace
} // namespace ingot::test
