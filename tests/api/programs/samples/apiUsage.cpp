// SPDX-License-Identifier: Apache-2.0
// The calls of NVIDIA's apiUsage: open batch, kCURRENT, a stripped engine that is refitted, a
// runtime cache, kernels for shapes, five batch sizes.
#include "two_layers.h"

using namespace nvinfer1;
using namespace samples;

static void print(const char* name, const Dims& dims) {
    std::printf("%s:", name);
    for (int i = 0; i < dims.nbDims; ++i) {
        std::printf(" %d", static_cast<int>(dims.d[i]));
    }
    std::printf("\n");
}

static std::unique_ptr<IHostMemory> build(ILogger& logger, const TwoLayers& layers) {
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    profile->setDimensions("input", OptProfileSelector::kMIN, Dims2{1, input_size});
    profile->setDimensions("input", OptProfileSelector::kOPT, Dims2{4, input_size});
    profile->setDimensions("input", OptProfileSelector::kMAX, Dims2{32, input_size});
    NEED(config->addOptimizationProfile(profile) == 0);
    NEED(config->setNbComputeCapabilities(1));
    NEED(config->setComputeCapability(ComputeCapability::kCURRENT, 0));
    config->setFlag(BuilderFlag::kSTRIP_PLAN);
    config->setFlag(BuilderFlag::kREFIT);
    auto network = layers.network(*builder, -1);
    return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
}

static void refit(ILogger& logger, ICudaEngine& engine, const TwoLayers& layers) {
    std::unique_ptr<IRefitter> refitter(createInferRefitter(engine, logger));
    NEED(refitter);
    NEED(refitter->setNamedWeights("fc1 weights", layers.weights1));
    NEED(refitter->setNamedWeights("fc2 weights", layers.weights2));
    NEED(refitter->refitCudaEngine());
}

static std::vector<float> infer(ICudaEngine& engine, IExecutionContext& context,
                                const std::vector<float>& input, int32_t batch,
                                cudaStream_t stream) {
    NEED(context.setOptimizationProfileAsync(0, stream));
    NEED(context.setInputShape("input", Dims2{batch, input_size}));
    NEED(context.allInputDimensionsSpecified());
    NEED(context.inferShapes(0, nullptr) == 0);
    NEED(engine.getNbIOTensors() == 2);
    void* bindings[2] = {};
    size_t sizes[2] = {};
    for (int32_t i = 0; i < 2; ++i) {
        const char* name = engine.getIOTensorName(i);
        sizes[i] = static_cast<size_t>(volume(context.getTensorShape(name))) * sizeof(float);
        NEED(cudaMallocAsync(&bindings[i], sizes[i], stream) == 0);
        NEED(context.setTensorAddress(name, bindings[i]));
    }
    NEED(sizes[0] == input.size() * sizeof(float));
    std::vector<float> output(sizes[1] / sizeof(float));
    NEED(cudaMemcpyAsync(bindings[0], input.data(), sizes[0], to_device, stream) == 0);
    NEED(context.enqueueV3(stream));
    NEED(cudaMemcpyAsync(output.data(), bindings[1], sizes[1], to_host, stream) == 0);
    NEED(cudaFreeAsync(bindings[0], stream) == 0 && cudaFreeAsync(bindings[1], stream) == 0);
    NEED(cudaStreamSynchronize(stream) == 0);
    return output;
}

int main() {
    Logger logger;
    TwoLayers layers;
    auto plan = build(logger, layers);
    NEED(plan);
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    NEED(engine);
    refit(logger, *engine, layers);

    std::unique_ptr<IRuntimeConfig> settings(engine->createRuntimeConfig());
    std::unique_ptr<IRuntimeCache> cache(settings->createRuntimeCache());
    NEED(cache);
    NEED(settings->setRuntimeCache(*cache));
    print("Minimum", engine->getProfileShape("input", 0, OptProfileSelector::kMIN));
    print("Optimum", engine->getProfileShape("input", 0, OptProfileSelector::kOPT));
    print("Maximum", engine->getProfileShape("input", 0, OptProfileSelector::kMAX));
    auto lazy = DynamicShapesKernelSpecializationStrategy::kLAZY;
    settings->setDynamicShapesKernelSpecializationStrategy(lazy);
    NEED(settings->getDynamicShapesKernelSpecializationStrategy() == lazy);
    std::unique_ptr<IExecutionContext> context(engine->createExecutionContext(settings.get()));
    NEED(context);

    cudaStream_t stream = nullptr;
    NEED(cudaStreamCreate(&stream) == 0);
    for (int32_t batch : {1, 2, 4, 18, 32}) {
        std::vector<float> input(static_cast<size_t>(batch) * input_size);
        for (size_t i = 0; i < input.size(); ++i) {
            input[i] = static_cast<float>(batch + batch * static_cast<int32_t>(i % input_size));
        }
        print("Output", infer(*engine, *context, input, batch, stream));
    }
    NEED(cudaStreamDestroy(stream) == 0);
    std::unique_ptr<IHostMemory> serialized(cache->serialize());
    NEED(serialized);
    return 0;
}
