// SPDX-License-Identifier: Apache-2.0
// What TensorRT's table of threads allows, by eight threads at once, on the CPU backend. Meant for
// ThreadSanitizer (the preset `tsan`), and small enough to build for it alone.
#include "NvInfer.h"
#include "NvInferRuntime.h"
#include "NvOnnxParser.h"
#include "ingot.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ingot::test {
namespace {

namespace nv = nvinfer1;

constexpr int thread_count = 8;
constexpr int rounds = 5;
constexpr int64_t width = 16;

/// Counts; a thread-safe logger, as TensorRT asks for.
class Logger : public nv::ILogger {
public:
    void log(Severity severity, const nv::AsciiChar* msg) noexcept override {
        std::scoped_lock lock(mutex_);
        ++lines;
        if (severity <= Severity::kERROR) {
            error = msg;
        }
    }
    std::string take_error() {
        std::scoped_lock lock(mutex_);
        return std::exchange(error, "");
    }
    int64_t lines = 0;
    std::string error;

private:
    std::mutex mutex_;
};

Logger& logger() {
    static Logger one;
    return one;
}

class Recorder : public nv::IErrorRecorder {
public:
    int32_t getNbErrors() const noexcept override { return errors; }
    nv::ErrorCode getErrorCode(int32_t) const noexcept override { return nv::ErrorCode::kSUCCESS; }
    ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override { errors = 0; }
    bool reportError(nv::ErrorCode, ErrorDesc) noexcept override {
        ++errors;
        return false;
    }
    RefCount incRefCount() noexcept override { return ++references; }
    RefCount decRefCount() noexcept override { return --references; }
    std::atomic<int32_t> errors{0};
    std::atomic<int32_t> references{0};
};

class Allocator : public nv::IGpuAllocator {
public:
    void* allocateAsync(const uint64_t size, const uint64_t alignment, const nv::AllocatorFlags,
                        cudaStream_t) noexcept override {
        ++live;
        return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    }
    bool deallocateAsync(void* const memory, cudaStream_t) noexcept override {
        --live;
        std::free(memory);
        return true;
    }
    std::atomic<int64_t> live{0};
};

nv::Dims dims(std::initializer_list<int64_t> sizes) {
    nv::Dims d{};
    d.nbDims = static_cast<int32_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), d.d);
    return d;
}

/// y = x * w, w[i][j] = factor where i == j; x is [N, width], N up to 4.
std::unique_ptr<nv::IHostMemory> build(nv::IBuilder& builder, float factor,
                                       const nv::ITimingCache* timings) {
    std::vector<float> w(width * width, 0.0F);
    for (int64_t i = 0; i < width; ++i) {
        w[static_cast<size_t>(i * width + i)] = factor;
    }
    std::unique_ptr<nv::INetworkDefinition> network(builder.createNetworkV2(0));
    std::unique_ptr<nv::IBuilderConfig> config(builder.createBuilderConfig());
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, dims({-1, width}));
    nv::IConstantLayer* c =
        network->addConstant(dims({width, width}), {nv::DataType::kFLOAT, w.data(), width * width});
    nv::ILayer* product = network->addMatrixMultiply(*x, nv::MatrixOperation::kNONE,
                                                     *c->getOutput(0), nv::MatrixOperation::kNONE);
    product->getOutput(0)->setName("y");
    network->markOutput(*product->getOutput(0));
    nv::IOptimizationProfile* p = builder.createOptimizationProfile();
    p->setDimensions("x", nv::OptProfileSelector::kMIN, dims({1, width}));
    p->setDimensions("x", nv::OptProfileSelector::kOPT, dims({2, width}));
    p->setDimensions("x", nv::OptProfileSelector::kMAX, dims({4, width}));
    config->addOptimizationProfile(p);
    if (timings != nullptr) {
        config->setTimingCache(*timings, false);
    }
    return std::unique_ptr<nv::IHostMemory>(builder.buildSerializedNetwork(*network, *config));
}

std::unique_ptr<nv::IRuntime> cpu_runtime() {
    std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(logger()));
    ingot::setDevice(*runtime, Device::kCPU);
    return runtime;
}

std::unique_ptr<nv::ICudaEngine> load(nv::IRuntime& runtime, const nv::IHostMemory& bytes) {
    return std::unique_ptr<nv::ICudaEngine>(
        runtime.deserializeCudaEngine(bytes.data(), bytes.size()));
}

void run(nv::IExecutionContext& c, int64_t rows, float factor) {
    alignas(256) std::array<float, 4 * width> x{};
    alignas(256) std::array<float, 4 * width> y{};
    x.fill(static_cast<float>(rows));
    ASSERT_TRUE(c.setInputShape("x", dims({rows, width})));
    ASSERT_TRUE(c.setTensorAddress("x", x.data()));
    ASSERT_TRUE(c.setTensorAddress("y", y.data()));
    ASSERT_TRUE(c.enqueueV3(nullptr)) << logger().take_error();
    for (int64_t i = 0; i < rows * width; ++i) {
        ASSERT_EQ(y[static_cast<size_t>(i)], factor * static_cast<float>(rows));
    }
}

void in_threads(const std::function<void(int)>& f) {
    std::vector<std::thread> threads;
    for (int t = 0; t < thread_count; ++t) {
        threads.emplace_back([&f, t] { f(t); });
    }
    for (std::thread& t : threads) {
        t.join();
    }
}

class Threads : public testing::Test {
protected:
    Threads() { ingot::setCacheFolder(""); }
    ~Threads() override { ingot::setCacheFolder(nullptr); }
};

TEST_F(Threads, BuildersOfTheirOwn) {
    std::unique_ptr<nv::IBuilder> owner(nv::createInferBuilder(logger()));
    std::unique_ptr<nv::IBuilderConfig> config(owner->createBuilderConfig());
    std::unique_ptr<nv::ITimingCache> timings(config->createTimingCache(nullptr, 0));
    in_threads([&](int t) {
        for (int i = 0; i < rounds; ++i) {
            std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger()));
            auto factor = static_cast<float>(t + 1);
            auto bytes = build(*builder, factor, timings.get());
            ASSERT_NE(bytes, nullptr) << logger().take_error();
            auto runtime = cpu_runtime();
            auto engine = load(*runtime, *bytes);
            std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
            run(*c, 1 + i % 4, factor);
        }
    });
    EXPECT_EQ(logger().take_error(), "");
}

TEST_F(Threads, OneBuilderWithANetworkAndAConfigEach) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger()));
    in_threads([&](int t) {
        for (int i = 0; i < rounds; ++i) {
            ASSERT_NE(build(*builder, static_cast<float>(t), nullptr), nullptr)
                << logger().take_error();
        }
    });
    EXPECT_EQ(logger().take_error(), "");
}

TEST_F(Threads, ParsersOfTheirOwn) {
    in_threads([&](int) {
        std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger()));
        std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
        std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
        std::unique_ptr<nvonnxparser::IParser> parser(
            nvonnxparser::createParser(*network, logger()));
        ASSERT_TRUE(parser->parseFromFile(INGOT_SOURCE_DIR "/examples/digits/digits.onnx", 2));
        std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
        ASSERT_NE(bytes, nullptr) << logger().take_error();
    });
}

TEST_F(Threads, OneRuntimeAndOneEngine) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger()));
    auto bytes = build(*builder, 3, nullptr);
    ASSERT_NE(bytes, nullptr) << logger().take_error();
    Allocator allocator;
    Recorder recorder;
    auto runtime = cpu_runtime();
    runtime->setGpuAllocator(&allocator);
    runtime->setErrorRecorder(&recorder);
    auto engine = load(*runtime, *bytes);
    ASSERT_NE(engine, nullptr) << logger().take_error();
    in_threads([&](int t) {
        for (int i = 0; i < rounds; ++i) {
            // Queries, loading and contexts, all on what is shared.
            EXPECT_EQ(engine->getNbIOTensors(), 2);
            EXPECT_GE(engine->getDeviceMemorySizeV2(), 0);
            EXPECT_GT(engine->getNbLayers(), 0);
            EXPECT_EQ(engine->getTensorShape("x").nbDims, 2);
            EXPECT_EQ(runtime->getEngineValidity(bytes->data(), static_cast<int64_t>(bytes->size()),
                                                 nullptr),
                      nv::EngineValidity::kVALID);
            std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
            ASSERT_NE(c, nullptr);
            run(*c, 1 + (t + i) % 4, 3);
            auto own = load(*runtime, *bytes);
            ASSERT_NE(own, nullptr);
            std::unique_ptr<nv::IExecutionContext> of_own(own->createExecutionContext(
                nv::ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE));
            run(*of_own, 2, 3);
            EXPECT_EQ(engine->getIOTensorName(7), nullptr); // errors of several threads
            std::unique_ptr<nv::IHostMemory> again(engine->serialize());
            EXPECT_EQ(again->size(), bytes->size());
            std::unique_ptr<nv::IEngineInspector> inspector(engine->createEngineInspector());
            EXPECT_NE(inspector->getEngineInformation(nv::LayerInformationFormat::kJSON), nullptr);
        }
    });
    EXPECT_EQ(recorder.errors, thread_count * rounds);
    engine.reset();
    runtime.reset();
    EXPECT_EQ(allocator.live, 0);
    EXPECT_EQ(recorder.references, 0);
}

TEST_F(Threads, ContextsInAThreadEach) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger()));
    auto bytes = build(*builder, 2, nullptr);
    auto runtime = cpu_runtime();
    auto engine = load(*runtime, *bytes);
    std::vector<std::unique_ptr<nv::IExecutionContext>> contexts;
    for (int t = 0; t < thread_count; ++t) { // made here, used there
        contexts.emplace_back(engine->createExecutionContext());
    }
    in_threads([&](int t) {
        for (int i = 0; i < 20; ++i) {
            run(*contexts[static_cast<size_t>(t)], 1 + i % 4, 2);
        }
        contexts[static_cast<size_t>(t)].reset();
    });
    EXPECT_EQ(logger().take_error(), "");
}

TEST_F(Threads, OneContextIsRefusedToASecondThread) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger()));
    auto bytes = build(*builder, 1, nullptr);
    auto runtime = cpu_runtime();
    auto engine = load(*runtime, *bytes);
    std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
    std::array<float, width> x{};
    alignas(256) std::array<float, width> y{};
    std::atomic<int> ran{0};
    c->setInputShape("x", dims({1, width}));
    c->setTensorAddress("x", x.data());
    c->setTensorAddress("y", y.data());
    in_threads([&](int) {
        for (int i = 0; i < 50; ++i) {
            ran += c->enqueueV3(nullptr) ? 1 : 0;
        }
    });
    EXPECT_GT(ran, 0);
    logger().take_error(); // "in use by another thread", as often as they met
    EXPECT_TRUE(c->enqueueV3(nullptr)) << logger().take_error();
}

class Creator : public nv::IPluginCreatorV3One {
public:
    explicit Creator(std::string name) : name_(std::move(name)) {}
    nv::IPluginV3* createPlugin(const nv::AsciiChar*, const nv::PluginFieldCollection*,
                                nv::TensorRTPhase) noexcept override {
        return nullptr;
    }
    const nv::PluginFieldCollection* getFieldNames() noexcept override { return &fields_; }
    const nv::AsciiChar* getPluginName() const noexcept override { return name_.c_str(); }
    const nv::AsciiChar* getPluginVersion() const noexcept override { return "1"; }
    const nv::AsciiChar* getPluginNamespace() const noexcept override { return ""; }

private:
    std::string name_;
    nv::PluginFieldCollection fields_{};
};

TEST_F(Threads, ThePluginRegistry) {
    nv::IPluginRegistry& registry = *getPluginRegistry();
    in_threads([&](int t) {
        Creator own("Threads" + std::to_string(t));
        for (int i = 0; i < 50; ++i) {
            EXPECT_TRUE(
                registry.registerCreator(static_cast<nv::IPluginCreatorInterface&>(own), ""));
            EXPECT_NE(registry.getCreator(own.getPluginName(), "1", ""), nullptr);
            int32_t count = 0;
            EXPECT_NE(registry.getAllCreators(&count), nullptr);
            EXPECT_TRUE(registry.deregisterCreator(static_cast<nv::IPluginCreatorInterface&>(own)));
        }
    });
}

} // namespace
} // namespace ingot::test
