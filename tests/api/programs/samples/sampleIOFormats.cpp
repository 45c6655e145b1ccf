// SPDX-License-Identifier: Apache-2.0
// The calls of NVIDIA's sampleIOFormats: the input of a model in f32, f16 and int8, in the formats
// of each. MODEL IMAGE.
#include "common.h"

#include <cstring>

using namespace nvinfer1;
using namespace samples;

/// The bits of a number that is 0, or normal in f16.
static uint16_t half(float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return value == 0 ? uint16_t{0}
                      : static_cast<uint16_t>(((bits >> 16) & 0x8000U) |
                                              (((bits >> 13) - (112U << 10)) & 0x7fffU));
}

static float number(uint16_t bits) {
    float fraction = static_cast<float>(bits & 1023U) / 1024;
    int exponent = (bits >> 10) & 31;
    float size =
        exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
    return (bits & 0x8000U) != 0 ? -size : size;
}

/// The one channel of the picture, padded to the format's channels.
template <class T>
static std::vector<T> padded(const std::vector<float>& image, size_t channels,
                             T (*convert)(float)) {
    std::vector<T> out(image.size() * channels);
    for (size_t i = 0; i < image.size(); ++i) {
        out[i * channels] = convert(image[i]);
    }
    return out;
}

static std::unique_ptr<ICudaEngine> build(ILogger& logger, const char* path, DataType type,
                                          TensorFormat format) {
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    auto flags = 1U << static_cast<uint32_t>(NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(flags));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    NEED(parser->parseFromFile(path, static_cast<int>(ILogger::Severity::kWARNING)));
    network->getInput(0)->setAllowedFormats(1U << static_cast<uint32_t>(format));
    network->getOutput(0)->setAllowedFormats(1U << static_cast<uint32_t>(TensorFormat::kLINEAR));
    if (type == DataType::kINT8) {
        config->setFlag(BuilderFlag::kINT8);
        set_all_ranges(*network);
    }
    if (type == DataType::kHALF) {
        config->setFlag(BuilderFlag::kFP16);
    }
    network->getInput(0)->setType(type);
    network->getOutput(0)->setType(type);
    config->setFlag(BuilderFlag::kGPU_FALLBACK);
    Stream stream;
    config->setProfileStream(stream);
    std::unique_ptr<IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    NEED(plan);
    std::unique_ptr<IRuntime> runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    NEED(engine);
    NEED(engine->getTensorFormat(engine->getIOTensorName(0)) == format);
    NEED(engine->getTensorDataType(engine->getIOTensorName(0)) == type);
    return engine;
}

template <class T>
static void infer(ILogger& logger, const char* path, DataType type, TensorFormat format,
                  const std::vector<T>& input, float (*convert)(T)) {
    auto engine = build(logger, path, type, format);
    Buffer from(input.size() * sizeof(T));
    Buffer to(10 * sizeof(T));
    from.write(input);
    std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    NEED(context);
    NEED(context->setTensorAddress(engine->getIOTensorName(0), from.get()));
    NEED(context->setTensorAddress(engine->getIOTensorName(1), to.get()));
    cudaStream_t stream = nullptr;
    NEED(cudaStreamCreate(&stream) == 0);
    NEED(context->enqueueV3(stream));
    NEED(cudaStreamSynchronize(stream) == 0);
    NEED(cudaStreamDestroy(stream) == 0);
    std::vector<float> scores;
    for (T v : to.read<T>()) {
        scores.push_back(convert(v));
    }
    std::printf("type %d format %d ", static_cast<int>(type), static_cast<int>(format));
    print_class(scores);
}

int main(int argc, char** argv) {
    NEED(argc == 3);
    Logger logger;
    std::vector<float> image = read_floats(argv[2]);
    infer<float>(logger, argv[1], DataType::kFLOAT, TensorFormat::kLINEAR, image,
                 [](float v) { return v; });
    const std::pair<TensorFormat, size_t> halves[] = {
        {TensorFormat::kLINEAR, 1}, {TensorFormat::kCHW2, 2}, {TensorFormat::kHWC8, 8}};
    for (auto [format, channels] : halves) {
        infer<uint16_t>(logger, argv[1], DataType::kHALF, format, padded(image, channels, half),
                        number);
    }
    const std::pair<TensorFormat, size_t> bytes[] = {
        {TensorFormat::kLINEAR, 1}, {TensorFormat::kCHW4, 4}, {TensorFormat::kCHW32, 32}};
    for (auto [format, channels] : bytes) {
        infer<int8_t>(logger, argv[1], DataType::kINT8, format,
                      padded<int8_t>(image, channels,
                                     [](float v) {
                                         return static_cast<int8_t>(std::lround(v * 127 / range));
                                     }),
                      [](int8_t v) { return static_cast<float>(v); });
    }
    return 0;
}
