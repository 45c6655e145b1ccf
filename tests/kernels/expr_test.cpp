// SPDX-License-Identifier: Apache-2.0
// Expression text: every scalar function in every type that has it, over special values, against
// the evaluator.
#include "kernels/common/expr_text.h"
#include "kernels/harness.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace ingot::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

std::vector<double> special_values(DType t) {
    if (is_float(t)) {
        double tiny = t == DType::F64 ? 1e-300 : 1e-38;
        return {0.0,  -0.0, 1,    -1,  0.5, -0.5, 2.5,   -2.5, 3.5, 0.25,
                tiny, inf,  -inf, NAN, 100, 1e30, -7.75, 3,    2,   0.9};
    }
    if (t == DType::Bool) {
        return {0, 1};
    }
    double most = is_signed(t) ? std::ldexp(1, std::min(bit_width(t), 53) - 1) - 1
                               : std::ldexp(1, std::min(bit_width(t), 53)) - 1;
    std::vector<double> out{0, 1, 2, 3, 7, 31, 64, 100, most, most - 1};
    if (is_signed(t)) {
        for (double v : {-1.0, -2.0, -7.0, -64.0, -most, -most - 1}) {
            out.push_back(v);
        }
    }
    return out;
}

/// All pairs of special values: operand 0 and operand 1.
std::vector<Tensor> pairs(DType t) {
    std::vector<double> v = special_values(t);
    auto n = static_cast<int64_t>(v.size());
    std::vector<Tensor> out{Tensor::empty(t, {n * n}), Tensor::empty(t, {n * n})};
    for (int64_t i = 0; i < n * n; ++i) {
        for (size_t k = 0; k < 2; ++k) {
            double x = v[static_cast<size_t>(k == 0 ? i / n : i % n)];
            if (is_float(t)) {
                out[k].set_f64(i, x);
            } else {
                out[k].set_i64(i, static_cast<int64_t>(x));
            }
        }
    }
    return out;
}

/// The distance in units of the last place of `t`.
double ulps(double got, double want, DType t) {
    if ((std::isnan(got) && std::isnan(want)) || got == want) {
        return 0;
    }
    if (!std::isfinite(got) || !std::isfinite(want)) {
        return inf;
    }
    int digits = t == DType::F64 ? 52 : 23;
    int least = t == DType::F64 ? -1022 : -126;
    int e = want == 0 ? least : std::max(std::ilogb(want), least);
    return std::abs(got - want) / std::ldexp(1.0, e - digits);
}

void expect_exact(const Graph& g, const std::vector<Tensor>& in, double limit) {
    FamilyOptions o;
    o.inputs = in;
    o.f64 = false;
    o.tolerance = inf; // compared below, in units of the last place
    FamilyRun run = expect_family(g, o);
    ASSERT_EQ(run.results.size(), 1U);
    const Tensor& got = run.results[0];
    Tensor want = evaluate(g, in).front();
    for (int64_t i = 0; i < want.count(); ++i) {
        bool near = is_float(want.dtype())
                        ? ulps(got.get_f64(i), want.get_f64(i), want.dtype()) <= limit
                        : got.get_i64(i) == want.get_i64(i);
        ASSERT_TRUE(near) << "of " << in[0].get_f64(i) << " and " << in.back().get_f64(i) << ": "
                          << got.get_f64(i) << ", expected " << want.get_f64(i);
    }
}

bool applies(ExprOp op, DType t) {
    switch (kind(op)) {
    case ExprKind::Arith:
        return true;
    case ExprKind::Float:
    case ExprKind::Classify:
        return is_float(t);
    case ExprKind::Bits:
        return !is_float(t);
    case ExprKind::Compare:
        return true;
    default:
        return false;
    }
}

class Functions : public testing::TestWithParam<DType> {};

TEST_P(Functions, AreWhatTheEvaluatorComputes) {
    DType t = GetParam();
    static const ExprOp all[] = {
#define INGOT_EXPR(Name, text, arity, kind, rounding, identity, cpp, device) ExprOp::Name,
#include "ir/expr.def"
#undef INGOT_EXPR
    };
    std::vector<Tensor> in = pairs(t);
    for (ExprOp op : all) {
        if (!applies(op, t)) {
            continue;
        }
        SCOPED_TRACE(str(op, " of ", t));
        Graph g;
        Value a = g.add_input("a", {t, {Dim(in[0].count())}});
        Value b = g.add_input("b", {t, {Dim(in[0].count())}});
        g.add_output("y", arity(op) == 1 ? ops::unary(g, op, a) : ops::binary(g, op, a, b));
        bool exact = kind(op) != ExprKind::Float && op != ExprOp::Pow;
        expect_exact(g, in, exact ? 0 : op == ExprOp::Pow ? 8 : 4);
    }
}

INSTANTIATE_TEST_SUITE_P(Expr, Functions,
                         testing::Values(DType::F32, DType::F64, DType::Bool, DType::I8, DType::U8,
                                         DType::I16, DType::U16, DType::I32, DType::U32, DType::I64,
                                         DType::U64));

TEST(ExprText, CastsAsTheEvaluatorDoes) {
    for (DType from :
         {DType::F32, DType::F64, DType::I32, DType::I64, DType::U64, DType::I8, DType::Bool}) {
        for (int to = 0; to < dtype_count; ++to) {
            for (bool saturate : {false, true}) {
                auto t = static_cast<DType>(to);
                if (t == from || (saturate && t != DType::F8E4M3 && t != DType::F8E5M2)) {
                    continue;
                }
                SCOPED_TRACE(str(from, " to ", t, saturate ? " saturating" : ""));
                Tensor values = pairs(from)[1];
                Graph g;
                Value x = g.add_input("x", {from, {Dim(values.count())}});
                Expr e;
                e.cast(e.in(0, from), t, saturate);
                DType stored = compute_type(t); // shows what the cast computes
                g.add_output("y", ops::map(g, e, stored, std::span(&x, 1)));
                expect_exact(g, {values}, 0);
            }
        }
    }
}

Expr quantise(DType to, double low, double high) {
    Expr e;
    int rounded = e.op(ExprOp::Round, e.in(0, DType::F32));
    int above = e.op(ExprOp::Max, rounded, e.constant(DType::F32, low));
    e.cast(e.op(ExprOp::Min, above, e.constant(DType::F32, high)), to);
    return e;
}

// Rounding, bounds and cast are one addition.
TEST(ExprText, QuantisesAtFullRate) {
    std::vector<float> values = {0.5F,    1.5F,        -0.5F,  -1.5F,      126.5F, 127.5F,
                                 -127.5F, -128.5F,     254.5F, 255.5F,     1e9F,   -1e9F,
                                 3e38F,   0.49999997F, -0.0F,  8388609.0F, 1e-40F};
    for (double v : {inf, -inf, double(NAN)}) {
        values.push_back(static_cast<float>(v));
    }
    for (int i = -600; i <= 600; ++i) {
        values.push_back(static_cast<float>(i) * 0.4999F);
    }
    Tensor x = Tensor::of<float>(DType::F32, {static_cast<int64_t>(values.size())}, values);
    struct Row {
        DType to;
        double low, high;
        bool at_full_rate;
    };
    for (Row r : {Row{DType::I8, -128, 127, true}, Row{DType::U8, 0, 255, true},
                  Row{DType::I8, -127, 127, true}, Row{DType::I8, -128.5, 127, false},
                  Row{DType::I8, -129, 127, false}, Row{DType::U8, 0, 256, false}}) {
        SCOPED_TRACE(str(r.to, " of ", r.low, " to ", r.high));
        Expr e = quantise(r.to, r.low, r.high);
        Graph g;
        Value in = g.add_input("x", {DType::F32, {Dim(x.count())}});
        g.add_output("y", ops::map(g, e, r.to, std::span(&in, 1)));
        expect_exact(g, {x}, 0);
        std::vector<std::string> names = {"x"};
        std::string text = kernels::expr_text(e, names).statements;
        EXPECT_EQ(text.find("ingot_rint") == std::string::npos, r.at_full_rate) << text;
        kernels::ExprText called = kernels::expr_text(e, names, "v", kernels::Functions::Precise);
        EXPECT_EQ(called.rounding, r.at_full_rate);
        EXPECT_EQ(called.statements.find(str("round_to_", r.to)) != std::string::npos,
                  r.at_full_rate)
            << called.statements;
        EXPECT_EQ(kernels::ends_by_rounding(e), r.at_full_rate);
    }
    // The rounding has another reader.
    Expr e = quantise(DType::I8, -128, 127);
    e.op(ExprOp::Add, e.cast(1, DType::F32),
         e.cast(static_cast<int>(e.code.size()) - 1, DType::F32));
    std::vector<std::string> names = {"x"};
    EXPECT_NE(kernels::expr_text(e, names).statements.find("ingot_rint"), std::string::npos);
}

// x as f16, times `factor` as f32, quantised to I8.
Expr through_f16(bool reads_beside, ExprOp last) {
    Expr e;
    int x = e.in(0, DType::F32);
    int y = e.op(ExprOp::Mul, e.cast(x, DType::F16), e.in(1, DType::F32));
    y = reads_beside ? e.op(ExprOp::Sub, y, x) : y;
    y = last == ExprOp::In ? y : e.op(last, y);
    int bounded = e.op(ExprOp::Max, e.op(ExprOp::Round, y), e.constant(DType::F32, -128));
    e.cast(e.op(ExprOp::Min, bounded, e.constant(DType::F32, 127)), DType::I8);
    return e;
}

/// Bytes between sums and a rounding that is left to the caller call the functions that round them.
TEST(ExprText, BytesBeforeARoundingToHalves) {
    Expr e = quantise(DType::I8, -128, 127);
    int wide = e.cast(static_cast<int>(e.code.size()) - 1, DType::F32);
    e.cast(e.op(ExprOp::Mul, wide, e.in(1, DType::F32)), DType::F16);
    std::vector<std::string> names = {"x", "factor"};
    kernels::ExprText t =
        kernels::expr_text(e, names, "v", kernels::Functions::Precise, DType::F16);
    EXPECT_NE(t.statements.find("round_to_i8("), std::string::npos) << t.statements;
    EXPECT_TRUE(t.rounding);
}

TEST(ExprText, RoundsToFewBitsOnce) {
    std::vector<std::string> names = {"x", "factor"};
    auto rounds = [&](const Expr& e) {
        std::string text =
            kernels::expr_text(e, names, "v", kernels::Functions::Precise).statements;
        return text.find("ingot_f16(") != std::string::npos;
    };
    EXPECT_FALSE(rounds(through_f16(false, ExprOp::In)));
    EXPECT_FALSE(rounds(through_f16(false, ExprOp::Abs)));
    EXPECT_TRUE(rounds(through_f16(true, ExprOp::In))); // x less x as f16 is no rounding of 0
    EXPECT_TRUE(rounds(through_f16(false, ExprOp::Floor)));
    Expr single;
    single.op(ExprOp::Mul, single.cast(single.in(0, DType::F32), DType::F16),
              single.in(1, DType::F32));
    EXPECT_TRUE(rounds(single)); // the result has 32 bits
    EXPECT_FALSE(kernels::ends_by_rounding(single));
    single.cast(static_cast<int>(single.code.size()) - 1, DType::F16);
    EXPECT_TRUE(kernels::ends_by_rounding(single));
    kernels::ExprText left =
        kernels::expr_text(single, names, "v", kernels::Functions::Fast, DType::F16);
    EXPECT_EQ(left.statements.find("ingot_f16("), std::string::npos) << left.statements;
    EXPECT_FALSE(left.rounding); // pack_f16 is everywhere
    // A coarser type between stays.
    Expr coarse;
    coarse.op(ExprOp::Mul, coarse.cast(coarse.in(0, DType::F32), DType::BF16),
              coarse.in(1, DType::F32));
    for (DType to : {DType::F16, DType::BF16}) {
        std::string text =
            kernels::expr_text(coarse, names, "v", kernels::Functions::Fast, to).statements;
        EXPECT_EQ(text.find("ingot_bf16(") != std::string::npos, to == DType::F16) << text;
    }
    // So does one at the end, which the caller does not round to.
    Expr end;
    end.cast(end.op(ExprOp::Mul, end.in(0, DType::F32), end.in(1, DType::F32)), DType::BF16);
    for (DType to : {DType::F16, DType::BF16, DType::F8E4M3}) {
        kernels::ExprText t = kernels::expr_text(end, names, "v", kernels::Functions::Fast, to);
        EXPECT_EQ(t.statements.find("ingot_bf16(") != std::string::npos, to != DType::BF16)
            << t.statements;
    }
}

TEST(ExprText, BytesAreFloatsByAnAddition) {
    for (DType from : {DType::I8, DType::U8}) {
        for (bool widened : {false, true}) {
            Tensor x = Tensor::empty(from, {256});
            for (int64_t i = 0; i < 256; ++i) {
                x.set_i64(i, from == DType::I8 ? i - 128 : i);
            }
            Expr e;
            int byte = e.in(0, from);
            e.cast(widened ? e.cast(byte, DType::I32) : byte, DType::F32);
            Graph g;
            Value in = g.add_input("x", {from, {256}});
            g.add_output("y", ops::map(g, e, DType::F32, std::span(&in, 1)));
            expect_exact(g, {x}, 0);
            std::vector<std::string> names = {"x"};
            std::string text = kernels::expr_text(e, names).statements;
            EXPECT_NE(text.find("__uint_as_float"), std::string::npos) << text;
        }
    }
}

TEST(ExprText, LiteralsAreExact) {
    using kernels::literal;
    auto bits = [](double v) { return std::bit_cast<int64_t>(v); };
    EXPECT_EQ(literal(DType::F32, bits(static_cast<double>(0.1F))), "0.100000001f");
    EXPECT_EQ(literal(DType::F32, bits(-2)), "(-2.0f)");
    EXPECT_EQ(literal(DType::F64, bits(0.1)), "0.10000000000000001");
    EXPECT_EQ(literal(DType::F32, bits(inf)), "(ingot_inf())");
    EXPECT_EQ(literal(DType::F64, bits(-inf)), "(-(double)ingot_inf())");
    EXPECT_EQ(literal(DType::F32, bits(NAN)), "ingot_nan()");
    EXPECT_EQ(literal(DType::I32, INT32_MIN), "(i32)0x80000000u");
    EXPECT_EQ(literal(DType::I64, -1), "(i64)18446744073709551615ull");
    EXPECT_EQ(literal(DType::Bool, 1), "true");
}

TEST(ExprText, SelectsAndConstants) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[400]"));
    Expr e;
    int a = e.in(0, DType::F32);
    int low = e.op(ExprOp::Lt, a, e.constant(DType::F32, 0.5));
    e.select(low, e.op(ExprOp::Mul, a, e.constant(DType::F32, 1e-3)), e.constant(DType::F32, -inf));
    g.add_output("y", ops::map(g, e, DType::F32, std::span(&x, 1)));
    expect_exact(g, {pairs(DType::F32)[0]}, 0);
}

/// x * half * (1 + erf(x * part)), with operands in either order.
Expr gelu_expr(double half, double part, bool swapped) {
    Expr e;
    auto mul = [&](int a, int b) {
        return swapped ? e.op(ExprOp::Mul, b, a) : e.op(ExprOp::Mul, a, b);
    };
    int x = e.in(0, DType::F32);
    int erf = e.op(ExprOp::Erf, mul(x, e.constant(DType::F32, part)));
    int one = e.constant(DType::F32, 1);
    int sum = swapped ? e.op(ExprOp::Add, one, erf) : e.op(ExprOp::Add, erf, one);
    mul(mul(x, e.constant(DType::F32, half)), sum);
    return e;
}

std::string fast_statements(const Expr& e, bool fast = true) {
    std::vector<std::string> in = {"a"};
    return kernels::expr_text(e, in, "v",
                              fast ? kernels::Functions::Fast : kernels::Functions::Precise)
        .statements;
}

TEST(ExprText, GeluForNarrowResultsIsOneCall) {
    constexpr double part = 0.7071067811865476;
    EXPECT_EQ(fast_statements(gelu_expr(0.5, part, false)), "float v8 = (float)(fast_gelu(a));\n");
    EXPECT_EQ(fast_statements(gelu_expr(0.5, part, true)), "float v8 = (float)(fast_gelu(a));\n");
    EXPECT_EQ(fast_statements(gelu_expr(0.5, static_cast<float>(part), false)),
              "float v8 = (float)(fast_gelu(a));\n");
    auto has_gelu = [](const std::string& text) {
        return text.find("fast_gelu") != std::string::npos;
    };
    EXPECT_LT(kernels::instructions_of(gelu_expr(0.5, part, false), true),
              kernels::instructions_of(gelu_expr(0.25, part, false), true));
    EXPECT_LT(kernels::instructions_of(gelu_expr(0.25, part, false), true),
              kernels::instructions_of(gelu_expr(0.25, part, false), false));
    // Other factors, the result of a part in use, wide results.
    EXPECT_FALSE(has_gelu(fast_statements(gelu_expr(0.25, part, false))));
    EXPECT_FALSE(has_gelu(fast_statements(gelu_expr(0.5, 0.7, false))));
    EXPECT_FALSE(has_gelu(fast_statements(gelu_expr(0.5, part, false), false)));
    Expr used = gelu_expr(0.5, part, false);
    used.op(ExprOp::Add, static_cast<int>(used.code.size()) - 1, 3);
    ASSERT_EQ(used.code[3].op, ExprOp::Erf);
    EXPECT_FALSE(has_gelu(fast_statements(used)));
}

} // namespace
} // namespace ingot::test
