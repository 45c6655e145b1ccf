// SPDX-License-Identifier: Apache-2.0
// TensorRT's table of threads, row by row, by eight threads at once, on the CPU backend.
#include "source_dir.h"
#include "threads/fixture.h"

#include <condition_variable>

namespace ingot::test {
namespace {

constexpr int rounds = 5;

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
        ASSERT_TRUE(
            parser->parseFromFile((source_dir() + "/examples/digits/digits.onnx").c_str(), 2));
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

/// Blocks a run in its middle until it is released.
class Gate : public nv::IOutputAllocator {
public:
    explicit Gate(void* memory) : memory_(memory) {}
    void* reallocateOutputAsync(const char*, void*, uint64_t, uint64_t, cudaStream_t) override {
        std::unique_lock lock(mutex_);
        entered_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return open_; });
        return memory_;
    }
    void notifyShape(const char*, const nv::Dims&) noexcept override {}
    void wait_until_entered() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return entered_; });
    }
    void open() {
        std::scoped_lock lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }

private:
    void* memory_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool entered_ = false;
    bool open_ = false;
};

TEST_F(Threads, OneContextIsRefusedToASecondThread) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger()));
    auto bytes = build(*builder, 1, nullptr);
    auto runtime = cpu_runtime();
    auto engine = load(*runtime, *bytes);
    std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
    std::array<float, width> x{};
    alignas(256) std::array<float, width> y{};
    std::atomic<int> refused{0};
    Gate gate(y.data());
    c->setInputShape("x", dims({1, width}));
    c->setTensorAddress("x", x.data());
    c->setOutputAllocator("y", &gate);
    std::thread first([&] { EXPECT_TRUE(c->enqueueV3(nullptr)) << logger().take_error(); });
    gate.wait_until_entered();
    in_threads([&](int) {
        for (int i = 0; i < rounds; ++i) {
            refused += c->enqueueV3(nullptr) ? 0 : 1;
        }
    });
    EXPECT_EQ(refused, thread_count * rounds);
    std::string errors = logger().take_error();
    const std::string line = "IExecutionContext::enqueueV3: this context is in use by another "
                             "thread; give each thread a context of its own";
    EXPECT_EQ(errors.substr(0, line.size()), line);
    gate.open();
    first.join();
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
