// SPDX-License-Identifier: Apache-2.0
// Products of bytes are exact on every instruction set, the largest ones too.
#include "backends/cpu/onednn_library.h"
#include "backends_cpu/compare.h"
#include "backends_cpu/vector_loops.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <array>

namespace ingot {

namespace {

using test::expect_same_as_evaluator;

/// Bytes of the whole range, with many of its ends.
Tensor extreme_bytes(DType t, const Shape& shape, unsigned seed) {
    std::mt19937 random(seed);
    Tensor out = Tensor::empty(t, shape);
    int64_t low = t == DType::I8 ? -128 : 0;
    std::uniform_int_distribution<int64_t> any(0, 255);
    for (int64_t i = 0; i < out.count(); ++i) {
        int64_t x = any(random);
        out.set_i64(i, low + (x < 96 ? 0 : x < 192 ? 255 : x));
    }
    return out;
}

constexpr std::array byte_types = {DType::U8, DType::I8};

TEST(CpuBytes, ProductsOfEveryPairOfTypesAreExact) {
    for (DType left : byte_types) {
        for (DType right : byte_types) {
            for (int64_t k : {1, 2, 7, 64, 1023}) {
                for (bool constant : {false, true}) {
                    SCOPED_TRACE(testing::Message() << name(left) << " by " << name(right)
                                                    << ", depth " << k << ' ' << constant);
                    Graph g;
                    std::vector<Tensor> inputs = {extreme_bytes(left, {19, k}, 1)};
                    Tensor w = extreme_bytes(right, {k, 37}, 2);
                    Value x = g.add_input("x", {left, {19, k}});
                    Value y = constant ? ops::constant(g, w) : g.add_input("y", {right, {k, 37}});
                    if (!constant) {
                        inputs.push_back(w);
                    }
                    g.add_output("z", ops::matmul(g, x, y, DType::I32));
                    expect_same_as_evaluator(g, inputs);
                }
            }
        }
    }
}

TEST(CpuBytes, TransposedAndBatchedOnesToo) {
    Graph g;
    Value x = g.add_input("x", {DType::U8, {3, 9, 45}});
    Value y = g.add_input("y", {DType::I8, {3, 21, 45}});
    g.add_output("z", ops::matmul(g, x, ops::transpose_last(g, y), DType::I32));
    expect_same_as_evaluator(g, std::vector{extreme_bytes(DType::U8, {3, 9, 45}, 4),
                                            extreme_bytes(DType::I8, {3, 21, 45}, 5)});
}

TEST(CpuBytes, ConvolutionsAreExact) {
    for (int64_t groups : {1, 3}) {
        Graph g;
        Value x = g.add_input("x", {DType::U8, {2, 9, 7, 8}});
        Tensor w = extreme_bytes(DType::I8, {12, 9 / groups, 3, 3}, 6);
        const ops::Conv a{{1, 2}, {1, 1}, {1, 0}, {1, 1}, groups, DType::I32};
        g.add_output("y", ops::conv(g, a, x, ops::constant(g, w)));
        expect_same_as_evaluator(g, std::vector{extreme_bytes(DType::U8, {2, 9, 7, 8}, 7)});
    }
}

TEST(CpuBytes, SumsWrapAsThoseOf32BitsDo) {
    // 255 * 255 * 2 for each of 70,000 pairs: far above 2^31.
    constexpr int64_t pairs = 70000;
    for (cpu::InstructionSet s : test::instruction_sets()) {
        SCOPED_TRACE(cpu::name(s));
        const cpu::VectorLoops& loops = cpu::vector_loops(s);
        for (int64_t rows = 1; rows <= loops.tile.rows; ++rows) {
            auto n = static_cast<size_t>(loops.tile.columns);
            std::vector<uint32_t> a(static_cast<size_t>(rows * pairs), 255U | 255U << 16);
            std::vector<uint32_t> b(static_cast<size_t>(pairs) * n, 255U | 255U << 16);
            std::vector<uint32_t> c(static_cast<size_t>(rows) * n);
            loops.byte_tile(rows, pairs, a.data(), b.data(), c.data(), loops.tile.columns);
            EXPECT_EQ(
                c, std::vector<uint32_t>(c.size(), static_cast<uint32_t>(255LL * 255 * 2 * pairs)));
        }
    }
}

TEST(CpuBytes, FourAtATimeNothingSaturates) {
    const cpu::VectorLoops& loops = cpu::vector_loops();
    if (loops.quad_tile == nullptr) {
        GTEST_SKIP() << "no instructions that multiply four bytes exactly";
    }
    // 255 * -128 four times for each of 20,000 quads: two would saturate 16 bits, all wrap 32.
    constexpr int64_t quads = 20000;
    auto n = static_cast<size_t>(loops.tile.columns);
    for (int64_t rows = 1; rows <= loops.tile.rows; ++rows) {
        std::vector<uint32_t> a(static_cast<size_t>(rows * quads), 0xFFFFFFFF);
        std::vector<uint32_t> b(static_cast<size_t>(quads) * n, 0x80808080);
        std::vector<uint32_t> c(static_cast<size_t>(rows) * n);
        loops.quad_tile(rows, quads, a.data(), b.data(), c.data(), loops.tile.columns);
        EXPECT_EQ(c,
                  std::vector<uint32_t>(c.size(), static_cast<uint32_t>(-255LL * 128 * 4 * quads)));
    }
}

TEST(CpuBytes, ResultsWithGapsRunOnOwnLoops) {
    if (cpu::vector_loops().quad_tile == nullptr) {
        GTEST_SKIP() << "no instructions that multiply four bytes exactly";
    }
    Graph g;
    Value x = g.add_input("x", {DType::U8, {66, 131}});
    std::array<Value, 2> halves;
    for (unsigned i = 0; i < 2; ++i) {
        Value w = ops::constant(g, extreme_bytes(DType::I8, {131, 96}, i));
        halves[i] = ops::matmul(g, x, w, DType::I32);
    }
    g.add_output("y", ops::concat(g, halves, 1));
    for (const StepInfo& s : test::planned_steps(g)) {
        EXPECT_EQ(s.implementation, "own") << s.kernel;
    }
    expect_same_as_evaluator(g, std::vector{extreme_bytes(DType::U8, {66, 131}, 3)});
}

TEST(CpuBytes, FewRowsRunOnOwnLoops) {
    if (cpu::vector_loops().quad_tile == nullptr) {
        GTEST_SKIP() << "no instructions that multiply four bytes exactly";
    }
    for (int64_t rows : {2, 30}) {
        Graph g;
        Value x = g.add_input("x", {DType::U8, {rows, 256}});
        Value w = ops::constant(g, extreme_bytes(DType::I8, {256, 512}, 1));
        g.add_output("y", ops::matmul(g, x, w, DType::I32));
        std::vector<StepInfo> steps = test::planned_steps(g);
        ASSERT_EQ(steps.size(), 1U);
        bool library = cpu::onednn_library() != nullptr && rows > 14;
        EXPECT_EQ(steps[0].implementation == "own", !library) << steps[0].implementation;
    }
}

} // namespace

} // namespace ingot
