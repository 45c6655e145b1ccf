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

} // namespace
} // namespace ingot
