// SPDX-License-Identifier: Apache-2.0
// Convolutions of bytes and f8, and those that store them.
#include "kernels/conv_graphs.h"
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

/// sums * scale per channel (+ residual).
Graph dequantised(const ConvCase& c, bool residual, DType stored = DType::F16) {
    Graph g;
    Value y = add_conv(g, c);
    const Type& t = g.type(y);
    Dims channels(t.dims.size() - 1, Dim(1));
    channels[0] = t.dims[1];
    Values in = {y, g.add_input("scale", {DType::F32, channels})};
    Expr body;
    int v = body.in(0, t.dtype);
    v = is_float(t.dtype) ? v : body.cast(v, DType::F32);
    v = body.op(ExprOp::Mul, v, body.in(1, DType::F32));
    if (residual) {
        DType type = bit_width(stored) == 8 ? stored : DType::F16;
        in.push_back(g.add_input("residual", {type, t.dims}));
        int r = body.in(2, type);
        v = body.op(ExprOp::Add, v, is_integer(type) ? body.cast(r, DType::F32) : r);
    }
    if (is_integer(stored)) {
        body.cast(body.op(ExprOp::Round, v), stored, true);
    }
    g.add_output("z", ops::map(g, body, stored, in));
    return g;
}

/// Slabs of 128 channels, of which the second is a partial one; windows two apart and adjacent;
/// groups whose last slab reaches into the next one.
TEST(ConvBytes, ByWgmma) {
    for (auto [x, w] : {std::pair("i8", "i8"), {"u8", "i8"}, {"f8e4m3", "f8e4m3"}}) {
        SCOPED_TRACE(x);
        DType result = w == std::string_view("i8") ? DType::I32 : DType::F32;
        ConvCase c{.x = str(x, "[2,144,9,11]"), .w = str(w, "[24,144,3,3]"), .result = result};
        FamilyOptions options;
        options.low = -20;
        options.high = 20;
        std::vector<std::string> names = sweep(with_residual(c), options);
        for (std::string_view prefix :
             {"conv_wgmma_64x64_s1", "conv_wgmma_64x64_s8", "conv_wgmma_128x128_s1"}) {
            EXPECT_TRUE(ran(names, prefix)) << prefix;
        }
        options.tactic = "conv_wgmma_64x64_s1";
        for (const ConvCase& other : {ConvCase{.x = str(x, "[2,128,10,14]"),
                                     .w = str(w, "[24,128,3,3]"),
                                     .strides = {2, 2},
                                     .result = result},
                                      ConvCase{.x = str(x, "[2,16,12,20]"),
                                      .w = str(w, "[40,16,4,4]"),
                                      .strides = {4, 4},
                                      .low = {0, 0},
                                      .high = {0, 0},
                                      .result = result},
                                      ConvCase{.x = str(x, "[1,160,7,8]"),
                                      .w = str(w, "[34,80,3,3]"),
                                      .groups = 2,
                                      .result = result}}) {
            EXPECT_EQ(expect_family(conv_graph(other), options).tactic, options.tactic);
        }
        // Rows of channels that TMA cannot address.
        EXPECT_FALSE(
            ran(tactic_names(conv_graph(
                    {.x = str(x, "[1,24,9,9]"), .w = str(w, "[8,24,3,3]"), .result = result})),
                "conv_wgmma"));
    }
}

TEST(ConvBytes, DequantisedInTheEpilogue) {
    for (bool residual : {false, true}) {
        ConvCase whole{.x = "i8[3,80,9,11]", .w = "i8[72,80,3,3]", .result = DType::I32};
        FamilyOptions inside; // channels of the residual, as TMA reads them
        inside.orders = {{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2}, {0, 2, 3, 1}};
        inside.orders.resize(residual ? 4 : 3);
        EXPECT_TRUE(ran(sweep(dequantised(whole, residual), inside), "conv_wgmma_128x128_turns"));
        ConvCase eight{.x = "f8e4m3[3,80,9,11]", .w = "f8e4m3[72,80,3,3]", .result = DType::F32};
        EXPECT_TRUE(ran(sweep(dequantised(eight, residual)), "conv_wgmma_128x192"));
    }
    FamilyOptions options;
    for (const char* tactic : {"conv_wgmma_128x128_turns", "conv_wgmma_128x160_turns"}) {
        options.tactic = tactic;
        ConvCase c{.x = "i8[3,80,9,11]", .w = "i8[176,80,3,3]", .result = DType::I32};
        for (DType stored : {DType::I8, DType::U8, DType::F8E4M3}) {
            options.orders.clear();
            EXPECT_TRUE(
                expect_family(dequantised(c, false, stored), options).tactic.starts_with(tactic));
            if (options.tactic != "conv_wgmma_128x128_turns") {
                continue; // with a residual it would spill
            }
            options.orders = {{0, 2, 3, 1}, {0, 2, 3, 1}, {0, 1, 2}, {0, 2, 3, 1}};
            EXPECT_TRUE(
                expect_family(dequantised(c, true, stored), options).tactic.starts_with(tactic));
        }
        options.orders.clear();
    }
    options.tactic = "conv_wgmma_128x128_turns";
    ConvCase eight{.x = "f8e4m3[3,80,9,11]", .w = "f8e4m3[176,80,3,3]", .result = DType::F32};
    Graph g = dequantised(eight, false, DType::F8E4M3);
    EXPECT_TRUE(expect_family(g, options).tactic.starts_with(options.tactic));
}

TEST(ConvBytes, FloatsQuantisedInTheEpilogue) {
    ConvCase first{.x = "f16[2,3,20,24]",
                   .w = "f16[64,3,7,7]",
                   .strides = {2, 2},
                   .low = {3, 3},
                   .high = {3, 3},
                   .result = DType::F32};
    FamilyOptions options;
    for (const char* tactic : {"conv_stem_4x16x64", "conv_stem_8x16x64", "conv_stem_4x16x32"}) {
        options.tactic = tactic;
        for (DType stored : {DType::I8, DType::U8, DType::F8E4M3}) {
            options.tolerance = is_integer(stored) ? 1 : -1; // about halves
            FamilyRun r = expect_family(dequantised(first, false, stored), options);
            EXPECT_EQ(r.tactic, tactic);
            EXPECT_NE(r.texts.at(0).find("#define IN_REGISTERS 1"), std::string::npos);
        }
    }
    ConvCase later{.x = "f16[2,64,17,20]", .w = "f16[64,64,3,3]", .result = DType::F32};
    std::vector<std::string> names = tactic_names(dequantised(later, false, DType::I8));
    EXPECT_TRUE(ran(names, "conv_wgmma_64x64_s1"));
    EXPECT_FALSE(ran(names, "conv_halo")); // stores 16 bits
}

} // namespace
} // namespace ingot::test
