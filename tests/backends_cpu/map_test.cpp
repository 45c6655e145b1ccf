// SPDX-License-Identifier: Apache-2.0
// The map kernel: every function and type, every layout of operands.
#include "backends_cpu/compare.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot {

namespace {

using test::expect_same_as_evaluator;

TEST(CpuMap, AddsWithBroadcastAndPermute) {
    Graph g;
    Value a = g.add_input("a", {DType::F32, {3, 5, 70}});
    Value b = g.add_input("b", {DType::F32, {70, 5, 1}});
    Value c = g.add_input("c", {DType::F32, {5, 1}});
    Value p = ops::permute(g, b, {2, 1, 0});
    g.add_output("y", ops::add(g, ops::mul(g, a, p), c));
    expect_same_as_evaluator(g);
}

TEST(CpuMap, EveryFunctionOfEveryType) {
    for (DType t : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::U8,
                    DType::I16, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64,
                    DType::Bool, DType::F8E4M3, DType::F8E5M2}) {
        for (int i = static_cast<int>(ExprOp::Select) + 1; i <= static_cast<int>(ExprOp::IsInf);
             ++i) {
            auto op = static_cast<ExprOp>(i);
            bool floats = is_float(t);
            if ((kind(op) == ExprKind::Bits && floats) ||
                ((kind(op) == ExprKind::Float || kind(op) == ExprKind::Classify) && !floats)) {
                continue;
            }
            SCOPED_TRACE(testing::Message() << name(op) << " of " << name(t));
            Graph g;
            Value a = g.add_input("a", {t, {3, 37}});
            Value y;
            if (arity(op) == 2) {
                Value b = g.add_input("b", {t, {37}});
                y = ops::binary(g, op, a, b);
            } else {
                y = ops::unary(g, op, a);
            }
            g.add_output("y", y);
            test::CompareOptions options;
            options.tolerance = 1e-6;
            expect_same_as_evaluator(g, {}, static_cast<unsigned>(i), options);
        }
    }
}

TEST(CpuMap, CastsBetweenAllTypes) {
    DType all[] = {DType::F32, DType::F64, DType::F16,   DType::BF16,   DType::I8,
                   DType::U8,  DType::I16, DType::U16,   DType::I32,    DType::U32,
                   DType::I64, DType::U64, DType::Bool,  DType::F8E4M3, DType::F8E5M2,
                   DType::I4,  DType::U4,  DType::F4E2M1};
    for (DType from : all) {
        for (DType to : all) {
            SCOPED_TRACE(testing::Message() << name(from) << " to " << name(to));
            Graph g;
            Value a = g.add_input("a", {from, {6, 11}});
            g.add_output("y", ops::cast(g, a, to));
            g.add_output("z",
                         ops::cast(g, ops::mul(g, ops::cast(g, a, DType::F32), 300), to, true));
            expect_same_as_evaluator(g);
        }
    }
}

} // namespace

} // namespace ingot
