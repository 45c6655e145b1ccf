// SPDX-License-Identifier: Apache-2.0
// RunSettings: a change applies from the next run on, and a failed change changes nothing.
#include "backends/backends.h"
#include "base/error.h"
#include "engine/engine.h"
#include "error_of.h"
#include "ops/ops.h"
#include "plan/run_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <new>
#include <vector>

namespace ingot {
namespace {

using test::error_of;

struct CountedSteps : StepTimer {
    void step(const StepInfo&, double) noexcept override { ++steps; }
    int steps = 0;
};

// Counts its allocations of system memory.
struct CountedMemory : MemorySource {
    std::byte* allocate(int64_t bytes) noexcept override {
        ++blocks;
        return static_cast<std::byte*>(
            ::operator new (static_cast<size_t>(bytes), std::align_val_t{256}, std::nothrow));
    }
    void release(std::byte* memory) noexcept override {
        --blocks;
        ::operator delete (memory, std::align_val_t{256});
    }
    int blocks = 0;
};

// The first product is an activation.
std::shared_ptr<const Engine> engine() {
    Graph g("settings");
    Value x = g.add_input("x", parse_type("f32[64,64]"));
    Value a = ops::matmul(g, x, x);
    g.set_value_name(a, "a"); // observers see values with names
    g.add_output("y", ops::matmul(g, a, a));
    return Engine::create(std::move(g), {}, {});
}

struct RunSettingsOnTheCpu : ::testing::Test {
    Context context{engine(), cpu_backend()};
    Execution& e = context.execution();
    Tensor x = Tensor::zeros(DType::F32, {64, 64});

    void SetUp() override {
        for (int64_t i = 0; i < x.count(); ++i) {
            x.set_f64(i, static_cast<double>(i % 7) / 8);
        }
    }
    double run() { return context.run(std::array{x})[0].get_f64(65); }
};

TEST_F(RunSettingsOnTheCpu, OneChangeLeavesTheOthers) {
    CountedSteps timer;
    int seen = 0;
    e.change([&](RunSettings& s) { s.timer = &timer; });
    e.change([&](RunSettings& s) { s.observer = [&](const ObservedValue&) { ++seen; }; });
    EXPECT_EQ(e.settings().timer, &timer);
    run();
    EXPECT_EQ(timer.steps, 2);
    EXPECT_GT(seen, 0);
    e.change([](RunSettings& s) { s.observer = {}; });
    seen = 0;
    run();
    EXPECT_EQ(timer.steps, 4);
    EXPECT_EQ(seen, 0);
    e.configure({});
    run();
    EXPECT_EQ(timer.steps, 4);
}

TEST_F(RunSettingsOnTheCpu, AFailureChangesNothing) {
    CountedSteps timer;
    int communicator = 0;
    EXPECT_EQ(error_of([&] {
                  e.change([&](RunSettings& s) {
                      s.timer = &timer;
                      s.cache_limit = 1;
                  });
              }),
              "1 bytes of cache cannot be kept, at most 0 can on this device");
    EXPECT_NE(error_of([&] {
                  e.change([&](RunSettings& s) {
                      s.timer = &timer;
                      s.communicator = &communicator;
                  });
              }),
              "");
    EXPECT_EQ(e.settings().timer, nullptr);
    EXPECT_EQ(e.settings().cache_limit, 0);
    EXPECT_EQ(e.settings().communicator, nullptr);
    run();
    EXPECT_EQ(timer.steps, 0);
}

TEST_F(RunSettingsOnTheCpu, ActivationsLieInLentMemory) {
    double expected = run();
    int64_t bytes = e.activation_bytes(std::array{Shape{64, 64}});
    ASSERT_GE(bytes, 64 * 64 * 4);
    std::vector<std::byte> room(static_cast<size_t>(bytes) + 64, std::byte{0xCB});
    std::byte* start = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64;
    e.change([&](RunSettings& s) { s.activations = {start, bytes}; });
    EXPECT_EQ(run(), expected);
    EXPECT_NE(std::count(start, start + bytes, std::byte{0xCB}), bytes) << "it was not used";
    e.change([&](RunSettings& s) { s.activations = {start, bytes - 1}; });
    EXPECT_NE(error_of([&] { run(); }).find(str("activations take ", bytes, " bytes")),
              std::string::npos);
    e.change([](RunSettings& s) { s.activations = {}; });
    EXPECT_EQ(run(), expected);
}

TEST_F(RunSettingsOnTheCpu, MemoryGoesBackToItsSource) {
    double expected = run();
    e.give_back_memory();
    EXPECT_EQ(e.memory_use().activations, 0);
    auto memory = std::make_shared<CountedMemory>();
    e.change([&](RunSettings& s) { s.memory = memory; });
    EXPECT_EQ(run(), expected);
    EXPECT_GT(memory->blocks, 0);
    e.give_back_memory();
    EXPECT_EQ(memory->blocks, 0);
}

} // namespace
} // namespace ingot
