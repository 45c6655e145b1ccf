// SPDX-License-Identifier: Apache-2.0
// Memory is released: ten thousand contexts, hundreds of engines, and runs that allocate nothing.
// On the CPU backend and on a GPU with a counting driver and kernels that do nothing.
#include "api/memory_fixture.h"
#include "counts.h"

#include <malloc.h>

namespace ingot::test {
namespace {

TEST_P(MemoryBalance, TenThousandContextsLeaveNothing) {
    AlignedBytes bytes = small_engine();
    std::unique_ptr<nvinfer1::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(run_once(*engine)) << logger.take_error();
    }
    int64_t blocks = settled_allocations();
    std::string device = alive_on_device();
    size_t heap = mallinfo2().uordblks;
    int contexts = sanitized ? 200 : 10000;
    for (int i = 0; i < contexts; ++i) {
        ASSERT_TRUE(run_once(*engine)) << logger.take_error();
    }
    // A leak is one block per context; GPU caches by address grow to a bound.
    EXPECT_LT(settled_allocations() - blocks, GetParam() ? contexts / 20 : 1);
    EXPECT_EQ(alive_on_device(), device);
    if (!sanitized) {
        // Allocations of C libraries: less than 4 bytes a context.
        EXPECT_LT(static_cast<int64_t>(mallinfo2().uordblks) - static_cast<int64_t>(heap), 40000);
    }
    record_injections(contexts, 0);
}

TEST_P(MemoryBalance, EnginesLeaveNothing) {
    AlignedBytes bytes = small_engine();
    auto once = [&] {
        std::unique_ptr<nvinfer1::ICudaEngine> engine(
            runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
        ASSERT_NE(engine, nullptr) << logger.take_error();
        ASSERT_TRUE(run_once(*engine)) << logger.take_error();
    };
    for (int i = 0; i < 10; ++i) {
        once();
    }
    int64_t blocks = settled_allocations();
    std::string device = alive_on_device();
    int engines = sanitized || GetParam() ? 40 : 300;
    for (int i = 0; i < engines; ++i) {
        once();
    }
    EXPECT_LT(settled_allocations() - blocks, GetParam() ? engines : 1);
    EXPECT_EQ(alive_on_device(), device);
    record_injections(engines, 0);
}

TEST_P(MemoryBalance, RunsAllocateNothing) {
    if (sanitized) {
        GTEST_SKIP() << "a sanitizer has its own operator new";
    }
    AlignedBytes bytes = small_engine();
    std::unique_ptr<nvinfer1::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    std::unique_ptr<nvinfer1::IExecutionContext> c(engine->createExecutionContext());
    alignas(256) std::array<float, 128> x{};
    alignas(256) std::array<float, 128> y{};
    ASSERT_TRUE(c->setInputShape("x", dims({2, 16})));
    c->setTensorAddress("x", x.data());
    c->setTensorAddress("y", y.data());
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    }
    settled_allocations(); // kernels arrive
    int64_t count = allocation_count();
    size_t heap = mallinfo2().uordblks;
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    }
    if (!GetParam()) { // the counting driver allocates itself
        EXPECT_EQ(allocation_count(), count);
    }
    EXPECT_LE(mallinfo2().uordblks, heap);
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryBalance, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
