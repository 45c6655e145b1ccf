// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "base/thread_pool.h"
#include "lower/centred_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
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
            EXPECT_NEAR(c->shift.get_f64(j), shift, 1e-4);
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
    EXPECT_TRUE(a->shift == b->shift);
}

Tensor columns_of(const Tensor& w, bool depth_first, int64_t first, int64_t count) {
    int64_t depth = w.shape()[depth_first ? 0 : 1];
    Tensor out = Tensor::empty(w.dtype(), depth_first ? Shape{depth, count} : Shape{count, depth});
    for (int64_t k = 0; k < depth; ++k) {
        for (int64_t j = 0; j < count; ++j) {
            int64_t from = depth_first ? k * w.shape()[1] + first + j : (first + j) * depth + k;
            out.set_f64(depth_first ? k * count + j : j * depth + k, w.get_f64(from));
        }
    }
    return out;
}

TEST(CentredWeights, AreMadeWhenTheyAreRead) {
    Example e = example(DType::F16, 40, 70, 11);
    auto c = centred_weights(e.weights, true, e.scale, e.bias);
    ASSERT_TRUE(c.has_value());
    EXPECT_FALSE(c->weights.is_made());
    EXPECT_FALSE(c->shift.is_made());
    Tensor copy = c->weights.clone();
    EXPECT_TRUE(c->weights.is_made());
    auto again = centred_weights(e.weights, true, e.scale, e.bias);
    EXPECT_TRUE(again->shift == c->shift);
    EXPECT_TRUE(again->weights == copy);
}

TEST(CentredWeights, JoinedOnesAreMadePartByPart) {
    for (DType type : {DType::F16, DType::BF16}) {
        for (bool depth_first : {true, false}) {
            Example e = example(type, 40, 210, 13);
            Tensor w = depth_first ? e.weights : Tensor::empty(type, {210, 40});
            for (int64_t i = 0; !depth_first && i < w.count(); ++i) {
                w.set_f64(i, e.weights.get_f64(i % 40 * 210 + i / 40));
            }
            auto whole = centred_weights(w, depth_first, e.scale, e.bias);
            Tensor joined = Tensor::joined({columns_of(w, depth_first, 0, 100),
                                            columns_of(w, depth_first, 100, 1),
                                            columns_of(w, depth_first, 101, 109)},
                                           depth_first ? 1 : 0);
            auto parts = centred_weights(joined, depth_first, e.scale, e.bias);
            ASSERT_TRUE(whole.has_value() && parts.has_value());
            std::vector<std::byte> read(parts->weights.byte_count());
            parts->weights.read(0, read, ThreadPool::shared());
            EXPECT_TRUE(std::equal(read.begin(), read.end(), whole->weights.bytes().begin()));
            EXPECT_FALSE(joined.is_made());
            EXPECT_FALSE(parts->weights.is_made());
            EXPECT_TRUE(parts->weights == whole->weights);
            EXPECT_TRUE(parts->shift == whole->shift);
        }
    }
}

/// No result that is infinite passes, whether it is proved by the largest weight or found.
TEST(CentredWeights, NothingInfinitePassesNearTheLimits) {
    int lazy = 0;
    int found = 0;
    int refused = 0;
    for (DType type : {DType::F16, DType::BF16}) {
        int most = type == DType::F16 ? 20 : 131;
        for (int power = most - 14; power < most; ++power) {
            for (double bias : {0.01, 1.0}) {
                Example e = example(type, 48, 90, static_cast<unsigned>(power));
                for (float& s : e.scale) {
                    s = std::ldexp(s, power / 2);
                }
                for (float& b : e.bias) {
                    b = std::ldexp(static_cast<float>(bias) * b, power / 2);
                }
                for (int64_t i = 0; i < e.weights.count(); ++i) {
                    e.weights.set_f64(i, std::ldexp(e.weights.get_f64(i), power - power / 2));
                }
                auto c = centred_weights(e.weights, true, e.scale, e.bias);
                refused += c ? 0 : 1;
                lazy += c && !c->weights.is_made() ? 1 : 0;
                found += c && c->weights.is_made() ? 1 : 0;
                for (int64_t i = 0; c && i < c->weights.count(); ++i) {
                    ASSERT_TRUE(std::isfinite(c->weights.get_f64(i))) << str(type, ' ', power);
                }
                for (int64_t i = 0; c && i < c->shift.count(); ++i) {
                    Tensor narrow = Tensor::scalar(type, c->shift.get_f64(i));
                    ASSERT_TRUE(std::isfinite(narrow.get_f64(0))) << str(type, ' ', power);
                }
            }
        }
    }
    EXPECT_GT(lazy, 5);
    EXPECT_GT(found, 5);
    EXPECT_GT(refused, 5);
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
