// SPDX-License-Identifier: Apache-2.0
// Maps as chains of oneDNN's functions: every function in its usual spellings, and refusals.
#include "backends/cpu/post_ops.h"

#include <gtest/gtest.h>

#include <functional>

namespace ingot::cpu {

namespace {

using onednn::Function;

/// An expression of one value, written like arithmetic.
struct Term {
    Expr* e;
    int i;
    Term with(ExprOp op, Term b) const { return {e, e->op(op, i, b.i)}; }
    Term with(ExprOp op, double b) const { return {e, e->op(op, i, e->constant(DType::F32, b))}; }
    Term of(ExprOp op) const { return {e, e->op(op, i)}; }
    Term operator+(Term b) const { return with(ExprOp::Add, b); }
    Term operator+(double b) const { return with(ExprOp::Add, b); }
    Term operator*(Term b) const { return with(ExprOp::Mul, b); }
    Term operator*(double b) const { return with(ExprOp::Mul, b); }
    Term clip(double low, double high) const {
        return with(ExprOp::Max, low).with(ExprOp::Min, high);
    }
};

using Builder = std::function<Term(Term)>;

std::optional<std::vector<PostStep>> steps_of(const Builder& build) {
    Expr e;
    build({&e, e.in(0, DType::F32)});
    return post_steps(e, 0);
}

void expect_one(const Builder& build, Function f, float alpha = 0, float beta = 0) {
    auto steps = steps_of(build);
    ASSERT_TRUE(steps.has_value());
    ASSERT_EQ(steps->size(), 1U);
    EXPECT_EQ(steps->front().function, f) << static_cast<int>(steps->front().function);
    EXPECT_NEAR(steps->front().alpha, alpha, 1e-5 * std::max(1.0F, std::abs(alpha)));
    EXPECT_NEAR(steps->front().beta, beta, 1e-5 * std::max(1.0F, std::abs(beta)));
}

TEST(CpuPostOps, RectifiersAndLimits) {
    expect_one([](Term x) { return x.with(ExprOp::Max, 0.0); }, Function::Relu);
    expect_one([](Term x) { return x.with(ExprOp::Max, x * 0.1); }, Function::Relu, 0.1F);
    expect_one(
        [](Term x) {
            int zero = x.e->constant(DType::F32, 0);
            return Term{x.e, x.e->select(x.e->op(ExprOp::Lt, x.i, zero), (x * 0.2).i, x.i)};
        },
        Function::Relu, 0.2F);
    expect_one([](Term x) { return x.clip(0, 6); }, Function::Clip, 0, 6);
    expect_one([](Term x) { return x.with(ExprOp::Min, 3.0).with(ExprOp::Max, -1.0); },
               Function::Clip, -1, 3);
    expect_one(
        [](Term x) {
            int zero = x.e->constant(DType::F32, 0);
            Term negative = x.of(ExprOp::Expm1) * 0.7;
            return Term{x.e, x.e->select(x.e->op(ExprOp::Lt, zero, x.i), x.i, negative.i)};
        },
        Function::Elu, 0.7F);
}

TEST(CpuPostOps, SmoothFunctions) {
    expect_one([](Term x) { return x.of(ExprOp::Sigmoid); }, Function::Sigmoid);
    expect_one([](Term x) { return x.of(ExprOp::Tanh); }, Function::Tanh);
    expect_one([](Term x) { return x * x.of(ExprOp::Sigmoid); }, Function::Swish, 1);
    expect_one([](Term x) { return (x * 1.702).of(ExprOp::Sigmoid) * x; }, Function::Swish, 1.702F);
    expect_one([](Term x) { return (x * 0.70710678).of(ExprOp::Erf) * 0.5 * x + x * 0.5; },
               Function::GeluErf);
    expect_one(
        [](Term x) {
            Term inner = (x + x * x * x * 0.044715) * 0.79788456;
            return (inner.of(ExprOp::Tanh) + 1.0) * x * 0.5;
        },
        Function::GeluTanh);
    expect_one([](Term x) { return x * x.of(ExprOp::Exp).of(ExprOp::Log1p).of(ExprOp::Tanh); },
               Function::Mish);
    expect_one([](Term x) { return (x * 0.2 + 0.5).clip(0, 1); }, Function::HardSigmoid, 0.2F,
               0.5F);
    expect_one([](Term x) { return (x + 3.0).clip(0, 6) * (1.0 / 6) * x; }, Function::HardSwish,
               1 / 6.0F, 0.5F);
}

TEST(CpuPostOps, LinearChainsFold) {
    expect_one([](Term x) { return x * 3.0 + 1.0; }, Function::Linear, 3, 1);
    expect_one([](Term x) { return (x + 1.0) * 3.0 + 2.0; }, Function::Linear, 3, 5);
    expect_one([](Term x) { return x.of(ExprOp::Neg); }, Function::Linear, -1, 0);
}

TEST(CpuPostOps, OperandsBetweenFunctions) {
    auto steps = steps_of([](Term x) {
        Term bias{x.e, x.e->in(1, DType::F32)};
        Term other{x.e, x.e->in(2, DType::F32)};
        Term y = (bias + x).with(ExprOp::Max, 0.0);
        return (y * other).with(ExprOp::Sub, Term{x.e, x.e->in(3, DType::F32)});
    });
    ASSERT_TRUE(steps.has_value());
    ASSERT_EQ(steps->size(), 4U);
    const Function functions[] = {Function::Add, Function::Relu, Function::Mul, Function::Sub};
    const int inputs[] = {1, -1, 2, 3};
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ((*steps)[i].function, functions[i]) << i;
        EXPECT_EQ((*steps)[i].input, inputs[i]) << i;
    }
}

TEST(CpuPostOps, WhatIsNoChainIsRefused) {
    auto in = [](Term x, int i) { return Term{x.e, x.e->in(i, DType::F32)}; };
    // Two paths from the main input, with another input on one of them.
    EXPECT_FALSE(steps_of([&](Term x) { return (x + in(x, 1)) * x; }));
    // Functions that oneDNN lacks, and the wrong operand order of a non-commutative one.
    EXPECT_FALSE(steps_of([](Term x) { return x.of(ExprOp::Sin); }));
    EXPECT_FALSE(steps_of([&](Term x) { return in(x, 1).with(ExprOp::Div, x); }));
    EXPECT_FALSE(steps_of([&](Term x) { return in(x, 1).with(ExprOp::Sub, x); }));
    // Near misses.
    EXPECT_FALSE(steps_of([](Term x) { return x.of(ExprOp::Floor); }));
    EXPECT_FALSE(steps_of([](Term x) { return x * (x * 0.71).of(ExprOp::Erf); }));
    // No path at all.
    EXPECT_FALSE(steps_of([&](Term x) { return in(x, 1) * 2.0; }));
    // Another type.
    Expr e;
    e.op(ExprOp::Abs, e.in(0, DType::F64));
    EXPECT_FALSE(post_steps(e, 0));
}

/// x rounded, moved by a zero point and stored as i8 within limits.
Term bytes_of(Term x, double zero, double low = -128, DType t = DType::I8) {
    Term y = x.of(ExprOp::Round);
    y = (zero == 0 ? y : y + zero).clip(low, t == DType::I8 ? 127 : 255);
    return {y.e, y.e->cast(y.i, t, true)};
}

TEST(CpuPostOps, SumsOfIntegersBecomeBytes) {
    auto build = [](double zero, double low, DType t = DType::I8) {
        Expr e;
        Term sums{&e, e.op(ExprOp::Sub, e.in(0, DType::I32), e.in(1, DType::I32))};
        Term x{&e, e.cast(sums.i, DType::F32)};
        Term y = x * Term{&e, e.in(2, DType::F32)};
        bytes_of(y.with(ExprOp::Div, Term{&e, e.in(3, DType::F32)}), zero, low, t);
        return post_steps(e, 0);
    };
    auto steps = build(0, -128);
    ASSERT_TRUE(steps.has_value());
    ASSERT_EQ(steps->size(), 3U);
    const Function functions[] = {Function::Sub, Function::Mul, Function::Div};
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ((*steps)[i].function, functions[i]) << i;
        EXPECT_EQ((*steps)[i].input, static_cast<int>(i) + 1) << i;
    }
    steps = build(4, -128);
    ASSERT_TRUE(steps.has_value());
    ASSERT_EQ(steps->size(), 4U);
    EXPECT_EQ(steps->back().function, Function::Linear);
    EXPECT_EQ(steps->back().alpha, 1);
    EXPECT_EQ(steps->back().beta, 4);
    // Halves round to the even byte: with an odd zero point to the other one than a store does.
    steps = build(3, -128);
    ASSERT_TRUE(steps.has_value());
    ASSERT_EQ(steps->size(), 5U);
    EXPECT_EQ((*steps)[3].function, Function::Round);
    EXPECT_EQ(steps->back().beta, 3);
    for (double zero : {0.0, 128.0, 117.0}) {
        EXPECT_TRUE(build(zero, 0, DType::U8)) << zero;
    }
    // Limits that are not the type's.
    EXPECT_FALSE(build(0, 1, DType::U8));
    EXPECT_FALSE(build(0, -127));
}

TEST(CpuPostOps, DequantisedBytesAreAddedInThreeSteps) {
    auto build = [](int zero, bool divides) {
        Expr e;
        Term x{&e, e.cast(e.in(0, DType::I32), DType::F32)};
        int q = e.cast(e.in(1, DType::U8), DType::I32);
        q = zero == 0 ? q : e.op(ExprOp::Sub, q, e.constant_i64(DType::I32, zero));
        Term other = Term{&e, e.cast(q, DType::F32)} * Term{&e, e.in(2, DType::F32)};
        bytes_of(x + other, 0);
        return post_steps(e, 0, {false, false, divides});
    };
    auto steps = build(0, true);
    ASSERT_TRUE(steps.has_value());
    ASSERT_EQ(steps->size(), 3U);
    const Function functions[] = {Function::Div, Function::Add, Function::Mul};
    const int inputs[] = {2, 1, 2};
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ((*steps)[i].function, functions[i]) << i;
        EXPECT_EQ((*steps)[i].input, inputs[i]) << i;
    }
    steps = build(7, true);
    ASSERT_TRUE(steps.has_value());
    ASSERT_EQ(steps->size(), 4U);
    EXPECT_EQ((*steps)[2].function, Function::Linear);
    EXPECT_EQ((*steps)[2].beta, -7);
    EXPECT_FALSE(build(0, false)); // a scale that is not one known number
}

} // namespace

} // namespace ingot::cpu
