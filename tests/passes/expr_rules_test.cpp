// SPDX-License-Identifier: Apache-2.0
#include "passes/expr_rules.h"

#include <gtest/gtest.h>

#include <array>

namespace ingot::passes {
namespace {

/// 0 + x * c, and the cast of it to `to`.
Expr scaled(double c, DType to) {
    Expr e;
    int x = e.in(0, DType::F32);
    int y = e.op(ExprOp::Mul, x, e.constant(DType::F32, c));
    e.cast(e.op(ExprOp::Add, y, e.constant(DType::F32, 0)), to);
    return e;
}

TEST(SimplifiedBodies, AreAsSimplifiedEachTimeAnew) {
    SimplifiedBodies known;
    for (int round = 0; round < 2; ++round) {
        for (int c = 0; c < 6000; ++c) { // more than are kept
            DType to = c % 3 == 0 ? DType::F16 : c % 3 == 1 ? DType::F32 : DType::I32;
            Expr e = scaled(c % 7 == 0 ? 1 : c, to);
            std::array<InputFacts, 1> in{InputFacts{DType::F32, {}}};
            ASSERT_EQ(known.of(e, in, to), simplified(e, in, to)) << to_text(e);
        }
    }
}

TEST(SimplifiedBodies, FactsAndResultCount) {
    Expr e; // x < 5 ? 1 : 2
    int x = e.in(0, DType::I64);
    int is_less = e.op(ExprOp::Lt, x, e.constant_i64(DType::I64, 5));
    e.select(is_less, e.constant_i64(DType::I64, 1), e.constant_i64(DType::I64, 2));
    SimplifiedBodies known;
    for (Interval range : {Interval{0, 9}, Interval{0, 4}, Interval{5, 9}, Interval{0, 9}}) {
        std::array<InputFacts, 1> in{InputFacts{DType::I64, range}};
        EXPECT_EQ(known.of(e, in, DType::I64), simplified(e, in, DType::I64)) << range.low;
    }
    Expr cast; // stored as f16 it needs no cast
    cast.cast(cast.in(0, DType::F32), DType::F16);
    std::array<InputFacts, 1> in{InputFacts{DType::F32, {}}};
    for (DType result : {DType::F16, DType::F32, DType::F16}) {
        EXPECT_EQ(known.of(cast, in, result), simplified(cast, in, result)) << name(result);
    }
}

} // namespace
} // namespace ingot::passes
