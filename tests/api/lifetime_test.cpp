// SPDX-License-Identifier: Apache-2.0
// The order of destruction, the logger of each message, and default settings.
#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "api/runtime_fixture.h"

#include <limits>

namespace ingot::test {
namespace {

namespace nv = nvinfer1;

class Lifetime : public RuntimeTest {
protected:
    /// The result of the one run of an engine of one input and one output.
    std::vector<float> run(nv::ICudaEngine& engine, const std::vector<float>& x, size_t results) {
        auto c = context(engine);
        EXPECT_NE(c, nullptr) << logger.take_error();
        void* y = memory->allocate(static_cast<int64_t>(results * 4));
        c->setTensorAddress(engine.getIOTensorName(0), memory->floats(x));
        c->setTensorAddress(engine.getIOTensorName(1), y);
        EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
        return values_at(y, results);
    }
    std::unique_ptr<nv::ICudaEngine> load(const nv::IHostMemory& bytes) {
        return std::unique_ptr<nv::ICudaEngine>(
            runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    }
};

TEST_P(Lifetime, ChildrenMayOutliveTheirFactories) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger));
    std::unique_ptr<nv::IBuilder> other(nv::createInferBuilder(logger));
    std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    nv::IOptimizationProfile* profile = builder->createOptimizationProfile();
    for (auto select : {nv::OptProfileSelector::kMIN, nv::OptProfileSelector::kOPT,
                        nv::OptProfileSelector::kMAX}) {
        profile->setDimensions("x", select, dims({2}));
    }
    EXPECT_EQ(config->addOptimizationProfile(profile), 0);
    builder.reset();
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, dims({2}));
    ASSERT_NE(x, nullptr) << logger.take_error();
    nv::ILayer* twice = network->addElementWise(*x, *x, nv::ElementWiseOperation::kSUM);
    network->markOutput(*twice->getOutput(0));
    EXPECT_EQ(config->getNbOptimizationProfiles(), 1);
    std::unique_ptr<nv::IHostMemory> bytes(other->buildSerializedNetwork(*network, *config));
    ASSERT_NE(bytes, nullptr) << logger.take_error();
    auto engine = load(*bytes);
    ASSERT_NE(engine, nullptr) << logger.take_error();
    EXPECT_EQ(run(*engine, {1, 2}, 2), (std::vector<float>{2, 4}));
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(Lifetime, AnEngineOutlivesBuilderNetworkParserAndConfig) {
    std::unique_ptr<nv::ICudaEngine> engine;
    {
        std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger));
        std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
        std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
        std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
        std::vector<float> weights = {1, 2, 3, 4};
        nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, dims({1, 2}));
        nv::IConstantLayer* w =
            network->addConstant(dims({2, 2}), {nv::DataType::kFLOAT, weights.data(), 4});
        nv::ILayer* product = network->addMatrixMultiply(
            *x, nv::MatrixOperation::kNONE, *w->getOutput(0), nv::MatrixOperation::kNONE);
        network->markOutput(*product->getOutput(0));
        engine.reset(builder->buildEngineWithConfig(*network, *config));
        ASSERT_NE(engine, nullptr) << logger.take_error();
        builder.reset();
        network.reset();
        parser.reset();
        config.reset();
        weights.assign(4, -1); // the caller owns its weights again
    }
    EXPECT_EQ(run(*engine, {1, 10}, 2), (std::vector<float>{31, 42}));
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(Lifetime, ACallUsesTheLoggerOfItsRuntime) {
    Logger own;
    std::unique_ptr<nv::IRuntime> other(nv::createInferRuntime(own));
    ingot::setDevice(*other, GetParam() ? Device::kGPU : Device::kCPU);
    AlignedBytes bytes = engine_bytes(*two_results());
    auto here = RuntimeTest::load(bytes);
    std::unique_ptr<nv::ICudaEngine> there(
        other->deserializeCudaEngine(bytes.data(), bytes.size()));
    auto c = context(*here);
    auto d = context(*there);
    EXPECT_FALSE(d->setTensorAddress("w", nullptr));
    EXPECT_EQ(logger.take_error(), "");
    EXPECT_EQ(own.take_error(), "IExecutionContext::setTensorAddress: there is no input or output "
                                "'w', did you mean 'x'?");
    EXPECT_FALSE(c->setTensorAddress("w", nullptr));
    EXPECT_NE(logger.take_error(), "");
    EXPECT_EQ(own.take_error(), "");
    EXPECT_EQ(there->getIOTensorName(9), nullptr);
    EXPECT_NE(own.take_error(), "");
}

TEST_P(Lifetime, WithoutARecorderErrorsGoToTheLogger) {
    auto engine = RuntimeTest::load(*two_results());
    EXPECT_EQ(engine->getErrorRecorder(), nullptr);
    EXPECT_EQ(engine->getIOTensorName(9), nullptr);
    EXPECT_EQ(logger.take_error(),
              "ICudaEngine::getIOTensorName: tensor 9 does not exist, the engine has 3");
}

TEST_P(Lifetime, PoolsHaveTheirDefaults) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger));
    std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    constexpr size_t all = std::numeric_limits<size_t>::max();
    EXPECT_EQ(config->getMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE), all);
    EXPECT_EQ(config->getMemoryPoolLimit(nv::MemoryPoolType::kTACTIC_SHARED_MEMORY), all);
    EXPECT_EQ(config->getMemoryPoolLimit(nv::MemoryPoolType::kDLA_MANAGED_SRAM), 0U);
    config->setMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE, 4096);
    EXPECT_EQ(config->getMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE), 4096U);
    // The engine stores the limit.
    std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, dims({2}));
    network->markOutput(
        *network->addElementWise(*x, *x, nv::ElementWiseOperation::kSUM)->getOutput(0));
    std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(bytes, nullptr) << logger.take_error();
    auto engine =
        Engine::load({static_cast<const std::byte*>(bytes->data()), bytes->size()}, nullptr);
    EXPECT_EQ(api::read_build_settings(*engine).workspace, 4096);
    EXPECT_EQ(api::read_build_settings(*engine).shared_memory, 0);
}

TEST_P(Lifetime, ScatterTakesOneOfSeveralUpdates) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger));
    std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    const std::vector<int32_t> places = {1, 1, 1};
    const std::vector<float> values = {5, 6, 7};
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, dims({3}));
    nv::IConstantLayer* at =
        network->addConstant(dims({3}), {nv::DataType::kINT32, places.data(), 3});
    nv::IConstantLayer* to =
        network->addConstant(dims({3}), {nv::DataType::kFLOAT, values.data(), 3});
    nv::ILayer* scatter =
        network->addScatter(*x, *at->getOutput(0), *to->getOutput(0), nv::ScatterMode::kELEMENT);
    ASSERT_NE(scatter, nullptr) << logger.take_error();
    network->markOutput(*scatter->getOutput(0));
    std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
    ASSERT_NE(bytes, nullptr) << logger.take_error();
    auto engine = load(*bytes);
    std::vector<float> y = run(*engine, {1, 2, 3}, 3);
    EXPECT_EQ(y[0], 1);
    EXPECT_TRUE(y[1] == 5 || y[1] == 6 || y[1] == 7) << y[1];
    EXPECT_EQ(y[2], 3);
}

INSTANTIATE_TEST_SUITE_P(Devices, Lifetime, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
