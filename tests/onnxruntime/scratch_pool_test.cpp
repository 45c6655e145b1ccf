// SPDX-License-Identifier: Apache-2.0
// Scratch memory that runs share, and contexts by the graphs that they hold.
#include "error_of.h"
#include "onnxruntime/counting_memory.h"
#include "plugins/onnxruntime/idle_contexts.h"
#include "plugins/onnxruntime/scratch_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

namespace ingot::ort {
namespace {

using ingot::test::error_of;
using test::CountingMemory;
using test::stream;

constexpr size_t unit = 64 << 10U;

TEST(ScratchPool, RunsOneAfterAnotherShareTheLargestBlock) {
    auto memory = std::make_shared<CountingMemory>();
    ScratchPool pool(memory, std::make_shared<OwnStreams>(memory));
    const void* before = nullptr;
    for (size_t units : {1, 3, 2, 3, 1}) {
        ScratchPool::Lease lease = pool.take(units * unit - 5, stream(1), before);
        EXPECT_GE(lease.bytes(), units * unit - 5);
        EXPECT_TRUE(before == nullptr || units == 3 || lease.memory() == before);
        before = lease.memory();
    }
    EXPECT_EQ(memory->allocations, 2);
    EXPECT_EQ(pool.held_bytes(), 3 * unit);
    EXPECT_EQ(pool.take(0, stream(1), nullptr).memory(), nullptr);
    EXPECT_EQ(memory->log, "start 1; record 1; start 1; record 1; wait 1; record 1; wait 1; "
                           "record 1; wait 1; record 1; ");
    pool.shrink();
    EXPECT_EQ(pool.held_bytes(), 0U);
    EXPECT_TRUE(memory->blocks.empty() && memory->events.empty());
}

TEST(ScratchPool, RunsBesideEachOtherHaveBlocksOfTheirOwnAndGetThemAgain) {
    auto memory = std::make_shared<CountingMemory>();
    ScratchPool pool(memory, std::make_shared<OwnStreams>(memory));
    const void* a = nullptr;
    const void* b = nullptr;
    {
        ScratchPool::Lease first = pool.take(unit, stream(1), nullptr);
        ScratchPool::Lease second = pool.take(2 * unit, stream(2), nullptr);
        a = first.memory();
        b = second.memory();
        EXPECT_NE(a, b);
    }
    // Recorded graphs hold addresses: the preferred block, though a smaller one fits as well.
    EXPECT_EQ(pool.take(unit, stream(3), b).memory(), b);
    EXPECT_EQ(pool.take(unit, stream(3), nullptr).memory(), a);
    EXPECT_EQ(memory->allocations, 2);
    EXPECT_NE(memory->log.find("wait 3"), std::string::npos); // for work on the other streams
}

TEST(ScratchPool, LastUserGivesEverythingBack) {
    auto memory = std::make_shared<CountingMemory>();
    auto pool = std::make_shared<ScratchPool>(memory, std::make_shared<OwnStreams>(memory));
    auto first = std::make_unique<ScratchUser>(pool);
    auto second = std::make_unique<ScratchUser>(pool);
    pool->take(unit, stream(1), nullptr);
    first.reset();
    EXPECT_EQ(pool->held_bytes(), unit);
    second.reset();
    EXPECT_EQ(pool->held_bytes(), 0U);
    EXPECT_EQ(ScratchUser(nullptr).pool(), nullptr);
}

TEST(ScratchPool, LackOfMemoryIsAnErrorAndLeavesThePoolWhole) {
    auto memory = std::make_shared<CountingMemory>();
    memory->room = 3 * unit;
    ScratchPool pool(memory, std::make_shared<OwnStreams>(memory));
    pool.take(2 * unit, stream(1), nullptr);
    EXPECT_EQ(error_of([&] { pool.take(4 * unit, stream(1), nullptr); }),
              str("scratch memory for a run: no ", 4 * unit, " bytes left"));
    EXPECT_EQ(pool.take(3 * unit, stream(1), nullptr).bytes(), 3 * unit);
    EXPECT_EQ(memory->events.size(), 1U);
}

TEST(ScratchPool, CapturedStreamWaitsForNothing) {
    auto memory = std::make_shared<CountingMemory>();
    ScratchPool pool(memory, std::make_shared<OwnStreams>(memory));
    pool.take(unit, stream(1), nullptr);
    memory->captured = true;
    memory->log.clear();
    ScratchPool::Lease lease = pool.take(unit, stream(2), nullptr);
    EXPECT_EQ(memory->log, "");
    lease = {};
    memory->passed = false;
    EXPECT_EQ(error_of([&] { pool.take(unit, stream(2), nullptr); }),
              "the stream is captured while earlier runs go on: wait for them before");
}

/// A pool, and streams 1 and 2 of the plugin's own.
struct OwnStreamsTest : ::testing::Test {
    OwnStreamsTest() {
        for (uintptr_t number : {1, 2}) {
            memory->next_stream = number;
            streams->create(RunPriority::Normal);
        }
    }
    std::shared_ptr<CountingMemory> memory = std::make_shared<CountingMemory>();
    std::shared_ptr<OwnStreams> streams = std::make_shared<OwnStreams>(memory);
    ScratchPool pool{memory, streams};
};

TEST_F(OwnStreamsTest, RunsOfOneStreamNeedNoEvents) {
    for (int i = 0; i < 3; ++i) {
        pool.take(unit, stream(1), nullptr);
    }
    EXPECT_EQ(memory->log, "start 1; "); // for new memory
    memory->log.clear();
    pool.take(unit, stream(2), nullptr);
    EXPECT_EQ(memory->log, "record 1; wait 2; ");
    memory->log.clear();
    pool.take(unit, stream(3), nullptr); // the application's: it may end at any time
    EXPECT_EQ(memory->log, "record 2; wait 3; record 3; ");
    memory->log.clear();
    pool.take(unit, stream(3), nullptr); // it may be another by now
    EXPECT_EQ(memory->log, "wait 3; record 3; ");
    EXPECT_EQ(memory->allocations, 1);
}

TEST_F(OwnStreamsTest, WorkOfAStreamIsOverWhenItEnds) {
    pool.take(unit, stream(1), nullptr);
    memory->log.clear();
    streams->release(stream(1));
    EXPECT_EQ(memory->log, "finish 1; release 1; ");
    memory->log.clear();
    pool.take(unit, stream(2), nullptr);
    EXPECT_EQ(memory->log, "start 2; "); // nothing is recorded on a stream that is no more
}

TEST_F(OwnStreamsTest, CaptureOfSuchAStreamIsRefused) {
    pool.take(unit, stream(1), nullptr);
    memory->captured = true;
    memory->log.clear();
    EXPECT_EQ(error_of([&] { pool.take(unit, stream(1), nullptr); }),
              "a stream of the provider is captured, expected one of the application: pass it as "
              "user_compute_stream");
    EXPECT_EQ(memory->log, "");
    memory->captured = false;
    pool.take(unit, stream(1), nullptr);
    EXPECT_EQ(memory->log, ""); // the block is still the stream's
}

struct FakeContext {
    std::optional<int64_t> graph;
    int number = 0;
};

/// The contexts that runs with these ids use one after another, as text; 'n' makes a new one.
std::string used(IdleContexts<FakeContext>& idle,
                 const std::vector<std::optional<int64_t>>& graphs) {
    static int made = 0;
    made = 0;
    std::string out;
    for (const auto& graph : graphs) {
        std::unique_ptr<FakeContext> c = idle.take(graph);
        if (c == nullptr) {
            c = std::make_unique<FakeContext>(FakeContext{graph, made++});
            out += 'n';
        }
        EXPECT_EQ(c->graph, graph);
        out += str(c->number, ' ');
        idle.give(std::move(c));
    }
    return out;
}

TEST(IdleContexts, EachGraphIdHasItsContext) {
    IdleContexts<FakeContext> idle(16);
    EXPECT_EQ(used(idle, {0, 1, 0, 1, std::nullopt, 0, std::nullopt, 2, 1}),
              "n0 n1 0 1 n2 0 2 n3 1 ");
}

TEST(IdleContexts, IdUsedLeastRecentlyGivesItsContext) {
    IdleContexts<FakeContext> idle(2);
    // 2 takes that of 1; a run without a graph takes none of these.
    EXPECT_EQ(used(idle, {0, 1, 0, 2, 0, 2, std::nullopt, 1}), "n0 n1 0 1 0 1 n2 0 ");
    EXPECT_EQ(idle.size(), 3U);
}

} // namespace
} // namespace ingot::ort
