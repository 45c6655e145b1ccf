// SPDX-License-Identifier: Apache-2.0
// A program in the style of generation 10: explicit batch, precision flags, calibration, allocators
// without streams, engines without device memory.
#include <NvInfer.h>
#include <NvInferPlugin.h>
#include <NvInferRuntimeCommon.h>
#include <NvOnnxParser.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace nvinfer1;

class Logger : public ILogger {
    void log(Severity severity, const char* msg) noexcept override {
        if (severity != Severity::kINFO) {
            std::cout << msg << std::endl;
        }
    }
};

class EntropyCalibrator : public IInt8EntropyCalibrator2 {
public:
    int getBatchSize() const noexcept override { return 1; }
    bool getBatch(void* bindings[], const char* names[], int nbBindings) noexcept override {
        if (left_-- == 0 || nbBindings != 1 || std::string(names[0]) != "input") {
            return false;
        }
        bindings[0] = batch_.data();
        return true;
    }
    const void* readCalibrationCache(size_t& length) noexcept override {
        length = cache_.size();
        return length != 0 ? cache_.data() : nullptr;
    }
    void writeCalibrationCache(const void* cache, size_t length) noexcept override {
        cache_.assign(static_cast<const char*>(cache), length);
    }

private:
    int left_ = 4;
    std::vector<float> batch_ = std::vector<float>(3 * 224 * 224);
    std::string cache_;
};

class MinMaxCalibrator : public IInt8MinMaxCalibrator {
public:
    int32_t getBatchSize() const noexcept override { return 8; }
    bool getBatch(void**, const char**, int32_t) noexcept override { return false; }
    const void* readCalibrationCache(std::size_t& length) noexcept override {
        length = 0;
        return nullptr;
    }
    void writeCalibrationCache(const void*, std::size_t) noexcept override {}
};

class Allocator : public IGpuAllocator {
public:
    void* allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) noexcept override {
        (void)alignment;
        (void)flags;
        return std::malloc(size);
    }
    bool deallocate(void* memory) noexcept override {
        std::free(memory);
        return true;
    }
};

class OutputAllocator : public IOutputAllocator {
public:
    void* reallocateOutput(const char* tensorName, void* currentMemory, uint64_t size,
                           uint64_t alignment) noexcept override {
        (void)currentMemory;
        (void)alignment;
        std::vector<char>& memory = memory_[tensorName];
        memory.resize(size);
        return memory.data();
    }
    void notifyShape(const char* tensorName, const Dims& dims) noexcept override {
        shapes_[tensorName] = dims;
    }

private:
    std::map<std::string, std::vector<char>> memory_;
    std::map<std::string, Dims> shapes_;
};

class Profiler : public IProfiler {
    void reportLayerTime(const char* layerName, float ms) noexcept override {
        times_[layerName] += ms;
    }
    std::map<std::string, float> times_;
};

class Recorder : public IErrorRecorder {
public:
    int32_t getNbErrors() const noexcept override { return 0; }
    ErrorCode getErrorCode(int32_t) const noexcept override { return ErrorCode::kSUCCESS; }
    IErrorRecorder::ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override {}
    bool reportError(ErrorCode, IErrorRecorder::ErrorDesc) noexcept override { return false; }
    RefCount incRefCount() noexcept override { return ++count_; }
    RefCount decRefCount() noexcept override { return --count_; }

private:
    RefCount count_ = 0;
};

struct Deleter {
    template <typename T>
    void operator()(T* object) const {
        delete object;
    }
};
template <typename T>
using Ptr = std::unique_ptr<T, Deleter>;

static Ptr<IHostMemory> build(Logger& logger, EntropyCalibrator& calibrator) {
    Ptr<IBuilder> builder(createInferBuilder(logger));
    const auto explicitBatch =
        1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    Ptr<INetworkDefinition> network(builder->createNetworkV2(explicitBatch));
    Ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    SubGraphCollection_t subgraphs;
    std::string const model;
    if (!parser->supportsModel(model.data(), model.size(), subgraphs) &&
        !parser->parseFromFile("model.onnx", 1)) {
        return nullptr;
    }
    Ptr<IBuilderConfig> config(builder->createBuilderConfig());
    config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 1ULL << 30);
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    const int32_t sizes[] = {1, 224, 224};
    profile->setDimensions("input", OptProfileSelector::kMIN, Dims4(1, 3, 224, 224));
    profile->setShapeValues("size", OptProfileSelector::kMIN, sizes, 3);
    config->addOptimizationProfile(profile);
    if (builder->platformHasFastFp16()) {
        config->setFlag(BuilderFlag::kFP16);
        config->setFlag(BuilderFlag::kPREFER_PRECISION_CONSTRAINTS);
    }
    if (builder->platformHasFastInt8()) {
        config->setFlag(BuilderFlag::kINT8);
        config->setInt8Calibrator(&calibrator);
        config->setCalibrationProfile(profile);
    }
    for (int i = 0; i < network->getNbLayers(); i++) {
        ILayer* layer = network->getLayer(i);
        if (layer->getType() == LayerType::kSOFTMAX) {
            layer->setPrecision(DataType::kFLOAT);
            layer->setOutputType(0, DataType::kFLOAT);
        }
        layer->getOutput(0)->setDynamicRange(-1.F, 1.F);
    }
    config->setTacticSources(1U << static_cast<uint32_t>(TacticSource::kCUBLAS_LT));
    config->setPreviewFeature(PreviewFeature::kPROFILE_SHARING_0806, true);
    return Ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

int main() {
    Logger logger;
    Recorder recorder;
    Allocator allocator;
    OutputAllocator outputs;
    Profiler profiler;
    EntropyCalibrator calibrator;
    MinMaxCalibrator other;
    if (!initLibNvInferPlugins(&logger, "") ||
        other.getAlgorithm() != CalibrationAlgoType::kMINMAX_CALIBRATION) {
        return 1;
    }
    Ptr<IHostMemory> plan = build(logger, calibrator);
    Ptr<IRuntime> runtime(createInferRuntime(logger));
    runtime->setErrorRecorder(&recorder);
    runtime->setGpuAllocator(&allocator);
    Ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    if (engine->hasImplicitBatchDimension()) {
        return 1;
    }
    Ptr<IExecutionContext> context(engine->createExecutionContextWithoutDeviceMemory());
    void* memory = allocator.allocate(engine->getDeviceMemorySize(), 256, 0);
    context->setDeviceMemory(memory);
    context->setProfiler(&profiler);
    context->setOutputAllocator("boxes", &outputs);
    context->setOptimizationProfileAsync(0, nullptr);
    if (!context->allInputDimensionsSpecified() || !context->allInputShapesSpecified()) {
        return 1;
    }
    void* bindings[2] = {nullptr, nullptr};
    bool ok = context->executeV2(bindings);
    allocator.deallocate(memory);
    return ok ? 0 : 1;
}
