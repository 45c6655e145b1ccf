// SPDX-License-Identifier: Apache-2.0
// The calls of NVIDIA's sampleDynamicReshape: one engine resizes a picture of any size, a second
// one, of a model with a softmax added, classifies it. MODEL IMAGE SIZE.
#include "common.h"

using namespace nvinfer1;
using namespace samples;

static void add_calibration_profile(IBuilder& builder, IBuilderConfig& config, const char* input,
                                    const Dims4& dims) {
    IOptimizationProfile* profile = builder.createOptimizationProfile();
    for (auto selector :
         {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX}) {
        NEED(profile->setDimensions(input, selector, dims));
    }
    NEED(config.setCalibrationProfile(profile));
}

static std::unique_ptr<ICudaEngine> prediction(IBuilder& builder, IRuntime& runtime,
                                               ILogger& logger, cudaStream_t stream,
                                               const char* path, Dims& in, Dims& out) {
    auto flags = 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    std::unique_ptr<INetworkDefinition> network(builder.createNetworkV2(flags));
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    NEED(parser->parseFromFile(path, static_cast<int>(ILogger::Severity::kWARNING)));
    ISoftMaxLayer* softmax = network->addSoftMax(*network->getOutput(0));
    softmax->setAxes(1U << 1U);
    network->unmarkOutput(*network->getOutput(0));
    network->markOutput(*softmax->getOutput(0));
    in = network->getInput(0)->getDimensions();
    out = network->getOutput(0)->getDimensions();
    std::unique_ptr<IBuilderConfig> config(builder.createBuilderConfig());
    config->setProfileStream(stream);
    add_calibration_profile(builder, *config, network->getInput(0)->getName(), Dims4{1, 1, 8, 8});
    std::unique_ptr<IHostMemory> plan(builder.buildSerializedNetwork(*network, *config));
    NEED(plan);
    return std::unique_ptr<ICudaEngine>(runtime.deserializeCudaEngine(plan->data(), plan->size()));
}

static std::unique_ptr<ICudaEngine> preprocessor(IBuilder& builder, IRuntime& runtime,
                                                 cudaStream_t stream, const Dims& target) {
    auto flags = 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    std::unique_ptr<INetworkDefinition> network(builder.createNetworkV2(flags));
    ITensor* input = network->addInput("input", DataType::kFLOAT, Dims4{-1, 1, -1, -1});
    IResizeLayer* resize = network->addResize(*input);
    resize->setOutputDimensions(target);
    network->markOutput(*resize->getOutput(0));
    std::unique_ptr<IBuilderConfig> config(builder.createBuilderConfig());
    IOptimizationProfile* profile = builder.createOptimizationProfile();
    profile->setDimensions(input->getName(), OptProfileSelector::kMIN, Dims4{1, 1, 1, 1});
    profile->setDimensions(input->getName(), OptProfileSelector::kOPT, Dims4{1, 1, 8, 8});
    profile->setDimensions(input->getName(), OptProfileSelector::kMAX, Dims4{1, 1, 56, 56});
    config->addOptimizationProfile(profile);
    add_calibration_profile(builder, *config, input->getName(), Dims4{256, 1, 8, 8});
    config->setProfileStream(stream);
    std::unique_ptr<IHostMemory> plan(builder.buildSerializedNetwork(*network, *config));
    NEED(plan);
    return std::unique_ptr<ICudaEngine>(runtime.deserializeCudaEngine(plan->data(), plan->size()));
}

int main(int argc, char** argv) {
    NEED(argc == 4);
    Logger logger;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    Stream stream;
    Dims in{};
    Dims out{};
    auto predict = prediction(*builder, *runtime, logger, stream, argv[1], in, out);
    auto prepare = preprocessor(*builder, *runtime, stream, in);
    NEED(predict && prepare);
    const char* name = prepare->getIOTensorName(0);
    for (auto selector :
         {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX}) {
        Dims dims = prepare->getProfileShape(name, 0, selector);
        std::printf("profile %dx%d\n", static_cast<int>(dims.d[2]), static_cast<int>(dims.d[3]));
    }
    std::unique_ptr<IExecutionContext> first(prepare->createExecutionContext());
    std::unique_ptr<IExecutionContext> second(predict->createExecutionContext());
    NEED(first && second);

    int size = std::atoi(argv[3]);
    std::vector<float> image = read_floats(argv[2]);
    Buffer picture(image.size() * sizeof(float));
    Buffer resized(static_cast<size_t>(volume(in)) * sizeof(float));
    Buffer output(static_cast<size_t>(volume(out)) * sizeof(float));
    picture.write(image);
    NEED(!first->allInputDimensionsSpecified());
    NEED(first->setInputShape(name, Dims4{1, 1, size, size}));
    NEED(first->allInputDimensionsSpecified());
    void* of_first[2] = {picture.get(), resized.get()};
    NEED(first->executeV2(of_first));
    void* of_second[2] = {resized.get(), output.get()};
    NEED(second->executeV2(of_second));
    std::vector<float> probabilities = output.read<float>();
    std::printf("sum %.3f\n", std::accumulate(probabilities.begin(), probabilities.end(), 0.0F));
    print_class(probabilities);
    return 0;
}
