// SPDX-License-Identifier: Apache-2.0
// Threads: concurrent use of one context is reported; contexts of one engine run concurrently.
#include "api/runtime_fixture.h"

#include <condition_variable>
#include <thread>

namespace ingot::test {
namespace {

class ContextThreads : public RuntimeTest {};

/// Stops a run in the middle until it is released.
class Gate : public nvinfer1::IOutputAllocator {
public:
    explicit Gate(DeviceMemory& memory) : memory_(memory) {}
    void* reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t,
                                cudaStream_t) override {
        std::unique_lock lock(mutex_);
        inside_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return open_; });
        return memory_.allocate(static_cast<int64_t>(size));
    }
    void notifyShape(const char*, const nvinfer1::Dims&) noexcept override {}
    void wait_inside() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return inside_; });
    }
    void open() {
        std::scoped_lock lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }

private:
    DeviceMemory& memory_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool inside_ = false;
    bool open_ = false;
};

TEST_P(ContextThreads, TwoThreadsOnOneContextAreReported) {
    auto engine = load(*two_results());
    auto c = context(*engine);
    Gate gate(*memory);
    void* z = memory->allocate(16);
    c->setInputShape("x", dims({2, 2}));
    c->setTensorAddress("x", memory->floats({1, 2, 3, 4}));
    c->setOutputAllocator("y", &gate);
    c->setTensorAddress("z", z);
    std::thread runner([&] { EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.take_error(); });
    gate.wait_inside();
    const std::string text =
        ": this context is in use by another thread; give each thread a context of its own";
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_EQ(logger.take_error(), "IExecutionContext::enqueueV3" + text);
    EXPECT_FALSE(c->setInputShape("x", dims({4, 2})));
    EXPECT_EQ(logger.take_error(), "IExecutionContext::setInputShape" + text);
    EXPECT_FALSE(c->setTensorAddress("z", nullptr));
    EXPECT_EQ(logger.take_error(), "IExecutionContext::setTensorAddress" + text);
    EXPECT_EQ(c->getTensorShape("y").nbDims, -1);
    EXPECT_EQ(logger.take_error(), "IExecutionContext::getTensorShape" + text);
    gate.open();
    runner.join();
    EXPECT_EQ(values_at(z, 4), (std::vector<float>{2, 6, 4, 8}));
    EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
}

/// Queries the context from within its run.
class Curious : public nvinfer1::IOutputAllocator {
public:
    void* reallocateOutputAsync(const char*, void* current, uint64_t, uint64_t,
                                cudaStream_t) override {
        asked = sizes(context->getTensorShape("y"));
        return current;
    }
    void notifyShape(const char*, const nvinfer1::Dims&) noexcept override {}
    nvinfer1::IExecutionContext* context = nullptr;
    std::vector<int64_t> asked;
};

TEST_P(ContextThreads, CallbacksMayAskTheContext) {
    auto engine = load(*two_results());
    auto c = context(*engine);
    Curious curious;
    curious.context = c.get();
    c->setInputShape("x", dims({2, 2}));
    c->setTensorAddress("x", memory->floats({1, 2, 3, 4}));
    c->setTensorAddress("y", memory->allocate(16));
    c->setOutputAllocator("y", &curious);
    c->setTensorAddress("z", memory->allocate(16));
    EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(curious.asked, (std::vector<int64_t>{2, 2}));
}

TEST_P(ContextThreads, EightThreadsOnOneEngine) {
    AlignedBytes bytes = engine_bytes(*two_results());
    auto engine = load(bytes);
    int runs = GetParam() ? 5 : 100;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            auto c = context(*engine);
            ASSERT_NE(c, nullptr) << logger.take_error();
            EXPECT_EQ(engine->getNbIOTensors(), 3);
            EXPECT_GT(engine->getNbLayers(), 0);
            EXPECT_GE(engine->getDeviceMemorySizeV2(), 0);
            auto v = static_cast<float>(t);
            float* x = memory->floats({v, v + 1, v + 2, v + 3});
            void* y = memory->allocate(16);
            void* z = memory->allocate(16);
            c->setTensorAddress("x", x);
            c->setTensorAddress("y", y);
            c->setTensorAddress("z", z);
            for (int i = 0; i < runs; ++i) {
                bool two = i % 2 == 0;
                c->setInputShape("x", two ? dims({2, 2}) : dims({1, 2}));
                ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
                ASSERT_EQ(values_at(y, 2), (std::vector<float>{v + 1, v + 2}));
                ASSERT_EQ(values_at(z, 2), two ? (std::vector<float>{2 * v, 2 * v + 4})
                                               : (std::vector<float>{2 * v, 2 * v + 2}));
            }
            // Loading is thread safe too.
            auto own = load(bytes);
            ASSERT_NE(own, nullptr);
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    EXPECT_EQ(logger.take_error(), "");
}

INSTANTIATE_TEST_SUITE_P(Devices, ContextThreads, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
