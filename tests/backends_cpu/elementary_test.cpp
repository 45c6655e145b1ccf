// SPDX-License-Identifier: Apache-2.0
// exp, tanh and sigmoid of f32 in every instruction set, over floats of every size.
#include "backends_cpu/vector_loops.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace ingot::cpu {

namespace {

struct Function {
    ExprOp op;
    double (*exact)(double);
    double error; // of results that are not denormal, in units of the last place
};

const Function functions[] = {
    {ExprOp::Exp, [](double x) { return std::exp(x); }, 2},
    {ExprOp::Tanh, [](double x) { return std::tanh(x); }, 3},
    {ExprOp::Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 3},
};

/// In units of the last place; below the smallest normal float of that one's.
double error(float got, double exact) {
    int exponent = 0;
    std::frexp(exact, &exponent);
    return std::abs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST(CpuElementary, FloatsOfEverySize) {
    std::vector<float> x;
    for (uint32_t bits = 0; bits < 0x7f800000U; bits += 4099) {
        x.push_back(std::bit_cast<float>(bits));
        x.push_back(-x.back());
    }
    for (const Function& f : functions) {
        for (InstructionSet set : test::instruction_sets()) {
            std::vector<float> y = test::mapped(set, f.op, x);
            for (size_t i = 0; i < x.size(); ++i) {
                double exact = f.exact(x[i]);
                if (exact > std::numeric_limits<float>::max()) {
                    ASSERT_EQ(y[i], std::numeric_limits<float>::infinity());
                } else if (std::abs(exact) < std::numeric_limits<float>::min()) {
                    ASSERT_NEAR(y[i], exact, 0x1p-127)
                        << name(f.op) << " of " << x[i] << ", " << name(set);
                } else {
                    ASSERT_LE(error(y[i], exact), f.error)
                        << name(f.op) << " of " << x[i] << " gives " << y[i] << ", " << name(set);
                }
            }
        }
    }
}

TEST(CpuElementary, InfinityNanAndZero) {
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> x = {inf, -inf, std::numeric_limits<float>::quiet_NaN(), 0.0f, -0.0f};
    for (InstructionSet set : test::instruction_sets()) {
        std::vector<float> e = test::mapped(set, ExprOp::Exp, x);
        EXPECT_TRUE(e[0] == inf && e[1] == 0 && std::isnan(e[2]) && e[3] == 1 && e[4] == 1);
        std::vector<float> t = test::mapped(set, ExprOp::Tanh, x);
        EXPECT_TRUE(t[0] == 1 && t[1] == -1 && std::isnan(t[2]) && t[3] == 0 && t[4] == 0);
        EXPECT_TRUE(!std::signbit(t[3]) && std::signbit(t[4])) << name(set);
        std::vector<float> s = test::mapped(set, ExprOp::Sigmoid, x);
        EXPECT_TRUE(s[0] == 1 && s[1] == 0 && std::isnan(s[2]) && s[3] == 0.5f && s[4] == 0.5f);
    }
}

} // namespace

} // namespace ingot::cpu
