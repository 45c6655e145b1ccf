// SPDX-License-Identifier: Apache-2.0
// Every row of surface.def is true of the headers.
#ifndef INGOT_NO_DEPRECATION_WARNINGS
#define INGOT_NO_DEPRECATION_WARNINGS
#endif
#include "NvInfer.h"
#include "NvInferPlugin.h"
#include "NvOnnxConfig.h"
#include "NvOnnxParser.h"
#include "impl/NvInferPythonPlugin.h"
#include "ingot.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

namespace {

template <class Class, class Function>
using Member = Function Class::*;

// Selects overloads by type; nothing is evaluated.
#define ENUMERATOR(type, name, number)                                                             \
    static_assert(static_cast<int64_t>(type::name) == (number), #type "::" #name);
#define FIELD(type, name, ...)                                                                     \
    static_assert(std::is_same_v<decltype(type::name), __VA_ARGS__>, #type "::" #name);
#define BASE(type, base) static_assert(std::is_convertible_v<type*, base*>, #type " is a " #base);
#define METHOD(type, name, ...)                                                                    \
    static_assert(sizeof(static_cast<Member<type, __VA_ARGS__>>(&type::name)) != 0,                \
                  #type "::" #name);
#include "api/surface.def"
#undef ENUMERATOR
#undef FIELD
#undef BASE
#undef METHOD

// Ownership: objects of create... methods can be deleted, parts of others cannot.
template <class T>
constexpr bool is_deletable = std::has_virtual_destructor_v<T>&& std::is_destructible_v<T>;
static_assert(is_deletable<nvinfer1::IBuilder>);
static_assert(is_deletable<nvinfer1::IBuilderConfig>);
static_assert(is_deletable<nvinfer1::INetworkDefinition>);
static_assert(is_deletable<nvinfer1::ITimingCache>);
static_assert(is_deletable<nvinfer1::IHostMemory>);
static_assert(is_deletable<nvinfer1::IRuntime>);
static_assert(is_deletable<nvinfer1::ICudaEngine>);
static_assert(is_deletable<nvinfer1::IExecutionContext>);
static_assert(is_deletable<nvinfer1::IRuntimeConfig>);
static_assert(is_deletable<nvinfer1::IRuntimeCache>);
static_assert(is_deletable<nvinfer1::ISerializationConfig>);
static_assert(is_deletable<nvinfer1::IEngineInspector>);
static_assert(is_deletable<nvinfer1::IRefitter>);
static_assert(is_deletable<nvinfer1::IWeightsManager>);
static_assert(is_deletable<nvonnxparser::IParser>);
static_assert(is_deletable<nvonnxparser::IParserRefitter>);
static_assert(!std::is_destructible_v<nvinfer1::ITensor>);
static_assert(!std::is_destructible_v<nvinfer1::ILayer>);
static_assert(!std::is_destructible_v<nvinfer1::ILoop>);
static_assert(!std::is_destructible_v<nvinfer1::IIfConditional>);
static_assert(!std::is_destructible_v<nvinfer1::IAttention>);
static_assert(!std::is_destructible_v<nvinfer1::IOptimizationProfile>);
static_assert(!std::is_destructible_v<nvinfer1::IPluginRegistry>);
static_assert(!std::is_destructible_v<nvonnxparser::IParserError>);
static_assert(!std::is_copy_constructible_v<nvinfer1::IHostMemory>);

// Shapes and weights cross the library's border by value: their layout is fixed.
static_assert(std::is_trivially_copyable_v<nvinfer1::Dims> && sizeof(nvinfer1::Dims) == 72);
static_assert(std::is_aggregate_v<nvinfer1::Dims> && std::is_aggregate_v<nvinfer1::Weights>);
static_assert(std::is_trivially_copyable_v<nvinfer1::Weights> && sizeof(nvinfer1::Weights) == 24);
static_assert(sizeof(nvinfer1::TimingCacheKey) == 16);
static_assert(sizeof(nvinfer1::Dims4) == sizeof(nvinfer1::Dims));
static_assert(nvinfer1::IErrorRecorder::kMAX_DESC_LENGTH == 127);

static_assert(nvinfer1::EnumMax<nvinfer1::DataType>() == 12);
static_assert(nvinfer1::EnumMax<nvinfer1::LayerType>() == 57);
static_assert(nvinfer1::EnumMax<nvinfer1::BuilderFlag>() == 29);
static_assert(nvinfer1::EnumMax<nvinfer1::ILogger::Severity>() == 5);
static_assert(nvonnxparser::EnumMax<nvonnxparser::ErrorCode>() == 14);

// Layers that ITensor and network report by type are distinguishable by LayerType alone: no number
// occurs twice.
#define ENUMERATOR(type, name, number)                                                             \
    if (std::string_view(#type) == "nvinfer1::LayerType") {                                        \
        EXPECT_TRUE(numbers.insert(number).second) << #name;                                       \
    }
#define FIELD(...)
#define BASE(...)
#define METHOD(...)
TEST(ApiSurface, LayerTypesAreDistinctAndDense) {
    std::set<int64_t> numbers;
#include "api/surface.def"
    ASSERT_EQ(numbers.size(), 57u);
    EXPECT_EQ(*numbers.begin(), 0);
    EXPECT_EQ(*numbers.rbegin(), 56);
}

// A flag of an older generation must not have the number of another flag of this one.
#undef ENUMERATOR
#define ENUMERATOR(type, name, number)                                                             \
    if (std::string_view(#type) == flags && std::string_view(#name) != "kWEIGHTLESS") {            \
        EXPECT_TRUE(numbers.insert(number).second) << #type "::" #name;                            \
    }
TEST(ApiSurface, NamesOfOlderGenerationsHaveNumbersOfTheirOwn) {
    for (std::string_view flags :
         {"nvinfer1::BuilderFlag", "nvinfer1::NetworkDefinitionCreationFlag",
          "nvinfer1::PreviewFeature", "nvinfer1::TacticSource"}) {
        std::set<int64_t> numbers;
#include "api/surface.def"
        EXPECT_FALSE(numbers.empty()) << flags;
        EXPECT_LT(*numbers.rbegin(), 32) << flags;
    }
}

TEST(ApiSurface, LegacyDimsAreDims) {
    nvinfer1::Dims4 const dims(1, 3, 224, 256);
    const nvinfer1::Dims& same = dims;
    EXPECT_EQ(same.nbDims, 4);
    EXPECT_EQ(same.d[3], 256);
    nvinfer1::DimsHW size(7, 5);
    EXPECT_EQ(size.nbDims, 2);
    EXPECT_EQ(size.h(), 7);
    EXPECT_EQ(size.w(), 5);
    size.w() = 6;
    EXPECT_EQ(size.d[1], 6);
    EXPECT_EQ(nvinfer1::Dims3().nbDims, 3);
}

// An allocator of either generation serves the calls that the library makes.
class OldAllocator : public nvinfer1::IGpuAllocator {
public:
    void* allocate(const uint64_t size, uint64_t const,
                   nvinfer1::AllocatorFlags const) noexcept override {
        bytes = size;
        return &bytes;
    }
    bool deallocate(void* const memory) noexcept override { return memory == &bytes; }
    uint64_t bytes = 0;
};
class NewAllocator : public nvinfer1::IGpuAsyncAllocator {
public:
    void* allocateAsync(const uint64_t size, uint64_t const, nvinfer1::AllocatorFlags const,
                        cudaStream_t) noexcept override {
        bytes = size;
        return &bytes;
    }
    bool deallocateAsync(void* const memory, cudaStream_t) noexcept override {
        return memory == &bytes;
    }
    uint64_t bytes = 0;
};
TEST(ApiSurface, AllocatorsOfBothGenerationsAnswerAsyncCalls) {
    OldAllocator old_style;
    NewAllocator new_style;
    for (nvinfer1::IGpuAllocator* allocator : {static_cast<nvinfer1::IGpuAllocator*>(&old_style),
                                               static_cast<nvinfer1::IGpuAllocator*>(&new_style)}) {
        void* const memory = allocator->allocateAsync(64, 0, 0, nullptr);
        ASSERT_NE(memory, nullptr);
        EXPECT_EQ(*static_cast<uint64_t*>(memory), 64u);
        EXPECT_TRUE(allocator->deallocateAsync(memory, nullptr));
        EXPECT_EQ(allocator->allocate(32, 0, 0), memory);
        EXPECT_EQ(*static_cast<uint64_t*>(memory), 32u);
        EXPECT_EQ(allocator->reallocate(memory, 0, 128), nullptr);
        EXPECT_STREQ(allocator->getInterfaceInfo().kind, "IGpuAllocator");
    }
}

class OldOutputs : public nvinfer1::IOutputAllocator {
public:
    void* reallocateOutput(const char*, void*, uint64_t size, uint64_t) noexcept override {
        bytes = size;
        return &bytes;
    }
    void notifyShape(const char*, const nvinfer1::Dims&) noexcept override {}
    uint64_t bytes = 0;
};
TEST(ApiSurface, OutputAllocatorsOfTheOlderGenerationAnswerAsyncCalls) {
    OldOutputs outputs;
    nvinfer1::IOutputAllocator& allocator = outputs;
    EXPECT_EQ(allocator.reallocateOutputAsync("y", nullptr, 48, 16, nullptr), &outputs.bytes);
    EXPECT_EQ(outputs.bytes, 48u);
}

TEST(ApiSurface, OnnxConfigKeepsWhatItIsGiven) {
    const std::unique_ptr<nvonnxparser::IOnnxConfig> config(nvonnxparser::createONNXConfig());
    EXPECT_EQ(config->getModelFileName(), nullptr);
    std::string name = "model.onnx";
    config->setModelFileName(name.c_str());
    name = "other";
    EXPECT_STREQ(config->getModelFileName(), "model.onnx");
    config->setModelFileName(nullptr);
    EXPECT_EQ(config->getModelFileName(), nullptr);
    config->setVerbosityLevel(1);
    config->addVerbosity();
    config->addVerbosity();
    config->reduceVerbosity();
    EXPECT_EQ(config->getVerbosityLevel(), 2);
    config->setModelDtype(nvinfer1::DataType::kHALF);
    EXPECT_EQ(config->getModelDtype(), nvinfer1::DataType::kHALF);
    config->setTextFileName("model.txt");
    config->setFullTextFileName("whole.txt");
    config->setPrintLayerInfo(true);
    EXPECT_STREQ(config->getTextFileName(), "model.txt");
    EXPECT_STREQ(config->getFullTextFileName(), "whole.txt");
    EXPECT_TRUE(config->getPrintLayerInfo());
}

} // namespace
