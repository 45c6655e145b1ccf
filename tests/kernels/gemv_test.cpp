// SPDX-License-Identifier: Apache-2.0
// Products with few rows or columns: every element type and count of rows.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

Graph product(int64_t m, int64_t n, int64_t k, DType a, DType b, DType result) {
    Graph g;
    Dot d;
    d.a_contract = {1};
    d.b_contract = {1};
    d.dtype = result;
    Value x = g.add_input("x", {a, {m, k}});
    Value w = g.add_input("w", {b, {n, k}});
    g.add_output("y", ops::dot(g, d, x, w));
    return g;
}

void expect_gemv(const Graph& g) {
    for (std::string_view tactic : {"gemv_s1", "gemv_s8"}) {
        FamilyOptions options;
        options.tactic = tactic;
        EXPECT_EQ(expect_family(g, options).tactic, tactic);
    }
}

TEST(Gemv, FloatsOfEveryWidth) {
    for (DType t : {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2}) {
        for (int64_t m : {1, 2, 3, bit_width(t) == 8 ? 4 : 8}) {
            SCOPED_TRACE(str(t, ", ", m, " rows"));
            expect_gemv(product(m, 21, 1056, t, t, DType::F32));
        }
    }
}

TEST(Gemv, RingsOfEveryWidth) {
    // A whole chunk of 2048 bytes of each column, and a short one; the last unit is half a one.
    for (DType t : {DType::F32, DType::F16, DType::F8E4M3}) {
        for (int64_t m : {1, bit_width(t) == 8 ? 2 : 3}) {
            SCOPED_TRACE(str(t, ", ", m, " rows"));
            int64_t k = 16384 / bit_width(t) + 48;
            FamilyOptions options;
            options.tactic = m == 1 ? "gemv_pipelined_s6_b1" : "gemv_pipelined_s3_b1";
            int64_t n = ((1 << 22) / (k * bit_width(t)) + 2) | 1;
            Graph g = product(m, n, k, t, t, DType::F32);
            EXPECT_EQ(expect_family(g, options).tactic, options.tactic);
        }
    }
    // Less shared memory.
    FamilyOptions options{.cc = 120, .tactic = "gemv_pipelined_s2_b1"};
    EXPECT_EQ(
        expect_family(product(1, 300, 1056, DType::F16, DType::F16, DType::F16), options).tactic,
        options.tactic);
}

TEST(Gemv, RowsThatThreadsTakeInManyParts) {
    // Four parts at once, and a fifth for some threads.
    FamilyOptions options{.tactic = "gemv_pipelined_s3_b1"};
    Graph g = product(1, 29, 9304, DType::F16, DType::F16, DType::F32);
    EXPECT_EQ(expect_family(g, options).tactic, options.tactic);
}

TEST(Gemv, ShortDepths) {
    struct Case {
        int64_t m, n, k;
        DType type, result;
    };
    for (const Case& c : {Case{1, 300, 6, DType::F16, DType::F16},
                          {33, 17, 28, DType::F16, DType::F32},
                          {2, 40, 45, DType::F32, DType::F32},
                          {3, 9, 5, DType::I8, DType::I32},
                          {1, 70, 11, DType::F64, DType::F64}}) {
        SCOPED_TRACE(str(c.type, ", depth ", c.k));
        Graph g = product(c.m, c.n, c.k, c.type, c.type, c.result);
        EXPECT_EQ(expect_family(g, {.tactic = "short"}).tactic, "short");
    }
    EXPECT_EQ(tactic_names(product(1, 300, 6, DType::F16, DType::F16, DType::F16))[0], "short");
}

/// Matrices of 4 x 36 with vectors: a kernel of each pixel, whose elements lie a picture apart.
Graph kernels_of_pixels(int64_t pixels) {
    Graph g;
    Value a = g.add_input("a", {DType::F16, to_dims({pixels, 4, 36})});
    Value b = g.add_input("b", {DType::F16, to_dims({36, pixels})});
    g.add_output("y", ops::dot(g, Dot{{0}, {1}, {2}, {0}, DType::F16}, a, b));
    return g;
}

TEST(Gemv, ManyTinyMatrices) {
    EXPECT_EQ(expect_family(kernels_of_pixels(700), {.tactic = "short"}).tactic, "short");
    EXPECT_EQ(tactic_names(kernels_of_pixels(1 << 19))[0], "short");
    expect_family(product(3, 5, 0, DType::F32, DType::F32, DType::F32)); // without a depth
}

TEST(Gemv, BytesOfEitherSign) {
    for (DType a : {DType::I8, DType::U8}) {
        for (DType b : {DType::I8, DType::U8}) {
            for (int64_t m : {1, 5}) {
                SCOPED_TRACE(str(a, " by ", b, ", ", m, " rows"));
                FamilyOptions options;
                options.low = -128;
                options.high = 255;
                options.tactic = "gemv_s2";
                options.tolerance = 0;
                expect_family(product(m, 13, 80, a, b, DType::I32), options);
            }
        }
    }
}

TEST(Gemv, EveryCodeOfEightBitFloats) {
    for (DType t : {DType::F8E4M3, DType::F8E5M2}) {
        // One code a row against ones: the sum is the code's value.
        Tensor ones = Tensor::empty(t, {1, 16});
        Tensor codes = Tensor::empty(t, {256, 16});
        for (int64_t i = 0; i < 16; ++i) {
            ones.set_f64(i, i == 0 ? 1 : 0);
        }
        for (size_t i = 0; i < 256 * 16; ++i) {
            codes.mutable_bytes()[i] = static_cast<std::byte>(i % 16 == 0 ? i / 16 : 0);
        }
        FamilyOptions options;
        options.tactic = "gemv_s1";
        options.tolerance = 0;
        options.inputs = {ones, codes};
        // Zero times infinity and NaN stay out of the other columns, as each has a row of its own.
        expect_family(product(1, 256, 16, t, t, DType::F32), options);
    }
}

} // namespace
} // namespace ingot::test
