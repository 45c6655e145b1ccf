// SPDX-License-Identifier: Apache-2.0
// Runs on values of shape inputs, inside and outside of the profile's.
#include "NvInfer.h"
#include "api/runtime_fixture.h"

#include <array>

namespace ingot::test {
namespace {

namespace nv = nvinfer1;

using Values = std::array<int32_t, 2>;

/// Provides one block, and records the shape.
class Output : public nv::IOutputAllocator {
public:
    explicit Output(void* memory) : memory_(memory) {}
    void* reallocateOutputAsync(const char*, void*, uint64_t, uint64_t,
                                cudaStream_t) noexcept override {
        return memory_;
    }
    void notifyShape(const char*, const nv::Dims& dims) noexcept override { shape = sizes(dims); }
    std::vector<int64_t> shape;

private:
    void* memory_;
};

/// y = x reshaped to the values of s, under two profiles.
class ShapeValuesRun : public RuntimeTest {
protected:
    ShapeValuesRun() {
        std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(logger));
        std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
        std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
        nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, dims({12}));
        nv::ITensor* s = network->addInput("s", nv::DataType::kINT32, dims({2}));
        nv::IShuffleLayer* shuffle = network->addShuffle(*x);
        shuffle->setInput(1, *s);
        shuffle->getOutput(0)->setName("y");
        network->markOutput(*shuffle->getOutput(0));
        add_profile(*builder, *config, {1, 2}, {3, 4}, {6, 12});
        add_profile(*builder, *config, {12, 1}, {12, 1}, {12, 1});
        std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
        EXPECT_NE(bytes, nullptr) << logger.take_error();
        engine.reset(runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
        c = context(*engine);
        c->setTensorAddress("x", memory->floats(std::vector<float>(12, 2.0F)));
        c->setOutputAllocator("y", &output);
    }
    static void add_profile(nv::IBuilder& builder, nv::IBuilderConfig& config, Values least,
                            Values expected, Values most) {
        nv::IOptimizationProfile* p = builder.createOptimizationProfile();
        EXPECT_TRUE(p->setShapeValues("s", nv::OptProfileSelector::kMIN, least.data(), 2));
        EXPECT_TRUE(p->setShapeValues("s", nv::OptProfileSelector::kOPT, expected.data(), 2));
        EXPECT_TRUE(p->setShapeValues("s", nv::OptProfileSelector::kMAX, most.data(), 2));
        config.addOptimizationProfile(p);
    }
    bool run(Values s) {
        void* there = memory->allocate(8);
        std::memcpy(there, s.data(), 8);
        c->setInputTensorAddress("s", there);
        output.shape.clear();
        return c->enqueueV3(nullptr);
    }
    std::unique_ptr<nv::ICudaEngine> engine;
    Output output{memory->allocate(48)};
    std::unique_ptr<nv::IExecutionContext> c;
};

TEST_P(ShapeValuesRun, ValuesOutsideTheProfileAreRefused) {
    if (real::is_asked_for()) {
        GTEST_SKIP() << "writes to device memory";
    }
    const std::string advice =
        ": give a value in this range, select another profile, or build the engine with a profile "
        "that has it (IOptimizationProfile::setShapeValuesV2)";
    EXPECT_TRUE(run({3, 4})) << logger.take_error();
    EXPECT_EQ(output.shape, (std::vector<int64_t>{3, 4}));
    EXPECT_FALSE(run({12, 1}));
    EXPECT_EQ(logger.take_error(),
              "IExecutionContext::enqueueV3: input 's' has the value 12 at index 0, profile 0 "
              "allows 1 to 6" +
                  advice);
    EXPECT_EQ(output.shape, (std::vector<int64_t>{})); // nothing has run
    EXPECT_FALSE(run({6, -1}));
    EXPECT_EQ(logger.take_error(),
              "IExecutionContext::enqueueV3: input 's' has the value -1 at index 1, profile 0 "
              "allows 2 to 12" +
                  advice);
    EXPECT_TRUE(run({6, 2})) << logger.take_error();
    ASSERT_TRUE(c->setOptimizationProfileAsync(1, nullptr));
    EXPECT_TRUE(run({12, 1})) << logger.take_error();
    EXPECT_EQ(output.shape, (std::vector<int64_t>{12, 1}));
    EXPECT_FALSE(run({3, 4}));
    EXPECT_EQ(logger.take_error(),
              "IExecutionContext::enqueueV3: input 's' has the value 3 at index 0, profile 1 "
              "allows 12 to 12" +
                  advice);
    c->setInputTensorAddress("s", nullptr);
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_EQ(logger.take_error(), "IExecutionContext::enqueueV3: input 's' has no address");
}

INSTANTIATE_TEST_SUITE_P(Devices, ShapeValuesRun, testing::Bool(),
                         [](const auto& i) { return i.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
