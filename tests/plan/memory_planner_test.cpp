// SPDX-License-Identifier: Apache-2.0
// The arena, for random lifetimes of every kind: blocks that live at the same time never share
// bytes, offsets are aligned, and the size is between the lower bound and the sum of all blocks.
#include "base/error.h"
#include "plan/memory_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ingot::plan {
namespace {

int64_t rounded(int64_t bytes, int64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

std::string printed(const std::vector<Block>& blocks, const ArenaPlan& plan) {
    std::string text;
    for (size_t i = 0; i < blocks.size(); ++i) {
        const Block& b = blocks[i];
        text +=
            str(b.bytes, " bytes, steps ", b.first, " to ", b.last, ": at ", plan.offsets[i], "\n");
    }
    return text;
}

void check(const std::vector<Block>& blocks, int64_t alignment) {
    ArenaPlan plan = plan_arena(blocks, alignment);
    ASSERT_EQ(plan.offsets.size(), blocks.size());
    int64_t sum = 0;
    int64_t end = 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
        int64_t size = rounded(blocks[i].bytes, alignment);
        sum += size;
        end = std::max(end, size == 0 ? 0 : plan.offsets[i] + size);
        ASSERT_GE(plan.offsets[i], 0);
        ASSERT_EQ(plan.offsets[i] % alignment, 0) << printed(blocks, plan);
        for (size_t k = 0; k < i; ++k) {
            bool together = blocks[i].first <= blocks[k].last && blocks[k].first <= blocks[i].last;
            bool apart = plan.offsets[i] + blocks[i].bytes <= plan.offsets[k] ||
                         plan.offsets[k] + blocks[k].bytes <= plan.offsets[i];
            ASSERT_TRUE(!together || apart || blocks[i].bytes == 0 || blocks[k].bytes == 0)
                << "blocks " << k << " and " << i << "\n"
                << printed(blocks, plan);
        }
    }
    ASSERT_EQ(plan.bytes, end) << printed(blocks, plan);
    ASSERT_LE(plan.bytes, sum);
    ASSERT_GE(plan.bytes, arena_lower_bound(blocks, alignment));
    ASSERT_EQ(plan_arena(blocks, alignment).offsets, plan.offsets) << "not deterministic";
}

TEST(Arena, RandomLives) {
    for (uint32_t seed = 0; seed < 2000; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        auto below = [&random](int64_t n) {
            return std::uniform_int_distribution<int64_t>(0, n - 1)(random);
        };
        int64_t steps = 1 + below(30);
        int64_t longest = 1 + below(steps);
        int64_t largest = int64_t{1} << below(20);
        std::vector<Block> blocks(static_cast<size_t>(below(40)));
        for (Block& b : blocks) {
            b.bytes = below(5) == 0 ? 0 : below(largest + 1);
            b.first = below(steps);
            b.last = std::min(steps, b.first + below(longest));
        }
        check(blocks, int64_t{1} << below(10));
        if (HasFatalFailure()) {
            return;
        }
    }
}

// A chain of steps, each reading the previous result: two alternating blocks suffice.
TEST(Arena, AChainOfEqualBlocksTakesTwo) {
    std::vector<Block> same;
    for (int64_t i = 0; i < 20; ++i) {
        same.push_back({640, i, i + 1});
    }
    EXPECT_EQ(plan_arena(same).bytes, 2 * 640);
}

TEST(Arena, WhatLivesAtDifferentTimesSharesBytes) {
    std::vector<Block> blocks{{100, 0, 1}, {100, 2, 3}, {100, 1, 2}};
    ArenaPlan plan = plan_arena(blocks, 64);
    EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 0, 128}));
    EXPECT_EQ(plan.bytes, 256);
    EXPECT_EQ(arena_lower_bound(blocks, 64), 256);
    EXPECT_EQ(plan_arena({}, 64).bytes, 0);
}

TEST(Arena, RefusesWhatDoesNotFit) {
    constexpr int64_t most = int64_t{1} << 48;
    std::vector<Block> blocks{{most, 0, 1}, {most, 1, 2}};
    auto text = [](const auto& f) {
        try {
            f();
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::OutOfMemory);
            return std::string(e.what());
        }
        return std::string("no error");
    };
    EXPECT_EQ(text([&] { plan_arena(blocks); }),
              "activations need more than 281474976710656 bytes");
    blocks = {{-1, 0, 0}};
    EXPECT_EQ(text([&] { plan_arena(blocks); }), "a value of -1 bytes does not fit into memory");
}

} // namespace
} // namespace ingot::plan
