// SPDX-License-Identifier: Apache-2.0
// The calls of NVIDIA's sampleOnnxMNIST: MODEL IMAGE [--fp16 or --int8].
#include "common.h"

using namespace nvinfer1;
using namespace samples;

int main(int argc, char** argv) {
    NEED(argc >= 3);
    std::string mode = argc > 3 ? argv[3] : "";
    Logger logger;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    auto flags = 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(flags));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    NEED(network && config && parser);
    NEED(parser->parseFromFile(argv[1], static_cast<int>(ILogger::Severity::kWARNING)));
    if (mode == "--fp16") {
        config->setFlag(BuilderFlag::kFP16);
    }
    if (mode == "--int8") {
        config->setFlag(BuilderFlag::kINT8);
        set_all_ranges(*network);
    }
    Stream profile_stream;
    config->setProfileStream(profile_stream);
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    NEED(plan);
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    NEED(engine);
    NEED(network->getNbInputs() == 1 && network->getNbOutputs() == 1);
    Dims in = network->getInput(0)->getDimensions();
    Dims out = network->getOutput(0)->getDimensions();
    NEED(in.nbDims == 4 && out.nbDims == 2);

    Buffer input(static_cast<size_t>(volume(in)) * sizeof(float));
    Buffer output(static_cast<size_t>(volume(out)) * sizeof(float));
    std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    NEED(context);
    input.write(read_floats(argv[2]));
    void* bindings[2] = {input.get(), output.get()};
    NEED(context->executeV2(bindings));
    print_prediction(output.read<float>());
    return 0;
}
