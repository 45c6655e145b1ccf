// SPDX-License-Identifier: Apache-2.0
#include "base/kept_blocks.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace ingot {
namespace {

struct Bytes {
    char memory[8];
};

TEST(KeptBlocks, TheSmallestThatFitsIsTaken) {
    KeptBlocks kept(100);
    Bytes m{};
    EXPECT_EQ(kept.take(0, 1000).memory, nullptr);
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(kept.keep({&m.memory[i], 10 * (i + 1)}));
    }
    EXPECT_TRUE(kept.keep({&m.memory[4], 0}));
    EXPECT_EQ(kept.bytes(), 100U);
    EXPECT_EQ(kept.take(11, 19).memory, nullptr);
    EXPECT_EQ(kept.take(11, 40).memory, &m.memory[1]);
    EXPECT_EQ(kept.take(11, 40).memory, &m.memory[2]);
    EXPECT_EQ(kept.take(11, 39).memory, nullptr);
    EXPECT_EQ(kept.bytes(), 50U);
    EXPECT_TRUE(kept.keep({&m.memory[5], 10}));
    EXPECT_EQ(kept.take(10, 10).memory, &m.memory[5]) << "the last given back";
}

TEST(KeptBlocks, TheOneUnusedForLongestMakesWay) {
    KeptBlocks kept(100);
    Bytes m{};
    EXPECT_FALSE(kept.keep({&m.memory[0], 101}));
    EXPECT_TRUE(kept.keep({&m.memory[0], 60})); // of a size that nobody asks for again
    EXPECT_TRUE(kept.keep({&m.memory[1], 30}));
    EXPECT_FALSE(kept.evict().has_value());
    EXPECT_TRUE(kept.keep({&m.memory[2], 30}));
    std::optional<KeptBlocks::Block> gone = kept.evict();
    ASSERT_TRUE(gone.has_value());
    EXPECT_EQ(gone->memory, &m.memory[0]);
    EXPECT_EQ(gone->bytes, 60U);
    EXPECT_FALSE(kept.evict().has_value());
    EXPECT_EQ(kept.take(30, 30).memory, &m.memory[2]);
    EXPECT_TRUE(kept.keep({&m.memory[2], 30}));
    EXPECT_TRUE(kept.keep({&m.memory[3], 100})); // for which all others make way
    EXPECT_EQ(kept.evict()->memory, &m.memory[1]);
    EXPECT_EQ(kept.evict()->memory, &m.memory[2]);
    EXPECT_FALSE(kept.evict().has_value());
    EXPECT_EQ(kept.take_any()->memory, &m.memory[3]);
    EXPECT_FALSE(kept.take_any().has_value());
    EXPECT_EQ(kept.bytes(), 0U);
}

TEST(KeptBlocks, NoBlockIsLostOrThereTwice) {
    KeptBlocks kept(5000);
    std::vector<char> memory(4000);
    std::set<void*> inside;
    std::mt19937 random(3);
    size_t next = 0;
    for (int step = 0; step < 4000; ++step) {
        size_t bytes = random() % 700;
        if (random() % 2 == 0) {
            void* m = &memory[next++];
            if (kept.keep({m, bytes})) {
                inside.insert(m);
            }
            for (auto gone = kept.evict(); gone; gone = kept.evict()) {
                EXPECT_EQ(inside.erase(gone->memory), 1U);
            }
        } else if (void* m = kept.take(bytes, 2 * bytes).memory) {
            EXPECT_EQ(inside.erase(m), 1U);
        }
        ASSERT_LE(kept.bytes(), 5000U);
    }
    EXPECT_GT(inside.size(), 2U);
    while (auto left = kept.take_any()) {
        EXPECT_EQ(inside.erase(left->memory), 1U);
    }
    EXPECT_TRUE(inside.empty());
}

} // namespace
} // namespace ingot
