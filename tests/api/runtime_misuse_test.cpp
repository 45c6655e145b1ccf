// SPDX-License-Identifier: Apache-2.0
// The runtime's messages for misuse, whole, and that nothing is broken afterwards.
#include "api/runtime_fixture.h"

namespace ingot::test {
namespace {

struct Objects {
    nvinfer1::IRuntime& runtime;
    nvinfer1::ICudaEngine& engine;
    nvinfer1::IExecutionContext& context;
    nvinfer1::IRuntimeConfig& config;
    nvinfer1::IRuntimeCache& cache;
    nvinfer1::IEngineInspector& inspector;
    nvinfer1::ISerializationConfig& serialization;
};

/// One call that must fail: its result as a truth value, and its message, in which "{layers}" is
/// the engine's number of layers.
struct Misuse {
    const char* name;
    bool (*call)(Objects&);
    const char* text;
};

nvinfer1::Dims unranked() {
    nvinfer1::Dims d{};
    d.nbDims = -1;
    return d;
}

using nvinfer1::OptProfileSelector;

const Misuse misuses[] = {
    {"NoBytes", [](Objects& o) { return o.runtime.deserializeCudaEngine(nullptr, 9) != nullptr; },
     "IRuntime::deserializeCudaEngine: the engine's bytes are at a null address"},
    {"NotAnEngine",
     [](Objects& o) {
         std::string text(100, 'x');
         return o.runtime.deserializeCudaEngine(text.data(), text.size()) != nullptr;
     },
     "IRuntime::deserializeCudaEngine: the file is not an Ingot engine: its first bytes are "
     "not the engine magic; build one with 'ingot build'"},
    {"NoThreads", [](Objects& o) { return o.runtime.setMaxThreads(0); },
     "IRuntime::setMaxThreads: the number of threads is 0, expected at least 1"},
    {"OtherRuntime", [](Objects& o) { return o.runtime.loadRuntime("./lib.so") != nullptr; },
     "IRuntime::loadRuntime: a runtime cannot be loaded: './lib.so' does not exist or cannot "
     "be "
     "read; give the path of a libingot_lean.so"},
    {"NoDevice", [](Objects& o) { return ingot::setDevice(o.runtime, static_cast<Device>(9)); },
     "ingot::setDevice: device is 9, expected 0 (auto), 1 (GPU) or 2 (CPU)"},
    {"SecondCpu", [](Objects& o) { return ingot::setDevice(o.runtime, Device::kCPU, 1); },
     "ingot::setDevice: the CPU is number 0, got 1"},
    {"NullName", [](Objects& o) { return o.engine.getTensorShape(nullptr).nbDims >= 0; },
     "ICudaEngine::getTensorShape: the name of the tensor is null"},
    {"UnknownName", [](Objects& o) { return o.engine.isShapeInferenceIO("images"); },
     "ICudaEngine::isShapeInferenceIO: there is no input or output 'images'; there are x, y, "
     "z"},
    {"TensorIndex", [](Objects& o) { return o.engine.getIOTensorName(3) != nullptr; },
     "ICudaEngine::getIOTensorName: tensor 3 does not exist, the engine has 3"},
    {"ProfileOfAnOutput",
     [](Objects& o) {
         return o.engine.getProfileShape("y", 0, OptProfileSelector::kMIN).nbDims >= 0;
     },
     "ICudaEngine::getProfileShape: 'y' is an output: profiles have shapes of inputs only"},
    {"ProfileIndex",
     [](Objects& o) {
         return o.engine.getProfileShape("x", -1, OptProfileSelector::kMIN).nbDims >= 0;
     },
     "ICudaEngine::getProfileShape: profile -1 does not exist, the engine has 1"},
    {"Selector",
     [](Objects& o) {
         auto bad = static_cast<OptProfileSelector>(5);
         return o.engine.getProfileShape("x", 0, bad).nbDims >= 0;
     },
     "ICudaEngine::getProfileShape: the selector is 5, expected 0 to 2"},
    {"Budget", [](Objects& o) { return o.engine.setWeightStreamingBudgetV2(4096); },
     "ICudaEngine::setWeightStreamingBudgetV2: the budget is 4096, expected 0: no weights of "
     "this engine can be streamed; build it with kWEIGHT_STREAMING"},
    {"WithoutWeights",
     [](Objects& o) {
         o.serialization.setFlag(nvinfer1::SerializationFlag::kEXCLUDE_WEIGHTS);
         return o.engine.serializeWithConfig(o.serialization) != nullptr;
     },
     "ICudaEngine::serializeWithConfig: an engine written without weights must be "
     "refittable: build it with a refit flag"},
    {"Flags", [](Objects& o) { return o.serialization.setFlags(64); },
     "ISerializationConfig::setFlags: flags are 64, expected bits of 7"},
    {"WeightsTwice",
     [](Objects& o) {
         char byte = 0;
         return o.engine.loadWeights(&byte, 1);
     },
     "ICudaEngine::loadWeights: the weights are loaded already"},
    {"Refit",
     [](Objects& o) {
         return createInferRefitter_INTERNAL(&o.engine, o.runtime.getLogger(),
                                             NV_TENSORRT_VERSION) != nullptr;
     },
     "createInferRefitter: the engine cannot be refitted: build it with kREFIT, "
     "kREFIT_IDENTICAL, kREFIT_INDIVIDUAL or kSTRIP_PLAN"},
    {"Layer",
     [](Objects& o) {
         auto json = nvinfer1::LayerInformationFormat::kJSON;
         return o.inspector.getLayerInformation(1000, json) != nullptr;
     },
     "IEngineInspector::getLayerInformation: layer 1000 does not exist, the engine has "
     "{layers}"},
    {"InspectorFormat",
     [](Objects& o) {
         auto bad = static_cast<nvinfer1::LayerInformationFormat>(2);
         return o.inspector.getEngineInformation(bad) != nullptr;
     },
     "IEngineInspector::getEngineInformation: the format is 2, expected 0 to 1"},
    {"NotACache", [](Objects& o) { return o.cache.deserialize("short", 5); },
     "IRuntimeCache::deserialize: a runtime cache has at least 32 bytes, got 5"},
    {"OtherCache",
     [](Objects& o) {
         std::string text(200, 'x');
         return o.cache.deserialize(text.data(), text.size());
     },
     "IRuntimeCache::deserialize: these bytes are not a runtime cache"},
    {"ShapeOfAnOutput",
     [](Objects& o) {
         return o.context.setInputShape("y", dims({2, 2}));
     },
     "IExecutionContext::setInputShape: 'y' is an output: its shape follows from the inputs'"},
    {"Rank", [](Objects& o) { return o.context.setInputShape("x", dims({2})); },
     "IExecutionContext::setInputShape: input 'x' has rank 1 (2), expected rank 2 [N,2]"},
    {"FixedSize",
     [](Objects& o) {
         return o.context.setInputShape("x", dims({2, 3}));
     },
     "IExecutionContext::setInputShape: input 'x' dimension 1 is 3, expected 2"},
    {"OutsideTheProfile",
     [](Objects& o) {
         return o.context.setInputShape("x", dims({9, 2}));
     },
     "IExecutionContext::setInputShape: input 'x' with shape 9x2 is outside the engine's "
     "profile: dimension 0 is 9, allowed 1 to 8"},
    {"SizeOfMinusOne",
     [](Objects& o) {
         return o.context.setInputShape("x", dims({-1, 2}));
     },
     "IExecutionContext::setInputShape: input 'x' dimension 0 is -1, expected a size"},
    {"NoShape", [](Objects& o) { return o.context.setInputShape("x", unranked()); },
     "IExecutionContext::setInputShape: the shape of input 'x' has -1 dimensions, expected 0 "
     "to "
     "8"},
    {"ShapesMissing", [](Objects& o) { return o.context.enqueueV3(nullptr); },
     "IExecutionContext::enqueueV3: the shape of input 'x' is not set: call setInputShape()"},
    {"InputAddressMissing",
     [](Objects& o) {
         o.context.setInputShape("x", dims({2, 2}));
         return o.context.enqueueV3(nullptr);
     },
     "IExecutionContext::enqueueV3: input 'x' has no address"},
    {"OutputAddressMissing",
     [](Objects& o) {
         static float x[4] = {1, 2, 3, 4}; // not reached on a GPU
         o.context.setInputShape("x", dims({2, 2}));
         o.context.setTensorAddress("x", x);
         return o.context.enqueueV3(nullptr);
     },
     "IExecutionContext::enqueueV3: output 'y' has no memory: call setTensorAddress() or, "
     "where its size depends on data, setOutputAllocator()"},
    {"NoBindings", [](Objects& o) { return o.context.executeV2(nullptr); },
     "IExecutionContext::executeV2: the array of addresses is null"},
    {"InputAsOutput", [](Objects& o) { return o.context.setOutputTensorAddress("x", nullptr); },
     "IExecutionContext::setOutputTensorAddress: 'x' is an input"},
    {"OutputAsInput", [](Objects& o) { return o.context.setInputTensorAddress("z", nullptr); },
     "IExecutionContext::setInputTensorAddress: 'z' is an output"},
    {"AllocatorOfAnInput", [](Objects& o) { return o.context.setOutputAllocator("x", nullptr); },
     "IExecutionContext::setOutputAllocator: 'x' is an input"},
    {"SecondProfile", [](Objects& o) { return o.context.setOptimizationProfileAsync(1, nullptr); },
     "IExecutionContext::setOptimizationProfileAsync: profile 1 does not exist, the engine has "
     "1"},
    {"NamesWithoutRoom", [](Objects& o) { return o.context.inferShapes(2, nullptr) >= 0; },
     "IExecutionContext::inferShapes: there is no room for 2 names"},
    {"Verbosity",
     [](Objects& o) { return o.context.setNvtxVerbosity(nvinfer1::ProfilingVerbosity::kDETAILED); },
     "IExecutionContext::setNvtxVerbosity: the verbosity is 2, the engine was built with 0"},
    {"MemoryOfItsOwn",
     [](Objects& o) {
         o.context.setDeviceMemoryV2(nullptr, 0);
         return false;
     },
     "IExecutionContext::setDeviceMemoryV2: the context has memory of its own: create it with "
     "kUSER_MANAGED"},
    {"Communicator", [](Objects& o) { return o.context.setCommunicator(&o); },
     "IExecutionContext::setCommunicator: the engine has no collective layers"},
    {"OutputOfAnInput", [](Objects& o) { return o.context.getMaxOutputSize("x") >= 0; },
     "IExecutionContext::getMaxOutputSize: 'x' is an input"},
};

class RuntimeMisuse : public RuntimeTest {};

TEST_P(RuntimeMisuse, EachSaysWhatIsWrong) {
    for (const Misuse& m : misuses) {
        SCOPED_TRACE(m.name);
        auto engine = load(*two_results());
        auto c = context(*engine);
        std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine->createRuntimeConfig());
        std::unique_ptr<nvinfer1::IRuntimeCache> cache(config->createRuntimeCache());
        std::unique_ptr<nvinfer1::IEngineInspector> inspector(engine->createEngineInspector());
        std::unique_ptr<nvinfer1::ISerializationConfig> serialization(
            engine->createSerializationConfig());
        Objects objects{*runtime, *engine, *c, *config, *cache, *inspector, *serialization};
        EXPECT_FALSE(m.call(objects));
        std::string expected = m.text;
        constexpr std::string_view layers = "{layers}";
        if (size_t at = expected.find(layers); at != std::string::npos) {
            expected.replace(at, layers.size(), std::to_string(engine->getNbLayers()));
        }
        EXPECT_EQ(logger.take_error(), expected);
        // Correct use still works.
        void* y = memory->allocate(16);
        EXPECT_TRUE(c->setInputShape("x", dims({2, 2})));
        c->setTensorAddress("x", memory->floats({1, 2, 3, 4}));
        c->setTensorAddress("y", y);
        c->setTensorAddress("z", memory->allocate(16));
        EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
        EXPECT_EQ(values_at(y, 4), (std::vector<float>{2, 3, 4, 5}));
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, RuntimeMisuse, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
