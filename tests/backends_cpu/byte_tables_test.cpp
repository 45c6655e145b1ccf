// SPDX-License-Identifier: Apache-2.0
// Functions of one byte are tables: alone, behind sums, and within larger expressions.
#include "backends/cpu/byte_tables.h"
#include "backends/cpu/expr_program.h"
#include "backends/cpu/onednn_library.h"
#include "backends_cpu/compare.h"
#include "backends_cpu/vector_loops.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

namespace ingot {

namespace {

using test::expect_same_as_evaluator;

TEST(CpuByteTables, LookupsFindEveryEntryAndWriteNoFurther) {
    std::mt19937 random(1);
    std::vector<uint8_t> table(256);
    std::iota(table.begin(), table.end(), uint8_t{0});
    std::shuffle(table.begin(), table.end(), random);
    for (cpu::InstructionSet set : test::instruction_sets()) {
        for (size_t n : {0, 1, 31, 32, 63, 64, 65, 256, 1000}) {
            SCOPED_TRACE(testing::Message() << cpu::name(set) << ", " << n << " elements");
            std::vector<uint8_t> x(n + 64);
            std::iota(x.begin(), x.end(), uint8_t{0});
            std::shuffle(x.begin(), x.end(), random);
            std::vector<uint8_t> expected = x;
            for (size_t i = 0; i < n; ++i) {
                expected[i] = table[x[i]];
            }
            std::vector<uint8_t> y = x;
            auto count = static_cast<int64_t>(n);
            cpu::vector_loops(set).lookup(y.data(), y.data(), table.data(), nullptr, count);
            EXPECT_EQ(y, expected);
        }
    }
}

/// x * sigmoid(x), rounded to bytes behind each function, from the byte `x`.
int swish_of(Expr& e, int x, DType t) {
    auto dequantized = [&](int bytes, double zero, double scale) {
        int shifted = e.op(ExprOp::Sub, e.cast(bytes, DType::I32), e.constant(DType::I32, zero));
        return e.op(ExprOp::Mul, e.cast(shifted, DType::F32), e.constant(DType::F32, scale));
    };
    auto quantized = [&](int value, double scale, double zero) {
        int low = e.constant(DType::F32, t == DType::I8 ? -128 : 0);
        int high = e.constant(DType::F32, t == DType::I8 ? 127 : 255);
        int steps = e.op(ExprOp::Div, value, e.constant(DType::F32, scale));
        int shifted = e.op(ExprOp::Add, e.op(ExprOp::Round, steps), e.constant(DType::F32, zero));
        return e.cast(e.op(ExprOp::Min, e.op(ExprOp::Max, shifted, low), high), t, true);
    };
    int whole = dequantized(x, 3, 0.05);
    int gate = quantized(e.op(ExprOp::Sigmoid, whole), 1.0 / 255, 0);
    return quantized(e.op(ExprOp::Mul, whole, dequantized(gate, 0, 1.0 / 255)), 0.03, 5);
}

TEST(CpuByteTables, AChainOfFunctionsIsOneLoop) {
    for (DType t : {DType::U8, DType::I8}) {
        Expr e;
        swish_of(e, e.in(0, t), t);
        EXPECT_EQ(cpu::byte_tables(e).back(), 0);
        EXPECT_EQ(cpu::ExprProgram(e).instructions(), 1);
    }
}

TEST(CpuByteTables, FunctionsOfTwoBytesAreNone) {
    Expr e;
    int first = e.cast(e.in(0, DType::U8), DType::I32);
    int second = e.cast(e.in(1, DType::U8), DType::I32);
    e.cast(e.op(ExprOp::Add, first, second), DType::U8);
    EXPECT_EQ(cpu::byte_tables(e), std::vector<int>(e.code.size(), -1));
    EXPECT_EQ(cpu::byte_tables(e, {false, true}).back(), 0) << "with one of them a number";
}

TEST(CpuByteTables, ACastAloneIsNone) {
    Expr e;
    e.cast(e.in(0, DType::U8), DType::I8);
    EXPECT_EQ(cpu::byte_tables(e).back(), -1);
}

/// A tensor with every byte.
Tensor all_bytes(DType t, const Shape& shape) {
    Tensor out = Tensor::empty(t, shape);
    for (int64_t i = 0; i < out.count(); ++i) {
        out.set_i64(i, i % 256 - (t == DType::I8 ? 128 : 0));
    }
    return out;
}

struct Quantization {
    double scale = 1;
    double zero = 0;
};

Value rounded(Graph& g, Value x, DType t, Quantization q) {
    Value scale = ops::scalar(g, DType::F32, q.scale);
    Value zero = ops::scalar_i64(g, t, static_cast<int64_t>(q.zero));
    return ops::dequantize(g, {}, ops::quantize(g, {0, 0, t}, x, scale, zero), scale, zero);
}

TEST(CpuByteTables, MapsOfEachByteAreThoseOfTheEvaluator) {
    for (DType t : {DType::U8, DType::I8}) {
        for (bool between : {false, true}) { // the table's result is read by more of the map
            SCOPED_TRACE(testing::Message() << name(t) << (between ? ", between" : ""));
            Graph g;
            Value bytes = g.add_input("x", {t, {3, 7, 50}});
            Value x = ops::dequantize(g, {}, bytes, ops::scalar(g, DType::F32, 0.0625),
                                      ops::scalar_i64(g, t, 11));
            x = ops::mul(g, x, rounded(g, ops::unary(g, ExprOp::Sigmoid, x), t, {1.0 / 128, 1}));
            x = rounded(g, x, t, {0.125, 7});
            std::vector<Tensor> inputs = {all_bytes(t, {3, 7, 50})};
            if (between) {
                std::mt19937 random(3);
                Value other = g.add_input("other", {DType::F32, {3, 7, 50}});
                inputs.push_back(test::random_tensor(DType::F32, {3, 7, 50}, random));
                x = ops::add(g, x, other);
            }
            g.add_output("y", x);
            expect_same_as_evaluator(g, inputs);
        }
    }
}

/// A product or a convolution of bytes, rounded to bytes, a Swish with bytes between, and bytes or
/// floats at the end.
Graph activated(bool conv, bool floats) {
    Graph g;
    constexpr int64_t channels = 256; // enough for oneDNN
    const Dims shape = conv ? Dims{1, channels, 20, 20} : Dims{40, channels};
    Value x = g.add_input("x", {DType::U8, shape});
    x = ops::dequantize(g, {}, x, ops::scalar(g, DType::F32, 0x1p-4));
    Tensor weights =
        all_bytes(DType::I8, conv ? Shape{channels, channels, 1, 1} : Shape{channels, channels});
    Value w = ops::dequantize(g, {}, ops::constant(g, weights), ops::scalar(g, DType::F32, 0x1p-6));
    Value y = conv ? ops::conv(g, {{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, DType::F32}, x, w)
                   : ops::matmul(g, x, w);
    y = rounded(g, y, DType::U8, {0x1p-1, 126});
    y = ops::mul(g, y, rounded(g, ops::unary(g, ExprOp::Sigmoid, y), DType::U8, {0x1p-8, 0}));
    Value scale = ops::scalar(g, DType::F32, 0x1p-2);
    Value zero = ops::scalar_i64(g, DType::U8, 4);
    y = ops::quantize(g, {0, 0, DType::U8}, y, scale, zero);
    g.add_output("y", floats ? ops::dequantize(g, {}, y, scale, zero) : y);
    return g;
}

TEST(CpuByteTables, ActivationsBehindProducts) {
    for (bool conv : {false, true}) {
        for (bool floats : {false, true}) {
            SCOPED_TRACE(testing::Message() << conv << floats);
            expect_same_as_evaluator(activated(conv, floats));
        }
    }
}

/// GELU by its cubic approximation, rounded to bytes behind each operator, as quantised models of
/// GPT-2 have it, from the bytes that a product stores.
TEST(CpuByteTables, ActivationsOfManyOperatorsAreOneStep) {
    Graph g;
    Value x = g.add_input("x", {DType::U8, {256}});
    Value dequantized = ops::dequantize(g, {}, x, ops::scalar(g, DType::F32, 0x1p-5),
                                        ops::scalar_i64(g, DType::U8, 128));
    Value v = ops::reshape(g, dequantized, {4, 64});
    Value cube = rounded(g, ops::mul(g, ops::mul(g, v, v), v), DType::U8, {0.5, 128});
    Value sum = rounded(g, ops::add(g, v, ops::mul(g, cube, 0.044715)), DType::U8, {0x1p-4, 128});
    Value bent = rounded(g, ops::unary(g, ExprOp::Tanh, ops::mul(g, sum, 0.79788)), DType::U8,
                         {0x1p-7, 127});
    Value y = ops::mul(g, ops::mul(g, v, 0.5), ops::add(g, bent, 1.0));
    g.add_output("y", ops::quantize(g, {0, 0, DType::U8}, y, ops::scalar(g, DType::F32, 0x1p-6),
                                    ops::scalar_i64(g, DType::U8, 11)));
    expect_same_as_evaluator(g, std::array{all_bytes(DType::U8, {256})});
    std::vector<StepInfo> steps = test::planned_steps(g);
    std::erase_if(steps, [](const StepInfo& s) { return s.kernel == "copy"; });
    EXPECT_EQ(steps.size(), 1U);
}

TEST(CpuByteTables, ProductsStoreBytesAndAMapGoesOn) {
    if (cpu::onednn_library() == nullptr ||
        cpu::instruction_set() != cpu::InstructionSet::Avx512Vnni) {
        GTEST_SKIP() << "no library, or no instructions that multiply bytes exactly";
    }
    for (bool conv : {false, true}) {
        for (bool floats : {false, true}) {
            SCOPED_TRACE(testing::Message() << conv << floats);
            std::vector<StepInfo> steps = test::planned_steps(activated(conv, floats));
            std::erase_if(steps, [](const StepInfo& s) { return s.kernel == "copy"; });
            ASSERT_EQ(steps.size(), 2U);
            const std::string& first = steps[0].implementation;
            EXPECT_NE(first.find("onednn"), std::string::npos) << first;
            EXPECT_EQ(first.find("then a map"), std::string::npos) << first;
            EXPECT_EQ(steps[1].kernel, "map");
        }
    }
}

} // namespace

} // namespace ingot
