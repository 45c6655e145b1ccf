// SPDX-License-Identifier: Apache-2.0
// exp, tanh and sigmoid of f32 in every instruction set, over floats of every size.
#include "backends/cpu/simd/simd.h"

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

std::vector<InstructionSet> sets() {
    std::vector<InstructionSet> all;
    for (InstructionSet s : {InstructionSet::Baseline, InstructionSet::Avx2, InstructionSet::Avx512,
                             InstructionSet::Avx512Vnni}) {
        if (s <= instruction_set()) {
            all.push_back(s);
        }
    }
    return all;
}

std::vector<float> results(InstructionSet set, ExprOp op, const std::vector<float>& x) {
    std::vector<float> y(x.size());
    MapLoop loop = vector_loops(set).map(op, DType::F32);
    EXPECT_NE(loop, nullptr);
    loop(y.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
    return y;
}

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
        for (InstructionSet set : sets()) {
            std::vector<float> y = results(set, f.op, x);
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
    for (InstructionSet set : sets()) {
        std::vector<float> e = results(set, ExprOp::Exp, x);
        EXPECT_TRUE(e[0] == inf && e[1] == 0 && std::isnan(e[2]) && e[3] == 1 && e[4] == 1);
        std::vector<float> t = results(set, ExprOp::Tanh, x);
        EXPECT_TRUE(t[0] == 1 && t[1] == -1 && std::isnan(t[2]) && t[3] == 0 && t[4] == 0);
        EXPECT_TRUE(!std::signbit(t[3]) && std::signbit(t[4])) << name(set);
        std::vector<float> s = results(set, ExprOp::Sigmoid, x);
        EXPECT_TRUE(s[0] == 1 && s[1] == 0 && std::isnan(s[2]) && s[3] == 0.5f && s[4] == 0.5f);
    }
}

} // namespace

} // namespace ingot::cpu
