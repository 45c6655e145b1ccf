// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/options.h"
#include "threads/world.h"

#include <algorithm>
#include <cstring>

namespace ingot::test {
namespace {

using Strategy = nv::ExecutionContextAllocationStrategy;

class Reader : public nv::IStreamReader {
public:
    explicit Reader(const nv::IHostMemory& bytes) : bytes_(bytes) {}
    int64_t read(void* to, int64_t n) override {
        n = std::min(n, static_cast<int64_t>(bytes_.size() - at_));
        std::memcpy(to, static_cast<const char*>(bytes_.data()) + at_, static_cast<size_t>(n));
        at_ += static_cast<size_t>(n);
        return n;
    }

private:
    const nv::IHostMemory& bytes_;
    size_t at_ = 0;
};

class ReaderV2 : public nv::IStreamReaderV2 {
public:
    explicit ReaderV2(const nv::IHostMemory& bytes) : reader_(bytes) {}
    int64_t read(void* to, int64_t n, cudaStream_t) noexcept override {
        return reader_.read(to, n);
    }
    bool seek(int64_t, nv::SeekPosition) noexcept override { return false; }

private:
    Reader reader_;
};

/// Queries of a runtime.
void runtime_queries(World& w, Worker&) {
    nv::IRuntime& r = *w.runtime;
    auto size = static_cast<int64_t>(w.product->size());
    EXPECT_LE(r.getEngineHeaderSize(), size);
    uint64_t why = 0;
    EXPECT_EQ(r.getEngineValidity(w.product->data(), size, &why), nv::EngineValidity::kVALID);
    EXPECT_EQ(r.getEngineValidity("short", 5, &why), nv::EngineValidity::kINVALID);
    EXPECT_EQ(r.getErrorRecorder(), &w.recorder);
    EXPECT_EQ(r.getLogger(), &logger());
    EXPECT_GE(r.getMaxThreads(), 1);
    EXPECT_EQ(r.getTemporaryDirectory(), nullptr);
    EXPECT_EQ(r.getTempfileControlFlags(), 3U);
    EXPECT_EQ(r.getDLACore() + r.getNbDLACores(), 0);
    EXPECT_FALSE(r.getEngineHostCodeAllowed());
    EXPECT_FALSE(r.getDeferredWeightsLoading());
    EXPECT_NE(r.getPluginRegistry().getCreator(Twice::name, "1", ""), nullptr);
    w.expect_error();
    EXPECT_EQ(r.deserializeCudaEngine("not an engine", 13), nullptr);
}

/// Loads in each form; a context keeps alive what it needs beyond the engine's object.
void loading(World& w, Worker& me) {
    std::unique_ptr<nv::ICudaEngine> engine;
    if (me.below(3) == 0) {
        engine = w.load(*w.product);
    } else if (me.below(2) == 0) {
        Reader reader(*w.product);
        engine.reset(w.runtime->deserializeCudaEngine(reader));
    } else {
        ReaderV2 reader(*w.product);
        engine.reset(w.runtime->deserializeCudaEngine(reader));
    }
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(ingot::getDevice(*engine), w.device());
    std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
    ASSERT_NE(c, nullptr);
    engine.reset();
    run(*c, 1 + me.below(4), w.value(3));
}

void tensor_queries(World& w, Worker& me) {
    nv::ICudaEngine& e = *w.engine;
    ASSERT_EQ(e.getNbIOTensors(), 2);
    for (int32_t i = 0; i < 2; ++i) {
        const char* name = e.getIOTensorName(i);
        me.pause();
        EXPECT_STREQ(name, i == 0 ? "x" : "y");
        EXPECT_EQ(e.getTensorShape(name).d[0], -1);
        EXPECT_EQ(e.getTensorDataType(name), nv::DataType::kFLOAT);
        EXPECT_EQ(e.getTensorLocation(name), nv::TensorLocation::kDEVICE);
        EXPECT_EQ(e.getTensorIOMode(name) == nv::TensorIOMode::kINPUT, i == 0);
        EXPECT_FALSE(e.isShapeInferenceIO(name));
        EXPECT_EQ(e.getAliasedInputTensor(name), nullptr);
        EXPECT_EQ(e.getTensorBytesPerComponent(name, 1), -1);
        EXPECT_EQ(e.getTensorComponentsPerElement(name), -1);
        EXPECT_EQ(e.getTensorFormat(name), nv::TensorFormat::kLINEAR);
        EXPECT_NE(e.getTensorFormatDesc(name), nullptr);
        EXPECT_EQ(e.getTensorVectorizedDim(name), -1);
        EXPECT_FALSE(e.isDebugTensor(name));
    }
    EXPECT_EQ(e.getProfileShape("x", 1, nv::OptProfileSelector::kMAX).d[0], 2);
    EXPECT_EQ(e.getProfileTensorValuesV2("x", 0, nv::OptProfileSelector::kMIN), nullptr);
    w.expect_error();
    EXPECT_EQ(e.getIOTensorName(7), nullptr);
    w.expect_error();
    EXPECT_EQ(e.getTensorShape("z").nbDims, -1);
}

void engine_queries(World& w, Worker&) {
    nv::ICudaEngine& e = *w.engine;
    EXPECT_GT(e.getNbLayers(), 0);
    EXPECT_NE(e.getName(), nullptr);
    EXPECT_EQ(e.getNbOptimizationProfiles(), 2);
    EXPECT_GE(e.getDeviceMemorySizeV2(), e.getDeviceMemorySizeForProfileV2(1));
    EXPECT_FALSE(e.isRefittable());
    EXPECT_EQ(e.getEngineCapability(), nv::EngineCapability::kSTANDARD);
    EXPECT_EQ(e.getProfilingVerbosity(), nv::ProfilingVerbosity::kLAYER_NAMES_ONLY);
    EXPECT_EQ(e.getHardwareCompatibilityLevel(), nv::HardwareCompatibilityLevel::kNONE);
    EXPECT_EQ(e.getNbAuxStreams(), 0);
    EXPECT_NE(e.getTacticSources(), 0U);
    EXPECT_EQ(e.getErrorRecorder(), &w.recorder);
    EXPECT_EQ(e.getStreamableWeightsSize() + e.getWeightStreamingBudgetV2(), 0);
    EXPECT_EQ(e.getWeightStreamingAutomaticBudget(), 0);
    EXPECT_EQ(e.getWeightStreamingScratchMemorySize(), 0);
    EXPECT_GT(e.getEngineStat(nv::EngineStat::kTOTAL_WEIGHTS_SIZE), 0);
    EXPECT_EQ(e.getEngineStat(nv::EngineStat::kSTRIPPED_WEIGHTS_SIZE), -1);
    EXPECT_TRUE(e.areWeightsLoaded());
    std::unique_ptr<nv::IHostMemory> bytes(e.serialize());
    ASSERT_NE(bytes, nullptr);
    EXPECT_EQ(bytes->size(), w.product->size());
    std::unique_ptr<nv::ISerializationConfig> how(e.createSerializationConfig());
    bytes.reset(e.serializeWithConfig(*how));
    EXPECT_NE(bytes, nullptr);
}

class Profiler : public nv::IProfiler {
public:
    void reportLayerTime(const char*, float) noexcept override { ++layers; }
    int layers = 0;
};

class Output : public nv::IOutputAllocator {
public:
    void* reallocateOutputAsync(const char*, void*, uint64_t, uint64_t, cudaStream_t) override {
        return memory_.data();
    }
    void notifyShape(const char*, const nv::Dims& d) noexcept override { rows = d.d[0]; }
    int64_t rows = 0;

private:
    alignas(256) std::array<float, 4 * width> memory_{};
};

/// Shapes, profiles, memory and settings of a context per thread on the shared engine.
void contexts(World& w, Worker& me) {
    const Strategy all[] = {Strategy::kSTATIC, Strategy::kON_PROFILE_CHANGE,
                            Strategy::kUSER_MANAGED};
    Strategy strategy = all[me.below(3)];
    std::unique_ptr<nv::IExecutionContext> c(w.engine->createExecutionContext(strategy));
    ASSERT_NE(c, nullptr);
    std::unique_ptr<std::byte, decltype(&std::free)> memory(nullptr, std::free);
    if (strategy == Strategy::kUSER_MANAGED) {
        auto size = static_cast<size_t>(w.engine->getDeviceMemorySizeV2() + 256) / 256 * 256;
        memory.reset(static_cast<std::byte*>(std::aligned_alloc(256, size)));
        c->setDeviceMemoryV2(memory.get(), static_cast<int64_t>(size));
    }
    c->setName("mine");
    Profiler profiler;
    c->setProfiler(&profiler);
    run(*c, 1 + me.below(4), w.value(3));
    EXPECT_GT(profiler.layers, 0);
    c->setProfiler(nullptr);
    ASSERT_TRUE(c->setOptimizationProfileAsync(1, nullptr));
    EXPECT_FALSE(c->allInputDimensionsSpecified());
    w.expect_error();
    EXPECT_FALSE(c->setInputShape("x", dims({4, width}))); // the second profile ends at 2
    run(*c, 2, w.value(3));
    EXPECT_EQ(c->getTensorShape("y").d[0], 2);
    EXPECT_EQ(c->inferShapes(0, nullptr), 0);
    EXPECT_GE(c->getMaxOutputSize("y"), 2 * width * 4);
    Output output;
    ASSERT_TRUE(c->setOutputAllocator("y", &output));
    run(*c, 1, std::nullopt);
    EXPECT_EQ(output.rows, 1);
    EXPECT_EQ(&c->getEngine(), &c->getEngine());
}

/// Configurations per thread; the kernel cache is shared.
void runtime_configs(World& w, Worker& me) {
    using Specialise = nv::DynamicShapesKernelSpecializationStrategy;
    const Specialise all[] = {Specialise::kLAZY, Specialise::kEAGER, Specialise::kNONE};
    std::unique_ptr<nv::IRuntimeConfig> config(w.engine->createRuntimeConfig());
    config->setDynamicShapesKernelSpecializationStrategy(all[me.below(3)]);
    config->setCudaGraphStrategy(me.below(2) == 0 ? nv::CudaGraphStrategy::kDISABLED
                                                  : nv::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
    if (me.below(2) == 0) {
        ASSERT_TRUE(config->setRuntimeCache(*w.kernels));
    }
    std::unique_ptr<nv::IExecutionContext> c(w.engine->createExecutionContext(config.get()));
    ASSERT_NE(c, nullptr);
    config.reset();
    for (int64_t rows : {1, 2, 2, 2, 4}) {
        run(*c, rows, w.value(3));
    }
    EXPECT_NE(c->getRuntimeConfig(), nullptr);
    std::unique_ptr<nv::IHostMemory> bytes(w.kernels->serialize());
    ASSERT_NE(bytes, nullptr);
    EXPECT_TRUE(w.kernels->deserialize(bytes->data(), bytes->size()));
    if (me.below(8) == 0) {
        EXPECT_TRUE(w.kernels->reset());
    }
}

void inspecting(World& w, Worker& me) {
    std::unique_ptr<nv::IEngineInspector> inspector(w.engine->createEngineInspector());
    ASSERT_NE(inspector, nullptr);
    using Format = nv::LayerInformationFormat;
    const char* text = inspector->getEngineInformation(Format::kJSON);
    ASSERT_NE(text, nullptr);
    me.pause();
    EXPECT_EQ(*text, '{');
    EXPECT_NE(inspector->getLayerInformation(0, Format::kONELINE), nullptr);
    std::unique_ptr<nv::IExecutionContext> c(w.engine->createExecutionContext());
    run(*c, 1 + me.below(4), w.value(3));
    EXPECT_TRUE(inspector->setExecutionContext(c.get()));
    EXPECT_NE(inspector->getEngineInformation(Format::kONELINE), nullptr);
    w.expect_error();
    EXPECT_EQ(inspector->getLayerInformation(1000, Format::kJSON), nullptr);
}

/// An engine and a refitter per thread: contexts of other threads' engines run meanwhile.
void refitting(World& w, Worker& me) {
    auto engine = w.load(*w.refittable);
    ASSERT_NE(engine, nullptr);
    std::unique_ptr<nv::IExecutionContext> before(engine->createExecutionContext());
    run(*before, 2, w.value(3));
    std::unique_ptr<nv::IRefitter> refitter(nv::createInferRefitter(*engine, logger()));
    ASSERT_NE(refitter, nullptr) << logger().take_error();
    EXPECT_EQ(refitter->getMissing(0, nullptr, nullptr), 0);
    EXPECT_GT(refitter->getAllWeights(0, nullptr), 0);
    auto factor = static_cast<float>(1 + me.below(9));
    Product other(*w.builder, factor);
    ASSERT_TRUE(refitter->setWeights("w", nv::WeightsRole::kCONSTANT, other.weights()));
    ASSERT_TRUE(refitter->refitCudaEngine()) << logger().take_error();
    run(*before, 2, w.value(factor));
    std::unique_ptr<nv::IExecutionContext> after(engine->createExecutionContext());
    run(*after, 3, w.value(factor));
}

/// Engines of all threads whose weights are equal share their memory, which the GPU gives.
void sharing(World& w, Worker& me) {
    std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(logger()));
    ASSERT_TRUE(ingot::setDevice(*runtime, w.device()));
    std::vector<std::unique_ptr<nv::ICudaEngine>> engines;
    for (int64_t i = 1 + me.below(3); i > 0; --i) {
        engines.push_back(test::load(*runtime, me.below(2) == 0 ? *w.product : *w.refittable));
        ASSERT_NE(engines.back(), nullptr);
        if (me.below(2) == 0) {
            std::unique_ptr<nv::IExecutionContext> c(engines.back()->createExecutionContext());
            run(*c, 1 + me.below(4), w.value(3));
        }
    }
    me.pause();
}

/// A budget of the thread's own engine.
void streaming(World& w, Worker& me) {
    auto engine = w.load(*w.streamed);
    ASSERT_NE(engine, nullptr);
    EXPECT_GT(engine->getStreamableWeightsSize(), 0);
    ASSERT_TRUE(engine->setWeightStreamingBudgetV2(me.below(2)));
    EXPECT_GE(engine->getWeightStreamingScratchMemorySize(), 0);
    std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext());
    ASSERT_NE(c, nullptr);
    run(*c, 4, w.value(3));
}

} // namespace

std::span<const Action> run_actions() {
    static const Action all[] = {{"runtime_queries", runtime_queries},
                                 {"loading", loading},
                                 {"tensor_queries", tensor_queries},
                                 {"engine_queries", engine_queries},
                                 {"contexts", contexts},
                                 {"runtime_configs", runtime_configs},
                                 {"inspecting", inspecting},
                                 {"refitting", refitting},
                                 {"sharing", sharing},
                                 {"streaming", streaming}};
    return all;
}

} // namespace ingot::test
