// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"

#include <gtest/gtest.h>

#include <limits>

namespace ingot {
namespace {

constexpr int64_t min64 = std::numeric_limits<int64_t>::min();
constexpr int64_t max64 = std::numeric_limits<int64_t>::max();
constexpr uint64_t max_u64 = std::numeric_limits<uint64_t>::max();

TEST(checked, signed_arithmetic_at_its_limits) {
    EXPECT_EQ(checked_add(max64 - 1, int64_t{1}), max64);
    EXPECT_EQ(checked_add(max64, int64_t{1}), std::nullopt);
    EXPECT_EQ(checked_add(min64, int64_t{-1}), std::nullopt);
    EXPECT_EQ(checked_add(min64, max64), -1);
    EXPECT_EQ(checked_mul(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
    EXPECT_EQ(checked_mul(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
    EXPECT_EQ(checked_mul(int64_t{1} << 32, -(int64_t{1} << 31)), min64);
    EXPECT_EQ(checked_mul(min64, int64_t{-1}), std::nullopt);
    EXPECT_EQ(checked_mul(min64, int64_t{0}), 0);
}

TEST(checked, unsigned_arithmetic_at_its_limits) {
    EXPECT_EQ(checked_add(max_u64 - 1, uint64_t{1}), max_u64);
    EXPECT_EQ(checked_add(max_u64, uint64_t{1}), std::nullopt);
    EXPECT_EQ(checked_mul(uint64_t{0xffffffff}, uint64_t{0x100000001}), max_u64);
    EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
    EXPECT_EQ(checked_mul(max_u64, uint64_t{0}), uint64_t{0});
}

/// Against every element one by one.
TEST(checked, elements_lie_within_the_limit) {
    for (int64_t first = -3; first <= 7; ++first) {
        for (int64_t size = 0; size <= 6; ++size) {
            for (int64_t step = -3; step <= 3; ++step) {
                for (int64_t limit = 0; limit <= 6; ++limit) {
                    bool all = true;
                    for (int64_t i = 0; i < size; ++i) {
                        int64_t at = first + i * step;
                        all = all && at >= 0 && at < limit;
                    }
                    EXPECT_EQ(lies_within(first, size, step, limit), all)
                        << first << " + " << size << " * " << step << " in " << limit;
                }
            }
        }
    }
}

TEST(checked, elements_beyond_int64_lie_nowhere) {
    EXPECT_FALSE(lies_within(0, -1, 1, 10)) << "a negative size";
    EXPECT_FALSE(lies_within(1, max64, 1, max64)) << "the sum wraps";
    EXPECT_FALSE(lies_within(0, 1 + (int64_t{1} << 33), int64_t{1} << 32, max64)) << "the product";
    EXPECT_FALSE(lies_within(9, 3, min64, 10));
    EXPECT_TRUE(lies_within(0, max64, 1, max64));
    EXPECT_FALSE(lies_within(0, max64, 1, max64 - 1));
    EXPECT_TRUE(lies_within(max64 - 1, max64, -1, max64));
}

} // namespace
} // namespace ingot
