// SPDX-License-Identifier: Apache-2.0
#include "lower/centred_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace ingot::plan {
namespace {

struct Example {
    Tensor weights;
    std::vector<float> scale, bias;
};

Example example(DType type, int64_t depth, int64_t columns, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    Example e{Tensor::empty(type, {depth, columns}), {}, {}};
    for (int64_t i = 0; i < depth * columns; ++i) {
        // Some are denormal in f16.
        e.weights.set_f64(i, normal(random) * (i % 7 == 0 ? 1e-6 : 0.05) + 0.01);
    }
    for (int64_t k = 0; k < depth; ++k) {
        e.scale.push_back(static_cast<float>(1 + 0.3 * normal(random)));
        e.bias.push_back(static_cast<float>(normal(random)));
    }
    return e;
}

TEST(CentredWeights, ColumnsSumToZeroButForOneRounding) {
    for (DType type : {DType::F16, DType::BF16}) {
        constexpr int64_t depth = 300;
        constexpr int64_t columns = 131;
        Example e = example(type, depth, columns, 5);
        auto c = centred_weights(e.weights, true, e.scale, e.bias);
        ASSERT_TRUE(c.has_value());
        double place = type == DType::F16 ? 0x1p-11 : 0x1p-8; // half of the last, of 1
        for (int64_t j = 0; j < columns; ++j) {
            double mean = 0;
            double shift = 0;
            double largest = 0;
            for (int64_t k = 0; k < depth; ++k) {
                auto at = static_cast<size_t>(k);
                double w = e.weights.get_f64(k * columns + j);
                mean += e.scale[at] * w / depth;
                shift += e.bias[at] * w;
            }
            double sum = 0;
            for (int64_t k = 0; k < depth; ++k) {
                double exact =
                    e.scale[static_cast<size_t>(k)] * e.weights.get_f64(k * columns + j) - mean;
                double got = c->weights.get_f64(k * columns + j);
                largest = std::max(largest, std::abs(got));
                sum += got;
                // Its own rounding, and the one carried to it.
                EXPECT_NEAR(got, exact, 2 * place * largest + 1e-7);
            }
            EXPECT_NEAR(sum, 0, place * largest + 1e-5);
            EXPECT_NEAR(c->shift[static_cast<size_t>(j)], shift, 1e-4);
        }
    }
}

/// The loops convert many numbers at a time: as one by one, denormals and the borders included.
TEST(CentredWeights, RoundAsConversionsOneByOne) {
    constexpr int64_t depth = 64;
    constexpr int64_t columns = 150;
    for (DType type : {DType::F16, DType::BF16}) {
        bool half = type == DType::F16;
        auto wide = [&](uint16_t h) { return half ? f32_from_f16(h) : f32_from_bf16(h); };
        Example e = example(type, depth, columns, 7);
        for (int64_t j = 0; j < columns; ++j) { // magnitudes from 2^-30 on, means apart from them
            for (int64_t k = 0; k < depth; ++k) {
                double size = std::ldexp(1 + static_cast<double>(k * 37 % 64) / 64,
                                         static_cast<int>(j % 36) - 30);
                e.weights.set_f64(k * columns + j, k % 2 == 0 ? size : -size);
            }
        }
        auto c = centred_weights(e.weights, true, e.scale, e.bias);
        ASSERT_TRUE(c.has_value());
        for (int64_t j = 0; j < columns; ++j) {
            auto at = [&](int64_t k) { return static_cast<size_t>(k * columns + j); };
            float mean = 0;
            for (int64_t k = 0; k < depth; ++k) {
                mean += e.scale[static_cast<size_t>(k)] * wide(e.weights.as<uint16_t>()[at(k)]);
            }
            mean /= static_cast<float>(depth);
            float carry = 0;
            for (int64_t k = 0; k < depth; ++k) {
                float x = wide(e.weights.as<uint16_t>()[at(k)]);
                float exact = e.scale[static_cast<size_t>(k)] * x - mean + carry;
                uint16_t expected = half ? f16_from_f32(exact) : bf16_from_f32(exact);
                carry = exact - wide(expected);
                uint16_t got = c->weights.as<uint16_t>()[at(k)];
                ASSERT_EQ(got, expected)
                    << (half ? "f16" : "bf16") << ", column " << j << ", " << exact;
            }
        }
    }
}

TEST(CentredWeights, LayoutsAgree) {
    Example e = example(DType::F16, 40, 70, 9);
    Tensor turned = Tensor::empty(DType::F16, {70, 40});
    for (int64_t k = 0; k < 40; ++k) {
        for (int64_t j = 0; j < 70; ++j) {
            turned.set_f64(j * 40 + k, e.weights.get_f64(k * 70 + j));
        }
    }
    auto a = centred_weights(e.weights, true, e.scale, e.bias);
    auto b = centred_weights(turned, false, e.scale, e.bias);
    for (int64_t k = 0; k < 40; ++k) {
        for (int64_t j = 0; j < 70; ++j) {
            EXPECT_EQ(a->weights.get_f64(k * 70 + j), b->weights.get_f64(j * 40 + k));
        }
    }
    EXPECT_EQ(a->shift, b->shift);
}

TEST(CentredWeights, RefusesWhatIsNotFinite) {
    for (DType type : {DType::F16, DType::BF16}) {
        for (double value :
             {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
            Example e = example(type, 16, 80, 3);
            e.weights.set_f64(5 * 80 + 70, value);
            EXPECT_FALSE(centred_weights(e.weights, true, e.scale, e.bias).has_value());
        }
    }
    Example e = example(DType::F16, 16, 8, 3);
    e.weights.set_f64(3, 60000);
    e.scale[0] = 2; // beyond f16
    EXPECT_FALSE(centred_weights(e.weights, true, e.scale, e.bias).has_value());
}

} // namespace
} // namespace ingot::plan
