// SPDX-License-Identifier: Apache-2.0
// A program of the newest generation: a network made by hand, one parsed, built, saved, loaded,
// run.
#include "NvInfer.h"
#include "NvOnnxParser.h"

#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

class Logger : public nvinfer1::ILogger {
public:
    void log(Severity severity, const char* msg) noexcept override {
        if (severity <= Severity::kWARNING) {
            std::cerr << msg << '\n';
        }
    }
};

class FileWriter : public nvinfer1::IStreamWriter {
public:
    explicit FileWriter(const std::string& path) : out_(path, std::ios::binary) {}
    int64_t write(const void* data, int64_t nbBytes) override {
        out_.write(static_cast<const char*>(data), nbBytes);
        return out_ ? nbBytes : -1;
    }

private:
    std::ofstream out_;
};

class Progress : public nvinfer1::IProgressMonitor {
public:
    void phaseStart(const char* phaseName, const char* parentPhase,
                    int32_t nbSteps) noexcept override {
        std::cout << (parentPhase != nullptr ? parentPhase : "") << '/' << phaseName << ' '
                  << nbSteps << '\n';
    }
    bool stepComplete(const char*, int32_t) noexcept override { return true; }
    void phaseFinish(const char*) noexcept override {}
};

template <class T>
using Owned = std::unique_ptr<T>;

bool make_network(nvinfer1::INetworkDefinition& network, const std::vector<float>& kernel) {
    using namespace nvinfer1;
    ITensor* const input = network.addInput("x", DataType::kFLOAT, Dims4{-1, 3, -1, -1});
    const Weights weights{DataType::kFLOAT, kernel.data(), static_cast<int64_t>(kernel.size())};
    const Weights none{DataType::kFLOAT, nullptr, 0};
    IConvolutionLayer* const conv =
        network.addConvolutionNd(*input, 8, DimsHW{3, 3}, weights, none);
    if (conv == nullptr) {
        return false;
    }
    conv->setName("conv");
    conv->setStrideNd(DimsHW{2, 2});
    conv->setPaddingMode(PaddingMode::kSAME_UPPER);
    IActivationLayer* const act = network.addActivation(*conv->getOutput(0), ActivationType::kRELU);
    IReduceLayer* const mean =
        network.addReduce(*act->getOutput(0), ReduceOperation::kAVG, (1U << 2) | (1U << 3), false);
    ITopKLayer* const top =
        network.addTopK(*mean->getOutput(0), TopKOperation::kMAX, 2, 1U << 1, DataType::kINT32);
    top->getOutput(0)->setName("values");
    top->getOutput(1)->setName("indices");
    network.markOutput(*top->getOutput(0));
    network.markOutput(*top->getOutput(1));
    return network.getNbLayers() == 4;
}

Owned<nvinfer1::IHostMemory> build(Logger& logger, const char* onnx) {
    using namespace nvinfer1;
    const Owned<IBuilder> builder{createInferBuilder(logger)};
    const auto flags = 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
    const Owned<INetworkDefinition> network{builder->createNetworkV2(flags)};
    const std::vector<float> kernel(8 * 3 * 3 * 3, 0.1F);
    if (onnx != nullptr) {
        const Owned<nvonnxparser::IParser> parser{nvonnxparser::createParser(*network, logger)};
        if (!parser->parseFromFile(onnx, static_cast<int32_t>(ILogger::Severity::kWARNING))) {
            for (int32_t i = 0; i < parser->getNbErrors(); ++i) {
                std::cerr << parser->getError(i)->desc() << '\n';
            }
            return nullptr;
        }
    } else if (!make_network(*network, kernel)) {
        return nullptr;
    }

    Progress progress;
    const Owned<IBuilderConfig> config{builder->createBuilderConfig()};
    config->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, size_t{1} << 30);
    config->setFlag(BuilderFlag::kSTRICT_NANS);
    config->clearFlag(BuilderFlag::kTF32);
    config->setBuilderOptimizationLevel(3);
    config->setProfilingVerbosity(ProfilingVerbosity::kDETAILED);
    config->setProgressMonitor(&progress);
    const Owned<ITimingCache> cache{config->createTimingCache(nullptr, 0)};
    config->setTimingCache(*cache, false);
    IOptimizationProfile* const profile = builder->createOptimizationProfile();
    profile->setDimensions("x", OptProfileSelector::kMIN, Dims4{1, 3, 32, 32});
    profile->setDimensions("x", OptProfileSelector::kOPT, Dims4{4, 3, 224, 224});
    profile->setDimensions("x", OptProfileSelector::kMAX, Dims4{8, 3, 512, 512});
    if (config->addOptimizationProfile(profile) < 0) {
        return nullptr;
    }
    FileWriter writer("model.engine");
    if (!builder->buildSerializedNetworkToStream(*network, *config, writer)) {
        return nullptr;
    }
    return Owned<IHostMemory>{builder->buildSerializedNetwork(*network, *config)};
}

bool run(nvinfer1::ICudaEngine& engine, void* input, void* values, void* indices,
         cudaStream_t stream) {
    using namespace nvinfer1;
    const Owned<IExecutionContext> context{engine.createExecutionContext()};
    for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
        const char* const name = engine.getIOTensorName(i);
        const Dims shape = engine.getTensorShape(name);
        std::cout << name << ' ' << shape.nbDims << ' '
                  << (engine.getTensorIOMode(name) == TensorIOMode::kINPUT) << '\n';
    }
    bool ok = context->setOptimizationProfileAsync(0, stream) &&
              context->setInputShape("x", Dims4{1, 3, 64, 64});
    ok = ok && context->setTensorAddress("x", input);
    ok = ok && context->setTensorAddress("values", values);
    ok = ok && context->setTensorAddress("indices", indices);
    const char* missing = nullptr;
    ok = ok && context->inferShapes(1, &missing) == 0;
    return ok && context->enqueueV3(stream);
}

} // namespace

int main(int argc, char** argv) {
    using namespace nvinfer1;
    Logger logger;
    const Owned<IHostMemory> plan = build(logger, argc > 1 ? argv[1] : nullptr);
    if (plan == nullptr) {
        return 1;
    }
    const Owned<IRuntime> runtime{createInferRuntime(logger)};
    const Owned<ICudaEngine> engine{runtime->deserializeCudaEngine(plan->data(), plan->size())};
    if (engine == nullptr) {
        return 1;
    }
    const Owned<IEngineInspector> inspector{engine->createEngineInspector()};
    std::cout << inspector->getEngineInformation(LayerInformationFormat::kJSON) << '\n';
    std::cout << engine->getDeviceMemorySizeV2() << ' '
              << engine->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE) << '\n';
    std::vector<float> x(3 * 64 * 64), values(2);
    std::vector<int32_t> indices(2);
    return run(*engine, x.data(), values.data(), indices.data(), nullptr) ? 0 : 1;
}
