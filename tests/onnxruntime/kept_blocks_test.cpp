// SPDX-License-Identifier: Apache-2.0
// Memory without a stream, kept for the next who asks.
#include "onnxruntime/counting_memory.h"
#include "plugins/onnxruntime/kept_blocks.h"

#include <gtest/gtest.h>

namespace ingot::ort {
namespace {

using test::CountingMemory;

TEST(KeptBlocks, ArraysThatGrowABitTakeTheBlocksBefore) {
    auto memory = std::make_shared<CountingMemory>();
    KeptBlocks blocks(memory);
    std::vector<void*> before;
    for (size_t rows = 1000; rows < 1064; ++rows) { // caches of a decoder's tokens
        std::vector<void*> now;
        for (int i = 0; i < 8; ++i) {
            now.push_back(blocks.take(rows * 1024));
        }
        for (void* m : before) {
            EXPECT_TRUE(blocks.give(m));
        }
        before = now;
    }
    EXPECT_LE(memory->allocations, 4 * 8) << "of 512: two sizes, and a set beside the one before";
}

TEST(KeptBlocks, OneWaitIsForAllThatWereGivenBefore) {
    auto memory = std::make_shared<CountingMemory>();
    KeptBlocks blocks(memory);
    void* a = blocks.take(5000);
    void* b = blocks.take(5000);
    EXPECT_NE(a, b);
    EXPECT_EQ(memory->log, "") << "new memory has no work to wait for";
    EXPECT_TRUE(blocks.give(a));
    EXPECT_TRUE(blocks.give(b));
    void* c = blocks.take(5001);
    EXPECT_EQ(memory->log, "wait for all; ");
    void* d = blocks.take(4999);
    EXPECT_EQ(memory->log, "wait for all; ") << "its work is done as well";
    EXPECT_EQ(std::set<void*>({a, b}), std::set<void*>({c, d}));
    EXPECT_TRUE(blocks.give(c));
    EXPECT_EQ(blocks.take(5000), c);
    EXPECT_EQ(memory->log, "wait for all; wait for all; ");
    EXPECT_EQ(memory->allocations, 2);
}

TEST(KeptBlocks, LargeBlocksAndOthersMemoryReturnToTheDriver) {
    auto memory = std::make_shared<CountingMemory>();
    memory->room = size_t{4} << 30;
    KeptBlocks blocks(memory);
    void* large = blocks.take(KeptBlocks::most_block + 1);
    EXPECT_FALSE(blocks.give(large));
    memory->release(large);
    int other = 0;
    EXPECT_FALSE(blocks.give(&other));
    std::vector<void*> many;
    for (size_t bytes = 0; bytes <= KeptBlocks::most_bytes; bytes += KeptBlocks::most_block) {
        many.push_back(blocks.take(KeptBlocks::most_block));
    }
    for (size_t i = 0; i + 1 < many.size(); ++i) {
        EXPECT_TRUE(blocks.give(many[i]));
    }
    EXPECT_FALSE(blocks.give(many.back())) << "enough is kept";
    memory->release(many.back());
    EXPECT_FALSE(memory->blocks.empty());
    blocks.release();
    EXPECT_TRUE(memory->blocks.empty());
}

TEST(KeptBlocks, NothingIsLostWhereMemoryRunsOut) {
    auto memory = std::make_shared<CountingMemory>();
    memory->room = 10240;
    KeptBlocks blocks(memory);
    void* a = blocks.take(6000);
    EXPECT_THROW(blocks.take(6000), Error);
    EXPECT_TRUE(blocks.give(a));
    EXPECT_THROW(blocks.take(9200), Error);
    blocks.release();
    EXPECT_TRUE(blocks.give(blocks.take(9200)));
}

} // namespace
} // namespace ingot::ort
