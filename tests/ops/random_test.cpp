// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"

#include <cmath>

namespace ingot::test {
namespace {

// Written from the paper, apart from the op: multiply-hi-lo rounds with bumped keys.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
    for (int i = 0; i < 10; ++i) {
        uint64_t a = static_cast<uint64_t>(c[0]) * 0xD2511F53ULL;
        uint64_t b = static_cast<uint64_t>(c[2]) * 0xCD9E8D57ULL;
        auto hi_a = static_cast<uint32_t>(a >> 32);
        auto hi_b = static_cast<uint32_t>(b >> 32);
        std::array<uint32_t, 4> n{hi_b ^ c[1] ^ k[0], static_cast<uint32_t>(b & 0xFFFFFFFFU),
                                  hi_a ^ c[3] ^ k[1], static_cast<uint32_t>(a & 0xFFFFFFFFU)};
        c = n;
        k[0] += 0x9E3779B9U;
        k[1] += 0xBB67AE85U;
    }
    return c;
}

Tensor random(Random a) {
    return run1(random_def, std::move(a), {});
}

TEST(Random, ReferenceVectors) { // Random123, kat_vectors
    using Block = std::array<uint32_t, 4>;
    EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
              (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
    EXPECT_EQ(random({"uniform", 0, 1, DType::F32, {1}, 0}).get_f64(0), 0x6627e8 * 0x1p-24);
    EXPECT_EQ(random({"uniform", 0, 1, DType::F64, {1}, 0}).get_f64(0),
              static_cast<double>(0x6627e8d5e169c58dULL >> 11) * 0x1p-53);
}

TEST(Random, CounterAndKey) {
    int64_t seed = 0x123456789abcdef;
    Tensor y = random({"uniform", -2, 6, DType::F64, {50, 30}, seed});
    Tensor n = random({"normal", 1, 2, DType::F64, {1500}, seed});
    for (uint32_t i = 0; i < 1500; i += 7) {
        auto r = philox({i, 0, 0, 0}, {0x89abcdefU, 0x01234567U});
        double u = static_cast<double>((static_cast<uint64_t>(r[0]) << 32 | r[1]) >> 11) * 0x1p-53;
        ASSERT_EQ(y.get_f64(i), -2 + u * 8);
        double radius = std::sqrt(-2 * std::log((r[0] + 1.0) / 4294967296.0));
        double want = 1 + 2 * radius * std::cos(2 * M_PI * (r[1] / 4294967296.0));
        ASSERT_NEAR(n.get_f64(i), want, 1e-12);
    }
}

TEST(Random, SmallTypesAreTheRoundedValues) {
    Tensor wide = random({"normal", 0, 1, DType::F64, {100}, 3});
    for (DType t : {DType::F32, DType::F16, DType::BF16}) {
        Tensor y = random({"normal", 0, 1, t, {100}, 3});
        for (int64_t i = 0; i < 100; ++i) {
            ASSERT_EQ(y.get_f64(i), Tensor::scalar(t, wide.get_f64(i)).get_f64(0));
        }
    }
}

TEST(Random, UniformNeverReachesTheOpenEnd) {
    for (DType t : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2,
                    DType::F4E2M1}) {
        for (auto [a, b] : {std::pair(0.0, 1.0), std::pair(-3.0, 0.0), std::pair(-3.0, -1.0)}) {
            Tensor y = random({"uniform", a, b, t, {4000}, 17});
            double low = INFINITY;
            double high = -INFINITY;
            for (double v : values(y)) {
                ASSERT_GE(v, a) << name(t);
                ASSERT_LT(v, b) << name(t);
                low = std::min(low, v);
                high = std::max(high, v);
            }
            EXPECT_LT(low, a + (b - a) * 0.1) << name(t);
            EXPECT_GT(high, a + (b - a) * 0.4) << name(t);
        }
    }
    EXPECT_EQ(values(random({"uniform", 2, 2, DType::F32, {2}, 1})), (std::vector<double>{2, 2}));
}

TEST(Random, Moments) {
    Tensor u = random({"uniform", 0, 1, DType::F32, {100000}, 5});
    Tensor n = random({"normal", 0, 1, DType::F32, {100000}, 6});
    double mean_u = 0;
    double mean_n = 0;
    double square_n = 0;
    for (int64_t i = 0; i < u.count(); ++i) {
        mean_u += u.get_f64(i) / 1e5;
        mean_n += n.get_f64(i) / 1e5;
        square_n += n.get_f64(i) * n.get_f64(i) / 1e5;
    }
    EXPECT_NEAR(mean_u, 0.5, 0.005);
    EXPECT_NEAR(mean_n, 0, 0.02);
    EXPECT_NEAR(square_n, 1, 0.03);
}

TEST(Random, Errors) {
    EXPECT_EQ(infer(random_def, Random{"normal", 0, 1, DType::F16, {Dim::symbol("N"), 2}, 1}, {}),
              "f16[N,2]");
    EXPECT_EQ(infer_error(random_def, Random{"gauss", 0, 1, DType::F32, {}, 0}, {}),
              "invalid model: random: kind is \"gauss\", expected uniform or normal");
    EXPECT_EQ(infer_error(random_def, Random{"normal", 0, 1, DType::I32, {}, 0}, {}),
              "invalid model: random: dtype is i32, expected a float type");
    EXPECT_EQ(infer_error(random_def, Random{"normal", 0, INFINITY, DType::F32, {}, 0}, {}),
              "invalid model: random: a is 0 and b is inf, expected finite numbers");
}

} // namespace
} // namespace ingot::test
