// SPDX-License-Identifier: Apache-2.0
// The calls of NVIDIA's helloWorld: a network by layers, or a model (--onnx=FILE), and five runs.
#include "two_layers.h"

using namespace nvinfer1;
using namespace samples;

static std::unique_ptr<INetworkDefinition> parsed(IBuilder& builder, ILogger& logger,
                                                  nvonnxparser::IParser*& parser,
                                                  const std::string& path) {
    auto flags = 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
    std::unique_ptr<INetworkDefinition> network(builder.createNetworkV2(flags));
    parser = nvonnxparser::createParser(*network, logger);
    NEED(parser);
    NEED(parser->parseFromFile(path.c_str(), static_cast<int>(ILogger::Severity::kVERBOSE)));
    NEED(network->getInput(0)->getDimensions().d[1] == input_size);
    NEED(network->getOutput(0)->getDimensions().d[1] == output_size);
    return network;
}

int main(int argc, char** argv) {
    Logger logger;
    std::string model = argc > 1 ? std::string(argv[1]) : "";
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    TwoLayers layers;
    nvonnxparser::IParser* parser = nullptr;
    auto network = model.empty() ? layers.network(*builder, 1)
                                 : parsed(*builder, logger, parser, model.substr(7));
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    NEED(plan && plan->size() > 0);
    delete parser;
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    NEED(engine);
    std::unique_ptr<IRuntimeConfig> settings(engine->createRuntimeConfig());
    NEED(settings);
    std::unique_ptr<IExecutionContext> context(engine->createExecutionContext(settings.get()));
    NEED(context);

    cudaStream_t stream = nullptr;
    NEED(cudaStreamCreate(&stream) == 0);
    void* bindings[2] = {};
    NEED(cudaMallocAsync(&bindings[0], input_size * sizeof(float), stream) == 0);
    NEED(cudaMallocAsync(&bindings[1], output_size * sizeof(float), stream) == 0);
    NEED(context->setTensorAddress("input", bindings[0]));
    NEED(context->setTensorAddress("output", bindings[1]));
    for (int i = 0; i < 5; ++i) {
        std::vector<float> input(input_size, static_cast<float>(i));
        std::vector<float> output(output_size);
        NEED(cudaMemcpyAsync(bindings[0], input.data(), input_size * sizeof(float), to_device,
                             stream) == 0);
        NEED(context->enqueueV3(stream));
        NEED(cudaMemcpyAsync(output.data(), bindings[1], output_size * sizeof(float), to_host,
                             stream) == 0);
        NEED(cudaStreamSynchronize(stream) == 0);
        print("Output", output);
    }
    NEED(cudaFreeAsync(bindings[0], stream) == 0 && cudaFreeAsync(bindings[1], stream) == 0);
    NEED(cudaStreamSynchronize(stream) == 0 && cudaStreamDestroy(stream) == 0);
    return 0;
}
