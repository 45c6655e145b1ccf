// SPDX-License-Identifier: Apache-2.0
// sin, cos, tan and atan of f32 in every instruction set: the nearest float but for a hundredth of
// its last place, and the same bits everywhere.
#include "backends_cpu/vector_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace ingot::cpu {

namespace {

struct Function {
    ExprOp op;
    long double (*exact)(long double);
};

const Function functions[] = {
    {ExprOp::Sin, [](long double x) { return std::sin(x); }},
    {ExprOp::Cos, [](long double x) { return std::cos(x); }},
    {ExprOp::Tan, [](long double x) { return std::tan(x); }},
    {ExprOp::Atan, [](long double x) { return std::atan(x); }},
};

/// In units of the last place of the exact value.
long double error(float got, long double exact) {
    int exponent = 0;
    std::frexp(exact, &exponent);
    return std::abs(got - exact) / std::ldexp(1.0L, std::max(exponent - 24, -149));
}

/// Every 4,099th float of either sign, from zero to the largest; near ones lie side by side.
std::vector<float> floats_of_every_size() {
    std::vector<float> x;
    for (uint32_t bits = 0; bits < 0x7f800000U; bits += 4099) {
        x.push_back(std::bit_cast<float>(bits));
        x.push_back(std::bit_cast<float>(bits | 0x80000000U));
    }
    return x;
}

/// Floats around multiples of pi/4, where reduction cancels, below and above its limit of 2^20.
std::vector<float> floats_near_multiples() {
    std::vector<float> x;
    for (double n = 1; n < 1e38; n = n < 2000 ? n + 1 : std::floor(n * 1.01)) {
        auto near = static_cast<float>(n * 0.78539816339744831);
        for (float v : {near, std::nextafter(near, 0.0f), std::nextafter(near, 3e38f)}) {
            x.push_back(v);
            x.push_back(-v);
        }
    }
    return x;
}

void expect_nearest(const std::vector<float>& x) {
    for (const Function& f : functions) {
        std::vector<float> first = test::mapped(InstructionSet::Baseline, f.op, x);
        size_t worst = 0;
        for (size_t i = 0; i < x.size(); ++i) {
            long double exact = f.exact(x[i]);
            ASSERT_EQ(std::signbit(first[i]), std::signbit(exact)) << name(f.op) << " of " << x[i];
            worst = error(first[i], exact) > error(first[worst], f.exact(x[worst])) ? i : worst;
        }
        EXPECT_LE(error(first[worst], f.exact(x[worst])), 0.51L)
            << name(f.op) << " of " << x[worst] << " gives " << first[worst];
        for (InstructionSet set : test::instruction_sets()) {
            std::vector<float> y = test::mapped(set, f.op, x);
            EXPECT_EQ(std::memcmp(y.data(), first.data(), y.size() * sizeof(float)), 0)
                << name(f.op) << ": " << name(set) << " differs from "
                << name(InstructionSet::Baseline);
        }
    }
}

TEST(CpuTrigonometry, NearestFloatsOfEverySize) {
    expect_nearest(floats_of_every_size());
}

TEST(CpuTrigonometry, NearMultiplesOfAQuarterOfPi) {
    expect_nearest(floats_near_multiples());
}

TEST(CpuTrigonometry, InfinityNanAndZero) {
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x = {inf, -inf, nan, 0.0f, -0.0f};
    for (InstructionSet set : test::instruction_sets()) {
        for (ExprOp op : {ExprOp::Sin, ExprOp::Cos, ExprOp::Tan}) {
            std::vector<float> y = test::mapped(set, op, x);
            EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2]));
            bool cosine = op == ExprOp::Cos;
            EXPECT_EQ(y[3], cosine ? 1.0f : 0.0f);
            EXPECT_EQ(std::signbit(y[4]), !cosine) << name(op);
        }
        std::vector<float> y = test::mapped(set, ExprOp::Atan, x);
        EXPECT_EQ(y[0], 1.57079637f);
        EXPECT_EQ(y[1], -1.57079637f);
        EXPECT_TRUE(std::isnan(y[2]));
        EXPECT_TRUE(!std::signbit(y[3]) && std::signbit(y[4]));
    }
}

TEST(CpuTrigonometry, AnElementDoesNotDependOnItsNeighbours) {
    // One far element sends its block through the scalar loop; lengths end inside vectors.
    for (InstructionSet set : test::instruction_sets()) {
        for (const Function& f : functions) {
            for (size_t n : {1, 7, 33, 300}) {
                std::vector<float> x(n);
                for (size_t i = 0; i < n; ++i) {
                    x[i] = 0.37f * static_cast<float>(i) - 5.0f;
                }
                std::vector<float> near = test::mapped(set, f.op, x);
                x[n / 2] = 3e30f;
                std::vector<float> far = test::mapped(set, f.op, x);
                for (size_t i = 0; i < n; ++i) {
                    EXPECT_TRUE(i == n / 2 || near[i] == far[i]) << name(f.op) << " " << i;
                }
            }
        }
    }
}

} // namespace

} // namespace ingot::cpu
