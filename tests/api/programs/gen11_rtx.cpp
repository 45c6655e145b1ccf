// SPDX-License-Identifier: Apache-2.0
// Additions of TensorRT for RTX: compute capabilities, engine validity, runtime cache, strategies,
// deferred weights, refit records.
#include "NvInfer.h"
#include "NvOnnxParser.h"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace {

class Logger : public nvinfer1::ILogger {
public:
    void log(Severity, const nvinfer1::AsciiChar* msg) noexcept override { std::cerr << msg; }
} logger;

struct Table : nvonnxparser::IRefitterObserver {
    void onRefittableWeight(const nvonnxparser::RefitRecord& record) noexcept override {
        bytes += record.fixedDataSize;
        batch_norms += record.kind == nvonnxparser::RefitTransformKind::kBATCH_NORM_FOLD_SCALE;
    }
    size_t bytes = 0;
    int batch_norms = 0;
};

bool configure(nvinfer1::IBuilderConfig& config) {
    using nvinfer1::ComputeCapability;
    return config.setNbComputeCapabilities(3) &&
           config.setComputeCapability(ComputeCapability::kSM80, 0) &&
           config.setComputeCapability(ComputeCapability::kSM90, 1) &&
           config.setComputeCapability(ComputeCapability::kSM120, 2) &&
           config.getComputeCapability(1) == ComputeCapability::kSM90;
}

bool usable(nvinfer1::IRuntime& runtime, const void* blob) {
    uint64_t why = 0;
    const auto validity = runtime.getEngineValidity(blob, runtime.getEngineHeaderSize(), &why);
    if (validity == nvinfer1::EngineValidity::kINVALID) {
        const auto version =
            static_cast<uint64_t>(nvinfer1::EngineInvalidityDiagnostics::kVERSION_MISMATCH);
        std::cerr << ((why & version) != 0 ? "another version\n" : "cannot run here\n");
        return false;
    }
    return true;
}

std::unique_ptr<nvinfer1::IExecutionContext> make_context(nvinfer1::ICudaEngine& engine,
                                                          std::vector<char>& file) {
    using namespace nvinfer1;
    const std::unique_ptr<IRuntimeConfig> config{engine.createRuntimeConfig()};
    const std::unique_ptr<IRuntimeCache> cache{config->createRuntimeCache()};
    if (!file.empty() && !cache->deserialize(file.data(), file.size())) {
        std::cerr << "the cache is not for this machine\n";
    }
    config->setRuntimeCache(*cache);
    config->setDynamicShapesKernelSpecializationStrategy(
        DynamicShapesKernelSpecializationStrategy::kEAGER);
    config->setCudaGraphStrategy(CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
    config->setExecutionContextAllocationStrategy(
        ExecutionContextAllocationStrategy::kUSER_MANAGED);
    std::unique_ptr<IExecutionContext> context{engine.createExecutionContext(config.get())};
    const std::unique_ptr<IHostMemory> bytes{cache->serialize()};
    const auto* const data = static_cast<const char*>(bytes->data());
    file.assign(data, data + bytes->size());
    return context;
}

bool refit(nvinfer1::ICudaEngine& engine, const char* onnx, Table& table) {
    const std::unique_ptr<nvinfer1::IRefitter> refitter{
        nvinfer1::createInferRefitter(engine, logger)};
    const std::unique_ptr<nvonnxparser::IParserRefitter> parser{
        nvonnxparser::createParserRefitter(*refitter, logger)};
    parser->setRefitObserver(&table);
    return parser->refitFromFile(onnx) && refitter->refitCudaEngine();
}

} // namespace

int main(int argc, char** argv) {
    using namespace nvinfer1;
#ifndef TRT_MAJOR_RTX
    static_assert(NV_TENSORRT_MAJOR >= 10, "the other product");
#endif
    const std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
    const std::unique_ptr<IBuilderConfig> config{builder->createBuilderConfig()};
    config->setFlag(BuilderFlag::kSTRIP_PLAN);
    config->setFlag(BuilderFlag::kREQUIRE_USER_ALLOCATION);
    const std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(0)};
    if (!configure(*config)) {
        return 1;
    }
    const std::unique_ptr<IHostMemory> plan{builder->buildSerializedNetwork(*network, *config)};
    const std::unique_ptr<IRuntime> runtime{createInferRuntime(logger)};
    if (plan == nullptr || !usable(*runtime, plan->data())) {
        return 1;
    }
    runtime->setDeferredWeightsLoading(true);
    const std::unique_ptr<ICudaEngine> engine{
        runtime->deserializeCudaEngine(plan->data(), plan->size())};
    std::vector<char> file;
    const auto context = make_context(*engine, file);
    Table table;
    const bool ok = engine->areWeightsLoaded() ||
                    engine->loadWeights(plan->data(), static_cast<int64_t>(plan->size()));
    std::vector<char> memory(context->updateDeviceMemorySizeForShapes());
    context->setDeviceMemoryV2(memory.data(), static_cast<int64_t>(memory.size()));
    return ok && context->isStreamCapturable(nullptr) && argc > 1 && refit(*engine, argv[1], table)
               ? 0
               : 1;
}
