// SPDX-License-Identifier: Apache-2.0
// The source of memory, its time, and the log lines about it: strategies, kinds of allocators,
// limits.
#include "NvInfer.h"
#include "api/runtime_fixture.h"

#include <atomic>
#include <map>
#include <regex>

namespace ingot::test {
namespace {

using nvinfer1::ExecutionContextAllocationStrategy;

/// Memory of the device, with a record of every block.
class Blocks {
public:
    explicit Blocks(cuda::Gpu* gpu) : gpu_(gpu) {}
    ~Blocks() { EXPECT_TRUE(live_.empty()) << live_.size() << " blocks were not given back"; }
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;
    void* give(uint64_t size) {
        std::scoped_lock lock(mutex_);
        std::byte* p = allocate_memory(gpu_, size);
        live_[p] = size;
        ++given;
        return p;
    }
    bool take(void* p) {
        std::scoped_lock lock(mutex_);
        EXPECT_EQ(live_.erase(p), 1U) << "a block of somebody else";
        release_memory(gpu_, p);
        return true;
    }
    uint64_t live_bytes() {
        std::scoped_lock lock(mutex_);
        uint64_t sum = 0;
        for (const auto& [p, size] : live_) {
            sum += size;
        }
        return sum;
    }
    bool holds(uint64_t size) {
        std::scoped_lock lock(mutex_);
        return std::any_of(live_.begin(), live_.end(),
                           [size](const auto& b) { return b.second == size; });
    }
    std::atomic<int64_t> given{0};

private:
    cuda::Gpu* gpu_;
    std::mutex mutex_;
    std::map<void*, uint64_t> live_;
};

class Allocator : public nvinfer1::IGpuAllocator {
public:
    explicit Allocator(cuda::Gpu* gpu) : blocks(gpu) {}
    void* allocateAsync(const uint64_t size, const uint64_t, const nvinfer1::AllocatorFlags,
                        cudaStream_t) noexcept override {
        return blocks.give(size);
    }
    bool deallocateAsync(void* const memory, cudaStream_t) noexcept override {
        return blocks.take(memory);
    }
    Blocks blocks;
};

/// In the form of programs of older generations.
class OldAllocator : public nvinfer1::IGpuAllocator {
public:
    explicit OldAllocator(cuda::Gpu* gpu) : blocks(gpu) {}
    void* allocate(const uint64_t size, const uint64_t,
                   const nvinfer1::AllocatorFlags) noexcept override {
        return blocks.give(size);
    }
    bool deallocate(void* const memory) noexcept override { return blocks.take(memory); }
    Blocks blocks;
};

class AsyncAllocator : public nvinfer1::IGpuAsyncAllocator {
public:
    explicit AsyncAllocator(cuda::Gpu* gpu) : blocks(gpu) {}
    void* allocateAsync(const uint64_t size, const uint64_t, const nvinfer1::AllocatorFlags,
                        cudaStream_t) noexcept override {
        return blocks.give(size);
    }
    bool deallocateAsync(void* const memory, cudaStream_t) noexcept override {
        return blocks.take(memory);
    }
    Blocks blocks;
};

/// Softmaxes that no pass fuses, over [N, 64]: profiles of up to 8 and up to 32 rows.
std::shared_ptr<const Engine> chain(const api::BuildSettings& settings = {}) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,64]"));
    Value v = x;
    for (int i = 0; i < 6; ++i) {
        v = ops::softmax(g, ops::permute(g, v, {1, 0}), 1);
    }
    g.add_output("y", v);
    Properties properties;
    api::put_build_settings(settings, properties);
    return Engine::create(
        std::move(g),
        {{{{"x", {1, 64}, {4, 64}, {8, 64}}}}, {{{"x", {8, 64}, {16, 64}, {32, 64}}}}},
        std::move(properties));
}

/// A product with 64 x 32 weights.
std::shared_ptr<const Engine> weighted() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4,64]"));
    Tensor w = Tensor::empty(DType::F32, {64, 32});
    for (int64_t i = 0; i < w.count(); ++i) {
        w.set_f64(i, static_cast<double>(i % 3) - 1);
    }
    g.add_output("y", ops::matmul(g, x, ops::constant(g, w)));
    return Engine::create(std::move(g), {}, {});
}

class MemoryStrategies : public RuntimeTest {
protected:
    static std::unique_ptr<nvinfer1::IExecutionContext>
    context_with(nvinfer1::ICudaEngine& engine, ExecutionContextAllocationStrategy s) {
        return std::unique_ptr<nvinfer1::IExecutionContext>(engine.createExecutionContext(s));
    }
    bool run(nvinfer1::IExecutionContext& c, int64_t rows, int64_t columns = 64) {
        auto bytes = rows * columns * 4;
        void* x = memory->allocate(bytes);
        std::memset(x, 0, static_cast<size_t>(bytes));
        bool ok = c.setTensorAddress("x", x) && c.setTensorAddress("y", memory->allocate(bytes));
        return ok && c.setInputShape("x", dims({rows, columns})) && c.enqueueV3(nullptr);
    }
    /// Lines at kINFO that match.
    size_t count_lines(const std::string& pattern) {
        std::regex r(pattern);
        std::vector<std::string> lines = logger.infos();
        return static_cast<size_t>(
            std::count_if(lines.begin(), lines.end(),
                          [&r](const std::string& l) { return std::regex_match(l, r); }));
    }
};

TEST_P(MemoryStrategies, StaticMemoryIsThereBeforeTheFirstRun) {
    Allocator allocator(gpu.get());
    runtime->setGpuAllocator(&allocator);
    auto engine = load(*chain());
    auto c = context(*engine);
    ASSERT_NE(c, nullptr) << logger.take_error();
    EXPECT_TRUE(allocator.blocks.holds(static_cast<uint64_t>(engine->getDeviceMemorySizeV2())));
    int64_t given = allocator.blocks.given;
    EXPECT_TRUE(run(*c, 8)) << logger.take_error();
    EXPECT_TRUE(c->setOptimizationProfileAsync(1, nullptr));
    EXPECT_TRUE(run(*c, 32)) << logger.take_error();
    EXPECT_EQ(allocator.blocks.given, given);
}

TEST_P(MemoryStrategies, EachProfileHasItsOwnMemory) {
    Allocator allocator(gpu.get());
    runtime->setGpuAllocator(&allocator);
    auto engine = load(*chain());
    auto small = static_cast<uint64_t>(engine->getDeviceMemorySizeForProfileV2(0));
    auto large = static_cast<uint64_t>(engine->getDeviceMemorySizeForProfileV2(1));
    ASSERT_LT(small, large);
    auto c = context_with(*engine, ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE);
    ASSERT_NE(c, nullptr) << logger.take_error();
    EXPECT_TRUE(allocator.blocks.holds(small));
    EXPECT_FALSE(allocator.blocks.holds(large));
    EXPECT_TRUE(run(*c, 8)) << logger.take_error();
    EXPECT_TRUE(c->setOptimizationProfileAsync(1, nullptr));
    EXPECT_FALSE(allocator.blocks.holds(small));
    EXPECT_TRUE(allocator.blocks.holds(large));
    EXPECT_TRUE(run(*c, 32)) << logger.take_error();
    EXPECT_TRUE(c->setOptimizationProfileAsync(0, nullptr));
    EXPECT_TRUE(allocator.blocks.holds(small));
    EXPECT_FALSE(allocator.blocks.holds(large));
    EXPECT_TRUE(run(*c, 8)) << logger.take_error();
}

TEST_P(MemoryStrategies, UserManagedContextsAllocateNoActivations) {
    Allocator allocator(gpu.get());
    runtime->setGpuAllocator(&allocator);
    auto engine = load(*chain());
    auto c = context_with(*engine, ExecutionContextAllocationStrategy::kUSER_MANAGED);
    ASSERT_NE(c, nullptr) << logger.take_error();
    int64_t given = allocator.blocks.given;
    int64_t bytes = engine->getDeviceMemorySizeV2();
    c->setDeviceMemoryV2(memory->allocate(bytes), bytes);
    EXPECT_TRUE(run(*c, 8)) << logger.take_error();
    EXPECT_EQ(allocator.blocks.given, given);
}

TEST_P(MemoryStrategies, MemoryIsSharedByTensorsThatDoNotLiveTogether) {
    auto engine = load(*chain());
    int64_t tensor = int64_t{32} * 64 * 4;
    // Five results in between, of which two live at a time.
    EXPECT_GE(engine->getDeviceMemorySizeForProfileV2(1), tensor);
    EXPECT_LT(engine->getDeviceMemorySizeForProfileV2(1), 4 * tensor);
}

template <class A>
void runs_on(nvinfer1::IRuntime& runtime, A& allocator, const AlignedBytes& bytes) {
    runtime.setGpuAllocator(&allocator);
    std::unique_ptr<nvinfer1::ICudaEngine> engine(
        runtime.deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr);
    std::unique_ptr<nvinfer1::IExecutionContext> c(engine->createExecutionContext());
    ASSERT_NE(c, nullptr);
    EXPECT_GT(allocator.blocks.given, 0);
    c.reset();
    engine.reset();
    EXPECT_EQ(allocator.blocks.live_bytes(), 0U);
}

TEST_P(MemoryStrategies, AllocatorsOfAllGenerations) {
    AlignedBytes bytes = engine_bytes(*chain());
    OldAllocator older(gpu.get());
    runs_on(*runtime, older, bytes);
    AsyncAllocator async(gpu.get());
    runs_on(*runtime, async, bytes);
}

TEST_P(MemoryStrategies, WeightsComeFromTheAllocator) {
    constexpr uint64_t weight_bytes = 64 * 32 * 4;
    Allocator allocator(gpu.get());
    runtime->setGpuAllocator(&allocator);
    auto engine = load(*weighted());
    EXPECT_EQ(engine->getEngineStat(nvinfer1::EngineStat::kTOTAL_WEIGHTS_SIZE),
              static_cast<int64_t>(weight_bytes));
    EXPECT_EQ(engine->getEngineStat(nvinfer1::EngineStat::kSTRIPPED_WEIGHTS_SIZE), -1);
    if (!GetParam()) {
        EXPECT_GE(allocator.blocks.live_bytes(), weight_bytes); // they are read in place
    }
    auto c = context(*engine);
    ASSERT_TRUE(run(*c, 4)) << logger.take_error();
    uint64_t one = allocator.blocks.live_bytes();
    EXPECT_GE(one, weight_bytes);
    // Contexts of one engine share them.
    auto other = context(*engine);
    ASSERT_TRUE(run(*other, 4)) << logger.take_error();
    EXPECT_LT(allocator.blocks.live_bytes() - one, weight_bytes);
}

TEST_P(MemoryStrategies, TemporaryStorageHasItsOwnAllocator) {
    Allocator of_engine(gpu.get());
    Allocator temporary(gpu.get());
    runtime->setGpuAllocator(&of_engine);
    auto engine = load(*data_decides());
    auto c = context(*engine);
    EXPECT_EQ(c->getTemporaryStorageAllocator(), &of_engine);
    EXPECT_TRUE(c->setTemporaryStorageAllocator(&temporary));
    EXPECT_EQ(c->getTemporaryStorageAllocator(), &temporary);
    class Output : public nvinfer1::IOutputAllocator {
    public:
        void* reallocateOutputAsync(const char*, void*, uint64_t, uint64_t, cudaStream_t) override {
            return memory;
        }
        void notifyShape(const char*, const nvinfer1::Dims&) noexcept override {}
        void* memory = nullptr;
    } output;
    output.memory = memory->allocate(64);
    c->setTensorAddress("x", memory->floats({0, 1, 0, 2, 3}));
    c->setTensorAddress("twice", memory->allocate(20));
    c->setOutputAllocator("where", &output);
    int64_t before = of_engine.blocks.given;
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(values_at(output.memory, 3), (std::vector<float>{1, 3, 4}));
    EXPECT_GT(temporary.blocks.given, 0);
    EXPECT_EQ(of_engine.blocks.given, before);
    EXPECT_TRUE(c->setTemporaryStorageAllocator(nullptr));
    EXPECT_EQ(c->getTemporaryStorageAllocator(), &of_engine);
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
}

TEST_P(MemoryStrategies, TheLogSaysWhatMemoryIsTaken) {
    size_t before = logger.infos().size();
    auto engine = load(*chain());
    auto c = context(*engine);
    std::vector<std::string> lines = logger.infos();
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(before));
    const std::string change = R"(: CPU [+-]\d+, GPU [+-]\d+, now: CPU \d+, GPU \d+ \(MiB\))";
    std::vector<std::string> expected = {
        R"(Loaded engine size: \d+ MiB)",
        R"(Total Weights Memory: \d+ bytes)",
        R"(\[MemUsageChange\] Engine deserialization)" + change,
        R"(\[MemUsageChange\] IExecutionContext creation)" + change,
        R"(Total Host Persistent Memory: \d+ bytes)",
        R"(Total Device Persistent Memory: \d+ bytes)",
        R"(Max Scratch Memory: \d+ bytes)",
        str("Total Activation Memory: ", engine->getDeviceMemorySizeV2(), " bytes")};
    if (GetParam()) {
        expected.push_back(R"(\[MemUsageChange\] Init CUDA)" + change);
    }
    for (const std::string& pattern : expected) {
        std::regex r(pattern);
        EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& l) {
            return std::regex_match(l, r);
        })) << pattern;
    }
}

TEST_P(MemoryStrategies, ALargerRequestFailsAndASmallerOneWorks) {
    class Watermark : public Allocator {
    public:
        using Allocator::Allocator;
        void* allocateAsync(const uint64_t size, const uint64_t alignment,
                            const nvinfer1::AllocatorFlags flags,
                            cudaStream_t stream) noexcept override {
            return size > most ? nullptr : Allocator::allocateAsync(size, alignment, flags, stream);
        }
        uint64_t most = std::numeric_limits<uint64_t>::max();
    } allocator(gpu.get());
    runtime->setGpuAllocator(&allocator);
    auto engine = load(*chain());
    auto c = context_with(*engine, ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE);
    ASSERT_TRUE(run(*c, 8)) << logger.take_error();
    auto large = static_cast<uint64_t>(engine->getDeviceMemorySizeForProfileV2(1));
    allocator.most = large - 1;
    EXPECT_FALSE(c->setOptimizationProfileAsync(1, nullptr));
    std::string error = logger.take_error();
    EXPECT_NE(error.find(str(large, " bytes")), std::string::npos) << error;
    EXPECT_EQ(c->getOptimizationProfile(), 0);
    EXPECT_TRUE(run(*c, 8)) << logger.take_error();
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryStrategies, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

/// A product of few rows and columns and a long depth, which is best split over blocks.
std::shared_ptr<const Engine> deep_product(const api::BuildSettings& settings) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[64,2048]"));
    Tensor w = Tensor::empty(DType::F16, {2048, 64});
    std::memset(w.mutable_bytes().data(), 0, w.bytes().size());
    g.set_origin("deep");
    g.add_output("y", ops::matmul(g, x, ops::constant(g, w), DType::F16));
    Properties properties;
    api::put_build_settings(settings, properties);
    return Engine::create(std::move(g), {}, std::move(properties));
}

/// On a GPU whose blocks add partial sums in global memory.
class MemoryLimits : public RuntimeTest {
protected:
    MemoryLimits() {
        backend.reset();
        gpu = std::make_unique<emulator::EmulatedGpu>(80);
        backend = cuda::make_backend(*gpu);
        api::set_gpu(backend.get());
    }
};

TEST_P(MemoryLimits, TacticsBeyondTheWorkspaceAreSkippedAndTheLogSaysSo) {
    auto free = load(*deep_product({}));
    auto fast = context(*free);
    ASSERT_NE(fast, nullptr) << logger.take_error();
    int64_t most = free->getDeviceMemorySizeV2();
    ASSERT_GT(most, 1000);
    api::BuildSettings settings;
    settings.workspace = 1000;
    auto bounded = load(*deep_product(settings));
    auto c = context(*bounded);
    ASSERT_NE(c, nullptr) << logger.take_error();
    EXPECT_LE(bounded->getDeviceMemorySizeV2(), 1000);
    std::vector<std::string> lines = logger.infos();
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& l) {
        return std::regex_match(l, std::regex("node 'deep' \\(dot\\): tactic \\S+ is skipped, it "
                                              "needs \\d+ bytes of workspace, the limit is 1000"));
    }));
}

TEST_P(MemoryLimits, SharedMemoryIsCapped) {
    api::BuildSettings settings;
    settings.shared_memory = 1000;
    auto engine = load(*deep_product(settings));
    EXPECT_EQ(context(*engine), nullptr);
    EXPECT_EQ(logger.take_error(), "ICudaEngine::createExecutionContext: a cap of 1000 bytes on "
                                   "shared memory; kernels need at least 49152");
    settings.shared_memory = 48 << 10;
    engine = load(*deep_product(settings));
    EXPECT_NE(context(*engine), nullptr) << logger.take_error();
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryLimits, testing::Values(true),
                         [](const auto&) { return "Gpu"; });

class MemoryLimitsOfTheCpu : public RuntimeTest {};

/// A picture enlarged axis by axis, with a workspace between the axes.
std::shared_ptr<const Engine> larger_picture(const api::BuildSettings& settings) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[1,1,16,16]"));
    g.set_origin("larger");
    ops::Resize larger;
    larger.axes = {2, 3};
    larger.sizes = {40, 40};
    larger.mode = "linear";
    g.add_output("y", ops::resize(g, larger, x));
    Properties properties;
    api::put_build_settings(settings, properties);
    return Engine::create(std::move(g), {}, std::move(properties));
}

TEST_P(MemoryLimitsOfTheCpu, AStepThatNeedsMoreSaysHowMuch) {
    api::BuildSettings settings;
    settings.workspace = 0;
    auto engine = load(*larger_picture(settings));
    EXPECT_EQ(context(*engine), nullptr);
    std::string error = logger.take_error();
    EXPECT_TRUE(std::regex_match(
        error,
        std::regex("ICudaEngine::createExecutionContext: .*node 'larger' needs \\d+ bytes of "
                   "workspace, the limit is 0.*")))
        << error;
}

/// Builds that product, for the CPU that picture, with this workspace; null where that fails.
std::unique_ptr<nvinfer1::IHostMemory> build_with_workspace(Logger& logger, Device device,
                                                            size_t bytes) {
    namespace nv = nvinfer1;
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger));
    std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    std::vector<uint16_t> w(size_t{2048} * 64);
    if (device == Device::kCPU) {
        auto* larger =
            network->addResize(*network->addInput("x", nv::DataType::kFLOAT, dims({1, 1, 16, 16})));
        larger->setResizeMode(nv::InterpolationMode::kLINEAR);
        larger->setOutputDimensions(dims({1, 1, 40, 40}));
        larger->setName("larger");
        network->markOutput(*larger->getOutput(0));
        ingot::setDevice(*config, device);
        config->setMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE, bytes);
        return std::unique_ptr<nv::IHostMemory>(builder->buildSerializedNetwork(*network, *config));
    }
    nv::ITensor* x = network->addInput("x", nv::DataType::kHALF, dims({64, 2048}));
    nv::ITensor* k = network
                         ->addConstant(dims({2048, 64}), {nv::DataType::kHALF, w.data(),
                                                          static_cast<int64_t>(w.size())})
                         ->getOutput(0);
    auto* deep =
        network->addMatrixMultiply(*x, nv::MatrixOperation::kNONE, *k, nv::MatrixOperation::kNONE);
    deep->setName("deep");
    network->markOutput(*deep->getOutput(0));
    ingot::setDevice(*config, device);
    config->setMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE, bytes);
    return std::unique_ptr<nv::IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

TEST_P(MemoryLimitsOfTheCpu, ABuildFailsWhereTheWorkspaceDoesNotDo) {
    EXPECT_EQ(build_with_workspace(logger, Device::kCPU, 0), nullptr);
    std::string error = logger.take_error();
    EXPECT_TRUE(std::regex_match(
        error, std::regex("IBuilder::buildSerializedNetwork: .*node 'larger' needs \\d+ bytes of "
                          "workspace, the limit is 0.*")))
        << error;
    EXPECT_NE(build_with_workspace(logger, Device::kCPU, size_t{1} << 30), nullptr)
        << logger.take_error();
    std::vector<std::string> lines = logger.infos();
    for (const char* line :
         {"Max Scratch Memory: \\d+ bytes", "Total Activation Memory: \\d+ bytes"}) {
        EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& l) {
            return std::regex_match(l, std::regex(line));
        })) << line;
    }
}

TEST_P(MemoryLimits, ABuildSaysWhichTacticsTheWorkspaceRulesOut) {
    EXPECT_NE(build_with_workspace(logger, Device::kAUTO, 1000), nullptr) << logger.take_error();
    std::vector<std::string> lines = logger.infos();
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& l) {
        return std::regex_match(l, std::regex("node 'deep' \\(dot\\): tactic \\S+ is skipped, it "
                                              "needs \\d+ bytes of workspace, the limit is 1000"));
    }));
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryLimitsOfTheCpu, testing::Values(false),
                         [](const auto&) { return "Cpu"; });

} // namespace
} // namespace ingot::test
