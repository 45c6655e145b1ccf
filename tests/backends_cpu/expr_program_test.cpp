// SPDX-License-Identifier: Apache-2.0
// Expressions as lists of vector loops: those that one loop computes, and those that are computed
// once for many blocks.
#include "backends/cpu/expr_program.h"
#include "backends_cpu/compare.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace ingot {

namespace {

/// f32(sums - zero * columns) * (a * b), as products of quantised operands end.
Expr scaled_sums() {
    Expr e;
    int sums = e.in(0, DType::I32);
    int zero = e.cast(e.in(1, DType::U8), DType::I32);
    int columns = e.in(2, DType::I32);
    int centred = e.op(ExprOp::Sub, sums, e.op(ExprOp::Mul, zero, columns));
    int scale = e.op(ExprOp::Mul, e.in(3, DType::F32), e.in(4, DType::F32));
    e.op(ExprOp::Mul, e.cast(centred, DType::F32), scale);
    return e;
}

TEST(CpuExprProgram, CentredSumsAreOneLoop) {
    // The zero point's cast, centred sums, the scales' product and that with the sums.
    EXPECT_EQ(cpu::ExprProgram(scaled_sums()).instructions(), 4);
}

TEST(CpuExprProgram, UniformOperandsAreComputedOnce) {
    cpu::ExprProgram p(scaled_sums(), {false, true, false, true, true});
    EXPECT_EQ(p.instructions(), 2);
    constexpr int64_t n = 37;
    std::vector<std::byte> memory(static_cast<size_t>(p.work_bytes()) + 64);
    void* work = memory.data();
    size_t space = memory.size();
    std::align(64, static_cast<size_t>(p.work_bytes()), work, space);
    std::array<int32_t, n> sums{};
    std::array<uint8_t, n> zero{};
    std::array<int32_t, n> columns{};
    std::array<float, n> a{};
    std::array<float, n> b{};
    std::array<float, n> out{};
    std::array<const void*, 5> in = {sums.data(), zero.data(), columns.data(), a.data(), b.data()};
    for (int round = 0; round < 2; ++round) { // with other uniform values in the second
        zero.fill(static_cast<uint8_t>(100 + round));
        a.fill(0.5f + static_cast<float>(round));
        b.fill(0.25f);
        p.run_uniform(in.data(), n, static_cast<std::byte*>(work));
        for (int32_t block = 0; block < 3; ++block) {
            for (int32_t i = 0; i < n; ++i) {
                sums[static_cast<size_t>(i)] = 1000 * block - 77 * i;
                columns[static_cast<size_t>(i)] = i * i - 300;
            }
            int64_t count = block == 2 ? 5 : n;
            p.run(in.data(), out.data(), count, static_cast<std::byte*>(work));
            for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
                EXPECT_EQ(out[i], static_cast<float>(sums[i] - zero[i] * columns[i]) * a[i] * b[i]);
            }
        }
    }
}

/// Maps whose uniform operands are of the whole result, or of parts of it; the last blocks are
/// shorter than the others.
TEST(CpuExprProgram, MapsOfUniformOperands) {
    for (const Dims& part : {Dims{}, Dims{3, 1, 1}, Dims{3, 5, 1}, Dims{1, 5, 1}}) {
        for (int64_t columns : {7, 700, 2500}) {
            SCOPED_TRACE(testing::Message() << "parts " << part.size() << ", columns " << columns);
            Graph g;
            Value x = g.add_input("x", {DType::I32, {3, 5, columns}});
            Value zero = ops::cast(g, g.add_input("zero", {DType::U8, part}), DType::I32);
            Value c = g.add_input("c", {DType::I32, {columns}});
            Value scale = ops::exp(g, g.add_input("scale", {DType::F32, part}));
            Value y = ops::cast(g, ops::sub(g, x, ops::mul(g, zero, c)), DType::F32);
            g.add_output("y", ops::mul(g, y, ops::mul(g, scale, 0.37)));
            test::expect_same_as_evaluator(g);
        }
    }
}

TEST(CpuExprProgram, QuantisationsOfNanAndInfinity) {
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<double> values = {0, NAN, inf, -inf, 1e30, -1e30, 0.5, 1.5, -0.5, 127.5, 255};
    for (DType t : {DType::U8, DType::I8}) {
        for (bool shifted : {false, true}) {
            SCOPED_TRACE(testing::Message() << name(t) << ' ' << shifted);
            Graph g;
            auto n = static_cast<int64_t>(values.size());
            Value x = g.add_input("x", {DType::F32, {n}});
            Value zero = shifted ? ops::scalar(g, t, 3) : Value{};
            g.add_output("q", ops::quantize(g, {0, 0, t}, x, ops::scalar(g, DType::F32, 1), zero));
            test::expect_same_as_evaluator(g,
                                           std::array{Tensor::of<double>(DType::F32, {n}, values)});
        }
    }
}

TEST(CpuExprProgram, CentredSumsWrap) {
    Graph g;
    Value x = g.add_input("x", {DType::I32, {40}});
    Value y = g.add_input("y", {DType::I32, {40}});
    g.add_output("z", ops::cast(g, ops::sub(g, x, ops::mul(g, y, y)), DType::F32));
    Tensor a = Tensor::empty(DType::I32, {40});
    Tensor b = Tensor::empty(DType::I32, {40});
    for (int64_t i = 0; i < 40; ++i) {
        a.set_i64(i, INT32_MAX - 3 * i);
        b.set_i64(i, 46341 + 1000 * i);
    }
    test::expect_same_as_evaluator(g, std::array{a, b});
}

} // namespace

} // namespace ingot
