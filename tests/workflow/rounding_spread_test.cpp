// SPDX-License-Identifier: Apache-2.0
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "workflow/compare/rounding_spread.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace ingot::test {
namespace {

constexpr int64_t count = 4096;

/// x = 0.37, 0.74, ... up to about 1500.
Tensor numbers(double step) {
    Tensor t = Tensor::empty(DType::F32, {count});
    for (int64_t i = 0; i < count; ++i) {
        t.set_f64(i, step * static_cast<double>(i + 1));
    }
    return t;
}

struct Model {
    Model() { x = g.add_input("x", {DType::F32, {count}}); }
    Spreads spreads(const Tensor& in, DType compute = DType::F32) const {
        EvalOptions eval;
        eval.f64 = true;
        std::vector<Tensor> exact = evaluate(g, std::array{in}, eval);
        std::map<std::string, Tensor> named;
        for (size_t i = 0; i < exact.size(); ++i) {
            named[g.output_names()[i]] = exact[i];
        }
        return rounding_spreads(g, std::array{in}, named, compute);
    }
    Value scalar(float v) { return ops::scalar(g, DType::F32, static_cast<double>(v)); }

    Graph g;
    Value x;
};

TEST(RoundingSpread, IsSmallWhereNothingTipsOver) {
    Model m;
    m.g.add_output("y", ops::mul(m.g, m.x, m.scalar(1.7F)));
    double range = 0.37 * 1.7 * count;
    double spread = m.spreads(numbers(0.37)).at("y");
    EXPECT_GT(spread, 0);
    EXPECT_LT(spread, range * std::ldexp(1.0, -20));
    double half = m.spreads(numbers(0.37), DType::F16).at("y");
    EXPECT_GT(half, range * std::ldexp(1.0, -10));
    EXPECT_LT(half, range * std::ldexp(1.0, -7));
}

TEST(RoundingSpread, IsAWholeStepWhereAStepTipsOver) {
    Model m;
    // Multiples of a half at x * 1: all are as close to a tie as f32 tells.
    Value third = ops::mul(m.g, ops::mul(m.g, m.x, m.scalar(1.0F / 3)), m.scalar(3));
    m.g.add_output("y", ops::unary(m.g, ExprOp::Round, third));
    EXPECT_EQ(m.spreads(numbers(0.5)).at("y"), 1);
}

TEST(RoundingSpread, NumbersThatAreExactStay) {
    Model m;
    Value shifted = ops::add(m.g, m.x, m.scalar(1));
    m.g.add_output("y", ops::unary(m.g, ExprOp::Floor, shifted));
    EXPECT_EQ(m.spreads(numbers(1)).at("y"), 0);
}

TEST(RoundingSpread, IndicesHaveNone) {
    Model m;
    m.g.add_output("y", ops::cast(m.g, m.x, DType::I64));
    EXPECT_FALSE(m.spreads(numbers(0.5)).contains("y"));
}

TensorDifference wrong_by(double error) {
    TensorDifference d;
    d.name = "y";
    d.max_absolute = error;
    d.range = 100;
    return d;
}

TEST(RoundingSpread, ExplainsTwiceItself) {
    TensorDifference d = wrong_by(1.9);
    accept_rounding(d, {{"y", 1.0}}, 0, 0);
    EXPECT_TRUE(d.within);
    EXPECT_EQ(d.text(), "max error 1.9 (0 of the range) over 0 elements, "
                        "roundings that tip over alone move it by 1");
    d = wrong_by(2.1);
    accept_rounding(d, {{"y", 1.0}}, 0, 0);
    EXPECT_FALSE(d.within);
    EXPECT_EQ(d.spread, 0);
}

TEST(RoundingSpread, DoesNotExplainMore) {
    TensorDifference other = wrong_by(0.5);
    accept_rounding(other, {{"z", 1.0}}, 0, 0);
    EXPECT_FALSE(other.within) << "of another tensor";
    TensorDifference chaos = wrong_by(5);
    accept_rounding(chaos, {{"y", 5.1}}, 0, 0);
    EXPECT_FALSE(chaos.within) << "more than a twentieth of the range";
    TensorDifference nan = wrong_by(0.5);
    nan.mismatched.count = 1;
    accept_rounding(nan, {{"y", 1.0}}, 0, 0);
    EXPECT_FALSE(nan.within);
    TensorDifference shape = wrong_by(0.5);
    shape.problem = "shape [1], the reference has [2]";
    accept_rounding(shape, {{"y", 1.0}}, 0, 0);
    EXPECT_FALSE(shape.within);
}

} // namespace
} // namespace ingot::test
