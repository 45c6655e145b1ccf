// SPDX-License-Identifier: Apache-2.0
// Runtime configurations: strategies, and caches of compiled kernels that engines share.
#include "api/runtime_fixture.h"
#include "backends_cuda/fake_driver.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

namespace ingot::test {
namespace {

using nvinfer1::CudaGraphStrategy;
using nvinfer1::DynamicShapesKernelSpecializationStrategy;
using nvinfer1::ExecutionContextAllocationStrategy;

class CompileCounter : public emulator::EmulatedGpu {
public:
    explicit CompileCounter(int cc) : EmulatedGpu(cc) {}
    std::string compile(const std::string& text) const override {
        ++compiled;
        return EmulatedGpu::compile(text);
    }
    mutable std::atomic<int> compiled{0};
};

class RuntimeConfigs : public RuntimeTest {
protected:
    void run(nvinfer1::ICudaEngine& engine, nvinfer1::IRuntimeConfig& config) {
        std::unique_ptr<nvinfer1::IExecutionContext> c(engine.createExecutionContext(&config));
        ASSERT_NE(c, nullptr) << logger.take_error();
        void* y = memory->allocate(16);
        c->setInputShape("x", dims({2, 2}));
        c->setTensorAddress("x", memory->floats({1, 2, 3, 4}));
        c->setTensorAddress("y", y);
        c->setTensorAddress("z", memory->allocate(16));
        for (int i = 0; i < 3; ++i) {
            std::memset(y, 0, 16);
            ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
            EXPECT_EQ(values_at(y, 4), (std::vector<float>{2, 3, 4, 5}));
        }
    }
};

TEST_P(RuntimeConfigs, DefaultsAndChoices) {
    auto engine = load(*two_results());
    std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine->createRuntimeConfig());
    EXPECT_EQ(config->getExecutionContextAllocationStrategy(),
              ExecutionContextAllocationStrategy::kSTATIC);
    EXPECT_EQ(config->getDynamicShapesKernelSpecializationStrategy(),
              DynamicShapesKernelSpecializationStrategy::kLAZY);
    EXPECT_EQ(config->getCudaGraphStrategy(), CudaGraphStrategy::kDISABLED);
    EXPECT_EQ(config->getRuntimeCache(), nullptr);
    for (auto graphs : {CudaGraphStrategy::kDISABLED, CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE}) {
        for (auto specialise : {DynamicShapesKernelSpecializationStrategy::kNONE,
                                DynamicShapesKernelSpecializationStrategy::kEAGER,
                                DynamicShapesKernelSpecializationStrategy::kLAZY}) {
            config->setDynamicShapesKernelSpecializationStrategy(specialise);
            EXPECT_TRUE(config->setCudaGraphStrategy(graphs));
            run(*engine, *config);
        }
    }
    std::unique_ptr<nvinfer1::IExecutionContext> c(engine->createExecutionContext(config.get()));
    config->setCudaGraphStrategy(CudaGraphStrategy::kDISABLED);
    EXPECT_EQ(c->getRuntimeConfig()->getCudaGraphStrategy(),
              CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
    EXPECT_FALSE(config->setCudaGraphStrategy(static_cast<CudaGraphStrategy>(7)));
    EXPECT_EQ(logger.take_error(),
              "IRuntimeConfig::setCudaGraphStrategy: the strategy is 7, expected 0 to 1");
    EXPECT_EQ(engine->createExecutionContext(static_cast<ExecutionContextAllocationStrategy>(3)),
              nullptr);
    EXPECT_EQ(logger.take_error(),
              "ICudaEngine::createExecutionContext: the strategy is 3, expected 0 to 2");
}

TEST_P(RuntimeConfigs, Priorities) {
    auto engine = load(*two_results());
    std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine->createRuntimeConfig());
    EXPECT_EQ(getPriority(*config), Priority::kNORMAL);
    for (Priority p : {Priority::kLOW, Priority::kHIGH, Priority::kNORMAL}) {
        EXPECT_TRUE(setPriority(*config, p));
        EXPECT_EQ(getPriority(*config), p);
        run(*engine, *config);
    }
    EXPECT_TRUE(setPriority(*config, Priority::kLOW));
    std::unique_ptr<nvinfer1::IExecutionContext> c(engine->createExecutionContext(config.get()));
    for (int wrong : {-1, 3}) {
        EXPECT_FALSE(setPriority(*config, static_cast<Priority>(wrong)));
        EXPECT_EQ(logger.take_error(), str("ingot::setPriority: the priority is ", wrong,
                                           ", expected 0 (kLOW), 1 (kNORMAL) or 2 (kHIGH)"));
    }
    EXPECT_EQ(getPriority(*config), Priority::kLOW);
    EXPECT_TRUE(setPriority(*config, Priority::kHIGH));
    EXPECT_EQ(getPriority(*c->getRuntimeConfig()), Priority::kLOW) << "as it was made";
    EXPECT_FALSE(ingotSetPriority(nullptr, 1));
}

TEST_P(RuntimeConfigs, GraphsHaveALimitThatConfigurationsShare) {
    auto engine = load(*two_results());
    std::unique_ptr<nvinfer1::IRuntimeConfig> first(engine->createRuntimeConfig());
    std::unique_ptr<nvinfer1::IRuntimeConfig> second(engine->createRuntimeConfig());
    EXPECT_FALSE(setGraphLimit(*first, 0));
    EXPECT_EQ(logger.take_error(),
              "ingot::setGraphLimit: the limit is 0, expected 1 graph or more");
    EXPECT_FALSE(setGraphLimit(*second, 1, first.get()));
    EXPECT_EQ(logger.take_error(), "ingot::setGraphLimit: the other configuration has no limit to "
                                   "share; set its own first");
    EXPECT_TRUE(setGraphLimit(*first, 1));
    EXPECT_FALSE(setGraphLimit(*second, 2, first.get()));
    EXPECT_EQ(logger.take_error(),
              "ingot::setGraphLimit: the limit is 2, but that of the other configuration is 1");
    EXPECT_TRUE(setGraphLimit(*second, 1, first.get()));
    EXPECT_FALSE(ingotSetGraphLimit(nullptr, 1, nullptr));
    EXPECT_EQ(ingotCountGraphs(nullptr), 0);
    EXPECT_EQ(countGraphs(*first), 0);
    for (nvinfer1::IRuntimeConfig* config : {first.get(), second.get(), first.get()}) {
        config->setCudaGraphStrategy(CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
        std::unique_ptr<nvinfer1::IExecutionContext> c(engine->createExecutionContext(config));
        ASSERT_NE(c, nullptr) << logger.take_error();
        auto* y = static_cast<float*>(memory->allocate(16));
        c->setInputShape("x", dims({2, 2}));
        c->setTensorAddress("x", memory->floats({1, 2, 3, 4}));
        c->setTensorAddress("y", y);
        c->setTensorAddress("z", memory->allocate(16));
        for (int run = 0; run < 3; ++run) {
            ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
            EXPECT_EQ(countGraphs(*first), GetParam() && run > 0 ? 1 : 0);
            EXPECT_EQ(countGraphs(*second), countGraphs(*first));
        }
        EXPECT_EQ(values_at(y, 4), (std::vector<float>{2, 3, 4, 5}));
    }
    EXPECT_EQ(countGraphs(*first), 0) << "the contexts are gone";
}

TEST_P(RuntimeConfigs, GraphsOfFirstRunsWhereTheyAreAskedFor) {
    auto engine = load(*two_results());
    std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine->createRuntimeConfig());
    config->setCudaGraphStrategy(CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
    EXPECT_TRUE(setGraphLimit(*config, 8));
    EXPECT_FALSE(ingotSetRecordFirstRun(nullptr, true));
    for (bool first : {true, false}) {
        EXPECT_TRUE(setRecordFirstRun(*config, first));
        std::unique_ptr<nvinfer1::IExecutionContext> c(
            engine->createExecutionContext(config.get()));
        ASSERT_NE(c, nullptr) << logger.take_error();
        auto* y = static_cast<float*>(memory->allocate(16));
        c->setInputShape("x", dims({2, 2}));
        c->setTensorAddress("x", memory->floats({1, 2, 3, 4}));
        c->setTensorAddress("y", y);
        c->setTensorAddress("z", memory->allocate(16));
        for (int run = 0; run < 3; ++run) {
            ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
            EXPECT_EQ(countGraphs(*config), GetParam() && (first || run > 0) ? 1 : 0);
        }
        EXPECT_EQ(values_at(y, 4), (std::vector<float>{2, 3, 4, 5}));
    }
}

TEST(Compiler, ProblemNamesWhatIsMissing) {
    const char* problem = getCompilerProblem();
    EXPECT_TRUE(problem == nullptr ||
                std::string(problem).find("NVRTC 12 or 13 was not found (tried ") !=
                    std::string::npos)
        << problem;
    EXPECT_EQ(problem, getCompilerProblem()) << "the text stays";
    EXPECT_STREQ(getCompilerProblem(75),
                 "compute capability 7.5 is not supported: GPUs from 8.0 (Ampere) on are");
}

// Contexts of one engine with different priorities, on the driver that logs priorities.
TEST(RuntimeConfigsOnADriver, RunsHaveThePriorityOfTheirConfiguration) {
    fake::reset();
    fake::set_current(-1);
    fake::set_priorities(2, -5);
    auto gpu = fake::make_gpu();
    auto backend = cuda::make_backend(*gpu, 1);
    api::set_gpu(backend.get());
    setCacheFolder("");
    {
        std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(shared_logger()));
        EXPECT_TRUE(setDevice(*runtime, Device::kGPU));
        AlignedBytes bytes = engine_bytes(*two_results());
        std::unique_ptr<nvinfer1::ICudaEngine> engine(
            runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
        ASSERT_NE(engine, nullptr) << shared_logger().take_error();
        int stream = 0; // its address stands for a stream of the caller's
        fake::set_priority_of(&stream, -3);
        for (auto [priority, number] : {std::pair(Priority::kLOW, " at 2"),
                                        {Priority::kNORMAL, " at 0"},
                                        {Priority::kHIGH, " at -5"}}) {
            std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine->createRuntimeConfig());
            EXPECT_TRUE(setPriority(*config, priority));
            std::unique_ptr<nvinfer1::IExecutionContext> c(
                engine->createExecutionContext(config.get()));
            ASSERT_NE(c, nullptr) << shared_logger().take_error();
            ASSERT_TRUE(c->setInputShape("x", dims({2, 2})));
            std::vector<std::byte*> memory;
            for (const char* name : {"x", "y", "z"}) {
                memory.push_back(gpu->allocate(16));
                ASSERT_TRUE(c->setTensorAddress(name, memory.back()));
            }
            fake::take_work();
            ASSERT_TRUE(c->enqueueV3(nullptr)) << shared_logger().take_error();
            void* all[] = {memory[0], memory[1], memory[2]};
            ASSERT_TRUE(c->executeV2(all)) << shared_logger().take_error();
            std::vector<std::string> work = fake::take_work();
            EXPECT_GE(work.size(), 2U);
            for (const std::string& w : work) {
                EXPECT_TRUE(w.ends_with(number)) << w;
            }
            ASSERT_TRUE(c->enqueueV3(reinterpret_cast<cudaStream_t>(&stream)));
            work = fake::take_work();
            EXPECT_GE(work.size(), 1U);
            for (const std::string& w : work) {
                EXPECT_TRUE(w.ends_with(" at -3")) << w;
            }
            for (std::byte* p : memory) {
                gpu->release(p);
            }
        }
    }
    api::set_gpu(nullptr);
    setCacheFolder(nullptr);
}

TEST_P(RuntimeConfigs, DamagedCachesAreRefused) {
    auto engine = load(*two_results());
    std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine->createRuntimeConfig());
    std::unique_ptr<nvinfer1::IRuntimeCache> cache(config->createRuntimeCache());
    ASSERT_TRUE(config->setRuntimeCache(*cache));
    run(*engine, *config);
    std::unique_ptr<nvinfer1::IHostMemory> kept(cache->serialize());
    const auto* bytes = static_cast<const char*>(kept->data());
    std::unique_ptr<nvinfer1::IRuntimeCache> other(config->createRuntimeCache());
    std::unique_ptr<nvinfer1::IHostMemory> empty(other->serialize());
    for (size_t at = 0; at < kept->size(); at += 1 + kept->size() / 50) {
        std::string damaged(bytes, kept->size());
        damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
        EXPECT_FALSE(other->deserialize(damaged.data(), damaged.size())) << at;
        EXPECT_NE(logger.take_error(), "");
        EXPECT_FALSE(other->deserialize(bytes, at)) << at;
        EXPECT_NE(logger.take_error(), "");
    }
    std::unique_ptr<nvinfer1::IHostMemory> still(other->serialize());
    EXPECT_EQ(still->size(), empty->size()); // left as it was
    EXPECT_TRUE(other->deserialize(bytes, kept->size())) << logger.take_error();
    std::unique_ptr<nvinfer1::IHostMemory> filled(other->serialize());
    EXPECT_EQ(filled->size(), kept->size());
    EXPECT_TRUE(other->reset());
    still.reset(other->serialize());
    EXPECT_EQ(still->size(), empty->size());
}

TEST(RuntimeCacheOnAGpu, KernelsAreCompiledOnce) {
    CompileCounter gpu(90);
    CompileCounter same(90);
    CompileCounter older(80);
    Logger& logger = shared_logger();
    logger.take_error();
    AlignedBytes bytes = engine_bytes(*two_results());
    ingot::setCacheFolder("");
    std::string kept;
    // With kept kernels nothing is compiled; another GPU does not take them.
    for (auto* device : {&gpu, &same, &older}) {
        auto backend = cuda::make_backend(*device);
        api::set_gpu(backend.get());
        std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
        std::unique_ptr<nvinfer1::ICudaEngine> engine(
            runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
        EXPECT_EQ(ingot::getDevice(*engine), Device::kGPU); // kAUTO
        std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine->createRuntimeConfig());
        std::unique_ptr<nvinfer1::IRuntimeCache> cache(config->createRuntimeCache());
        if (!kept.empty()) {
            bool taken = cache->deserialize(kept.data(), kept.size());
            EXPECT_EQ(taken, device != &older);
            EXPECT_EQ(taken, logger.take_error().empty());
        }
        config->setDynamicShapesKernelSpecializationStrategy(
            DynamicShapesKernelSpecializationStrategy::kNONE);
        ASSERT_TRUE(config->setRuntimeCache(*cache));
        ASSERT_NE(config->getRuntimeCache(), nullptr);
        for (int i = 0; i < 2; ++i) {
            std::unique_ptr<nvinfer1::IExecutionContext> c(
                engine->createExecutionContext(config.get()));
            DeviceMemory block(device);
            c->setInputShape("x", dims({2, 2}));
            c->setTensorAddress("x", block.floats({1, 2, 3, 4}));
            c->setTensorAddress("y", block.allocate(16));
            c->setTensorAddress("z", block.allocate(16));
            ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
        }
        if (kept.empty()) {
            EXPECT_GT(gpu.compiled, 0);
            std::unique_ptr<nvinfer1::IHostMemory> m(cache->serialize());
            kept.assign(static_cast<const char*>(m->data()), m->size());
        }
        engine.reset();
        api::set_gpu(nullptr);
    }
    EXPECT_EQ(same.compiled, 0);
    EXPECT_GT(older.compiled, 0);
    ingot::setCacheFolder(nullptr);
}

TEST(CacheFolder, IsMadeAndChecked) {
    std::string was = ingot::getCacheFolder();
    std::string folder = testing::TempDir() + str("ingot_api_cache.", ::getpid(), "/deep");
    std::filesystem::remove_all(folder);
    EXPECT_TRUE(ingot::setCacheFolder(folder.c_str()));
    EXPECT_EQ(ingot::getCacheFolder(), folder);
    EXPECT_TRUE(std::filesystem::is_directory(folder));
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    testing::internal::CaptureStderr();
    EXPECT_FALSE(ingot::setCacheFolder("/proc/no/folder"));
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "ingot: ingot::setCacheFolder: folder '/proc/no/folder' cannot be made or "
              "written\n");
    EXPECT_EQ(ingot::getCacheFolder(), folder);
    EXPECT_TRUE(ingot::setCacheFolder(""));
    EXPECT_STREQ(ingot::getCacheFolder(), "");
    EXPECT_TRUE(ingot::setCacheFolder(nullptr));
    EXPECT_EQ(ingot::getCacheFolder(), was);
    std::filesystem::remove_all(testing::TempDir() + str("ingot_api_cache.", ::getpid()));
}

/// A link that somebody planted in the folder is not followed by the check.
TEST(CacheFolder, TheCheckWritesNowhereElse) {
    namespace fs = std::filesystem;
    fs::path folder = fs::path(testing::TempDir()) / str("ingot_api_planted.", ::getpid());
    fs::path outside = fs::path(testing::TempDir()) / str("ingot_api_outside.", ::getpid());
    fs::remove_all(folder);
    fs::create_directories(folder);
    std::ofstream(outside) << "nobody's business";
    fs::create_symlink(outside, folder / ".ingot-write-check");
    ingot::setCacheFolder(folder.c_str());
    std::ifstream in(outside);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "nobody's business");
    EXPECT_TRUE(fs::is_symlink(folder / ".ingot-write-check"));
    EXPECT_TRUE(ingot::setCacheFolder(nullptr));
    fs::remove_all(folder);
    fs::remove(outside);
}

INSTANTIATE_TEST_SUITE_P(Devices, RuntimeConfigs, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
