// SPDX-License-Identifier: Apache-2.0
// Memory of contexts: strategies, exact sizes, memory from the application, allocators, and
// complete release.
#include "api/runtime_fixture.h"
#include "counts.h"

#include <atomic>
#include <fstream>
#include <map>

namespace ingot::test {
namespace {

using nvinfer1::ExecutionContextAllocationStrategy;

/// Gives memory of the device, counts it, and refuses from the n-th block on.
class CountingAllocator : public nvinfer1::IGpuAllocator {
public:
    explicit CountingAllocator(cuda::Gpu* gpu) : gpu_(gpu) {}
    void* allocateAsync(const uint64_t size, const uint64_t alignment,
                        const nvinfer1::AllocatorFlags, cudaStream_t) noexcept override {
        std::scoped_lock lock(mutex_);
        EXPECT_EQ(alignment, 256U);
        if (size == 0 || blocks_given == refuse_from) {
            return nullptr;
        }
        ++blocks_given;
        std::byte* p = allocate_memory(gpu_, size);
        live_[p] = size;
        return p;
    }
    bool deallocateAsync(void* const memory, cudaStream_t) noexcept override {
        std::scoped_lock lock(mutex_);
        EXPECT_EQ(live_.erase(memory), 1U);
        release_memory(gpu_, memory);
        return true;
    }
    size_t live() const { return live_.size(); }
    int64_t blocks_given = 0;
    int64_t refuse_from = -1;

private:
    cuda::Gpu* gpu_;
    std::mutex mutex_;
    std::map<void*, uint64_t> live_;
};

/// A chain that needs memory for activations: reductions that nothing fuses away.
std::shared_ptr<const Engine> chain(bool with_profile = true) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,64]"));
    Value s = ops::softmax(g, x, 1);
    Value t = ops::softmax(g, ops::permute(g, s, {1, 0}), 1);
    g.add_output("y", ops::softmax(g, ops::permute(g, t, {1, 0}), 1));
    std::vector<Profile> profiles;
    if (with_profile) {
        profiles.push_back({{{"x", {1, 64}, {4, 64}, {8, 64}}}});
        profiles.push_back({{{"x", {8, 64}, {16, 64}, {32, 64}}}});
    }
    return Engine::create(std::move(g), std::move(profiles), {});
}

class ContextMemory : public RuntimeTest {
protected:
    std::unique_ptr<nvinfer1::IExecutionContext>
    context_with(nvinfer1::ICudaEngine& engine, ExecutionContextAllocationStrategy s) const {
        return std::unique_ptr<nvinfer1::IExecutionContext>(engine.createExecutionContext(s));
    }
    /// The result for rows of ascending numbers.
    std::vector<float> run(nvinfer1::IExecutionContext& c, int64_t rows) {
        std::vector<float> x(static_cast<size_t>(rows * 64));
        for (size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<float>(i % 7) * 0.25F;
        }
        auto bytes = static_cast<int64_t>(x.size() * sizeof(float));
        void* y = memory->allocate(bytes);
        EXPECT_TRUE(c.setInputShape("x", dims({rows, 64}))) << logger.take_error();
        c.setTensorAddress("x", memory->floats(x));
        c.setTensorAddress("y", y);
        return c.enqueueV3(nullptr) ? values_at(y, x.size()) : std::vector<float>{};
    }
};

TEST_P(ContextMemory, SizesAreThoseOfTheLargestShapes) {
    auto engine = load(*chain());
    int64_t small = engine->getDeviceMemorySizeForProfileV2(0);
    int64_t large = engine->getDeviceMemorySizeForProfileV2(1);
    EXPECT_GE(small, 8 * 64 * 4);
    EXPECT_GE(large, 32 * 64 * 4);
    EXPECT_EQ(engine->getDeviceMemorySizeV2(), std::max(small, large));
    EXPECT_EQ(engine->getDeviceMemorySizeForProfileV2(2), -1);
    EXPECT_EQ(logger.take_error(), "ICudaEngine::getDeviceMemorySizeForProfileV2: profile 2 does "
                                   "not exist, the engine has 2");
}

TEST_P(ContextMemory, WithoutAProfileNothingBoundsOpenSizes) {
    auto engine = load(*chain(false));
    const std::string why = ": no profile says how large input 'x' can be, so that nothing bounds "
                            "the memory: build with an optimisation profile, or ask "
                            "IExecutionContext::updateDeviceMemorySizeForShapes() for the shapes "
                            "that are set";
    EXPECT_EQ(engine->getDeviceMemorySizeV2(), -1);
    EXPECT_EQ(logger.take_error(), "ICudaEngine::getDeviceMemorySizeV2" + why);
    EXPECT_EQ(engine->getDeviceMemorySizeForProfileV2(0), -1);
    EXPECT_EQ(logger.take_error(), "ICudaEngine::getDeviceMemorySizeForProfileV2" + why);
    auto c = context(*engine);
    ASSERT_TRUE(c->setInputShape("x", dims({8, 64})));
    EXPECT_GE(c->updateDeviceMemorySizeForShapes(), 8U * 64 * 4);
}

TEST_P(ContextMemory, MemoryOfTheApplication) {
    auto engine = load(*chain());
    auto own = context(*engine);
    std::vector<float> expected = run(*own, 8);
    ASSERT_FALSE(expected.empty()) << logger.take_error();
    auto c = context_with(*engine, ExecutionContextAllocationStrategy::kUSER_MANAGED);
    EXPECT_EQ(c->updateDeviceMemorySizeForShapes(), 0U); // nothing is set yet
    EXPECT_NE(logger.take_error(), "");
    int64_t bytes = engine->getDeviceMemorySizeForProfileV2(0);
    EXPECT_TRUE(run(*c, 8).empty());
    EXPECT_EQ(logger.take_error(), str("IExecutionContext::enqueueV3: activations take ", bytes,
                                       " bytes, the memory given for them has 0"));
    EXPECT_EQ(c->updateDeviceMemorySizeForShapes(), static_cast<size_t>(bytes));
    // Exact: one byte less is refused, and no byte beyond is touched.
    auto* block = static_cast<unsigned char*>(memory->allocate(bytes + 256));
    c->setDeviceMemoryV2(block, bytes - 1);
    EXPECT_TRUE(run(*c, 8).empty());
    EXPECT_NE(logger.take_error(), "");
    c->setDeviceMemoryV2(block, bytes);
    EXPECT_EQ(run(*c, 8), expected);
    EXPECT_EQ(block[bytes], 0xCB);
    c->setDeviceMemory(memory->allocate(engine->getDeviceMemorySizeV2()));
    EXPECT_EQ(run(*c, 8), expected);
    // Two contexts take turns on one block.
    auto other = context_with(*engine, ExecutionContextAllocationStrategy::kUSER_MANAGED);
    other->setDeviceMemoryV2(block, bytes);
    c->setDeviceMemoryV2(block, bytes);
    EXPECT_EQ(run(*other, 8), expected);
    EXPECT_EQ(run(*c, 8), expected);
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(ContextMemory, ProfilesChange) {
    auto engine = load(*chain());
    for (auto strategy : {ExecutionContextAllocationStrategy::kSTATIC,
                          ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE}) {
        auto c = context_with(*engine, strategy);
        EXPECT_EQ(c->getOptimizationProfile(), 0);
        EXPECT_FALSE(c->setInputShape("x", dims({32, 64})));
        EXPECT_EQ(logger.take_error(),
                  "IExecutionContext::setInputShape: input 'x' with shape 32x64 is outside the "
                  "engine's profile: dimension 0 is 32, allowed 1 to 8");
        EXPECT_FALSE(run(*c, 8).empty());
        EXPECT_TRUE(c->setOptimizationProfileAsync(1, nullptr));
        EXPECT_EQ(c->getOptimizationProfile(), 1);
        EXPECT_FALSE(c->allInputDimensionsSpecified());
        EXPECT_FALSE(run(*c, 32).empty());
        EXPECT_EQ(logger.take_error(), "");
    }
}

TEST_P(ContextMemory, AnAllocatorGivesEverything) {
    CountingAllocator allocator(gpu.get());
    runtime->setGpuAllocator(&allocator);
    auto engine = load(*chain());
    {
        auto c = context(*engine);
        int64_t after_creation = allocator.blocks_given;
        EXPECT_GT(after_creation, 0);
        std::vector<float> first = run(*c, 8);
        ASSERT_FALSE(first.empty()) << logger.take_error();
        EXPECT_EQ(run(*c, 8), first);
        EXPECT_GT(allocator.live(), 0U);
    }
    engine.reset();
    EXPECT_EQ(allocator.live(), 0U);
}

TEST_P(ContextMemory, TheNthAllocationFails) {
    std::vector<float> expected;
    int64_t n = 0;
    for (bool refused = true; refused; ++n) {
        ASSERT_LT(n, 200);
        CountingAllocator allocator(gpu.get());
        allocator.refuse_from = n;
        runtime->setGpuAllocator(&allocator);
        auto engine = load(*chain());
        refused = true;
        if (engine != nullptr) {
            auto c = context(*engine);
            if (c != nullptr) {
                refused = run(*c, 8).empty();
            }
        }
        std::string error = logger.take_error();
        EXPECT_EQ(refused, !error.empty()) << error;
        if (refused) {
            EXPECT_NE(error.find("does not give"), std::string::npos) << error;
        }
        engine.reset();
        EXPECT_EQ(allocator.live(), 0U) << "allocation " << n;
    }
    EXPECT_GT(n, 1);
    record_injections(n - 1, n - 1);
}

// Sanitizers keep what was freed for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool keeps_freed_memory = true;
#elif defined(__has_feature)
constexpr bool keeps_freed_memory =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool keeps_freed_memory = false;
#endif

/// Resident memory of this process in pages.
int64_t resident_pages() {
    std::ifstream f("/proc/self/statm");
    int64_t all = 0;
    int64_t resident = 0;
    f >> all >> resident;
    return resident;
}

TEST_P(ContextMemory, AThousandContextsLeaveNothing) {
    CountingAllocator allocator(gpu.get());
    runtime->setGpuAllocator(&allocator);
    auto engine = load(*chain());
    auto once = [&] {
        auto c = context(*engine);
        DeviceMemory block(gpu.get());
        c->setInputShape("x", dims({2, 64}));
        c->setTensorAddress("x", block.allocate(512));
        c->setTensorAddress("y", block.allocate(512));
        std::memset(const_cast<void*>(c->getTensorAddress("x")), 0, 512);
        ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    };
    int warm_up = 50;
    int runs = GetParam() ? 100 : 1000;
    for (int i = 0; i < warm_up; ++i) {
        once();
    }
    size_t live = allocator.live();
    int64_t pages = resident_pages();
    for (int i = 0; i < runs; ++i) {
        once();
    }
    EXPECT_EQ(allocator.live(), live);
    if (!keeps_freed_memory) {
        EXPECT_LT(resident_pages() - pages, 512); // 2 MiB: less than 2 KiB a context
    }
    engine.reset();
    EXPECT_EQ(allocator.live(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Devices, ContextMemory, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
