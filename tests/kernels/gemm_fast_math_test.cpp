// SPDX-License-Identifier: Apache-2.0
// The fast functions of fast_math.cuh at every f16 and bf16, against the C library's in double.
#include "base/text.h"
#include "ir/tensor.h"
#include "kernels/emulator_machine.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace ingot::emulator {
namespace {

/// Every f16 and every bf16 as f32 bits.
std::vector<uint32_t> every_input() {
    std::vector<uint32_t> out;
    for (uint32_t b = 0; b < 0x10000; ++b) {
        Tensor t = Tensor::empty(DType::F16, {1});
        auto bits = static_cast<uint16_t>(b);
        std::memcpy(t.mutable_bytes().data(), &bits, 2);
        out.push_back(std::bit_cast<uint32_t>(static_cast<float>(t.get_f64(0))));
        out.push_back(b << 16);
    }
    return out;
}

/// Every input, and the function's result.
std::vector<std::pair<double, double>> values_of(std::string_view call) {
    std::string before = str(kernels::device_file("types"), kernels::device_file("fast_math"));
    Machine m(str("grid_wait(); for (u32 i = t; i < 131072; i += 32) out[i] = __float_as_uint(",
                  call, "(__uint_as_float(in[i])));"),
              32, 0, 90, before);
    std::vector<uint32_t> in = every_input();
    std::vector<uint32_t> out = m.run(in.size(), in);
    std::vector<std::pair<double, double>> values;
    for (size_t i = 0; i < in.size(); ++i) {
        values.emplace_back(std::bit_cast<float>(in[i]), std::bit_cast<float>(out[i]));
    }
    return values;
}

struct Row {
    const char* call;
    double (*exact)(double);
};

class FastMath : public ::testing::TestWithParam<Row> {};

TEST_P(FastMath, IsCloseEverywhere) {
    double worst = 0;
    double worst_at = 0;
    for (auto [x, got] : values_of(GetParam().call)) {
        double want = GetParam().exact(x);
        if (std::isnan(want)) {
            EXPECT_TRUE(std::isnan(got)) << x;
            continue;
        }
        // Below the smallest f16 and bf16 that are not denormal in f32, only the sign counts;
        // values beyond f32 are infinite.
        if (std::isinf(static_cast<float>(want))) {
            EXPECT_TRUE(std::isinf(got)) << x;
            continue;
        }
        double error = std::abs(got - want) / std::max(std::abs(want), 1e-30);
        if (!(error <= worst)) {
            worst = error;
            worst_at = x;
        }
    }
    EXPECT_LT(worst, 3e-5) << GetParam().call << '(' << worst_at << ')';
}

const Row rows[] = {
    {"fast_exp", [](double x) { return std::exp(x); }},
    {"fast_sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"fast_tanh", [](double x) { return std::tanh(x); }},
    {"fast_tanh_plus_1", [](double x) { return 2 / (1 + std::exp(-2 * x)); }},
    {"fast_erf", [](double x) { return std::erf(x); }},
};
INSTANTIATE_TEST_SUITE_P(Functions, FastMath, ::testing::ValuesIn(rows));

TEST(FastMathErf, PlusOneKeepsItsDigitsToMinusFour) {
    for (auto [x, got] : values_of("fast_erf_plus_1")) {
        if (std::isnan(x)) {
            EXPECT_TRUE(std::isnan(got));
            continue;
        }
        double want = std::erfc(-x);
        // Beyond, times x it is less than the least f16.
        double least = x >= -4.2 ? 1e-5 * want : 3e-9;
        EXPECT_NEAR(got, want, least) << x;
    }
}

TEST(FastMathGelu, KeepsItsDigitsWhileItIsANormalHalf) {
    for (auto [x, got] : values_of("fast_gelu")) {
        if (std::isnan(x)) {
            EXPECT_TRUE(std::isnan(got));
        } else if (x < -5.75) {
            EXPECT_LE(std::abs(got), 0x1p-25) << x; // an f16 of 0
        } else if (x == HUGE_VAL) {
            EXPECT_EQ(got, x);
        } else {
            constexpr double normal = 0x1p-14; // less has fewer digits in f16
            double want = x * std::erfc(-x / std::sqrt(2)) / 2;
            double size = x < -1 ? std::max(std::abs(want), normal) : std::abs(want);
            EXPECT_NEAR(got, want, 8.5e-5 * size + 1e-38) << x;
        }
    }
}

} // namespace
} // namespace ingot::emulator
