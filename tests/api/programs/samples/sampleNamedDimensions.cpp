// SPDX-License-Identifier: Apache-2.0
// The calls of NVIDIA's sampleNamedDimensions: both inputs of a concatenation have one named size,
// which the profile fixes. MODEL SIZE.
#include "common.h"

using namespace nvinfer1;
using namespace samples;

int main(int argc, char** argv) {
    NEED(argc == 3);
    int size = std::atoi(argv[2]);
    Logger logger;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    auto flags = 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(flags));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    NEED(parser->parseFromFile(argv[1], static_cast<int>(ILogger::Severity::kWARNING)));
    NEED(network->getNbInputs() == 2 && network->getNbOutputs() == 1);
    Stream stream;
    config->setProfileStream(stream);
    IOptimizationProfile* profile = builder->createOptimizationProfile();
    for (int32_t i = 0; i < 2; ++i) {
        ITensor* input = network->getInput(i);
        NEED(input->getDimensions().nbDims == 2 && input->getDimensions().d[0] == -1);
        Dims2 dims(size, input->getDimensions().d[1]);
        profile->setDimensions(input->getName(), OptProfileSelector::kMIN, dims);
        profile->setDimensions(input->getName(), OptProfileSelector::kMAX, dims);
        profile->setDimensions(input->getName(), OptProfileSelector::kOPT, dims);
    }
    config->addOptimizationProfile(profile);
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    NEED(plan);
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    NEED(engine);

    // The buffers have the engine's sizes: those that the profile fixed are known.
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<void*> bindings;
    float next = 0;
    for (int32_t i = 0; i < engine->getNbIOTensors(); ++i) {
        int64_t count = volume(engine->getTensorShape(engine->getIOTensorName(i)));
        NEED(count > 0);
        std::vector<float> values(static_cast<size_t>(count));
        std::generate(values.begin(), values.end(), [&next] { return next++; });
        buffers.push_back(std::make_unique<Buffer>(values.size() * sizeof(float)));
        buffers.back()->write(values);
        bindings.push_back(buffers.back()->get());
    }
    std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    NEED(context);
    NEED(context->executeV2(bindings.data()));
    print("Output", buffers.back()->read<float>());
    return 0;
}
