// SPDX-License-Identifier: Apache-2.0
// Builder, configuration, profiles: getters return the set values, which reach the engine.
#include "api/network_fixture.h"

#include <array>
#include <cstring>

namespace ingot::test {

namespace {

class BuilderTest : public NetworkTest {
protected:
    // y = relu(x) of [-1, 4].
    void small_network() {
        nv::ITensor& x = input("x", {-1, 4});
        network->markOutput(*network->addActivation(x, nv::ActivationType::kRELU)->getOutput(0));
        network->getOutput(0)->setName("y");
    }
};

TEST_F(BuilderTest, profiles_reach_the_engine) {
    small_network();
    nv::IOptimizationProfile* p = builder->createOptimizationProfile();
    EXPECT_EQ(p->getDimensions("x", nv::OptProfileSelector::kMIN).nbDims, -1);
    EXPECT_TRUE(p->setDimensions("x", nv::OptProfileSelector::kMIN, dims({1, 4})));
    EXPECT_FALSE(p->isValid());
    EXPECT_EQ(config->addOptimizationProfile(p), -1);
    EXPECT_EQ(logger.errors.back(),
              "IBuilderConfig::addOptimizationProfile: input 'x': opt is not set");
    EXPECT_TRUE(p->setDimensions("x", nv::OptProfileSelector::kOPT, dims({2, 4})));
    EXPECT_TRUE(p->setDimensions("x", nv::OptProfileSelector::kMAX, dims({8, 4})));
    EXPECT_TRUE(p->isValid());
    EXPECT_EQ(config->addOptimizationProfile(p), 0);
    EXPECT_EQ(config->getNbOptimizationProfiles(), 1);
    std::shared_ptr<const Engine> engine = build();
    ASSERT_EQ(engine->profiles().size(), 1U);
    EXPECT_EQ(engine->profiles()[0].inputs[0], (ShapeRange{"x", {1, 4}, {2, 4}, {8, 4}}));
}

TEST_F(BuilderTest, shape_values_are_kept) {
    nv::IOptimizationProfile* p = builder->createOptimizationProfile();
    EXPECT_EQ(p->getNbShapeValues("s"), -1);
    const std::array<int64_t, 2> big = {1, int64_t{1} << 40};
    EXPECT_TRUE(p->setShapeValuesV2("s", nv::OptProfileSelector::kMAX, big.data(), 2));
    EXPECT_EQ(p->getNbShapeValues("s"), 2);
    EXPECT_EQ(p->getShapeValuesV2("s", nv::OptProfileSelector::kMAX)[1], int64_t{1} << 40);
    EXPECT_EQ(p->getShapeValues("s", nv::OptProfileSelector::kMAX)[1], INT32_MAX);
    EXPECT_EQ(p->getShapeValuesV2("s", nv::OptProfileSelector::kMIN), nullptr);
    const std::array<int32_t, 2> less = {2, 2};
    EXPECT_FALSE(p->setShapeValues("s", nv::OptProfileSelector::kMIN, less.data(), 2));
    EXPECT_EQ(logger.errors.back(),
              "IOptimizationProfile::setShapeValuesV2: input 's', dimension 0: min is 2 and max is "
              "1, expected min <= max");
    EXPECT_TRUE(p->setExtraMemoryTarget(0.5F));
    EXPECT_FALSE(p->setExtraMemoryTarget(2));
    EXPECT_EQ(p->getExtraMemoryTarget(), 0.5F);
}

TEST_F(BuilderTest, the_same_network_gives_the_same_bytes_by_memory_and_by_stream) {
    small_network();
    struct Writer final : nv::IStreamWriter {
        int64_t write(const void* data, int64_t n) override {
            bytes.append(static_cast<const char*>(data), static_cast<size_t>(n));
            return n - refuse;
        }
        std::string bytes;
        int64_t refuse = 0;
    } writer;
    ASSERT_TRUE(builder->buildSerializedNetworkToStream(*network, *config, writer));
    std::unique_ptr<nv::IHostMemory> memory(builder->buildSerializedNetwork(*network, *config));
    ASSERT_EQ(memory->size(), writer.bytes.size());
    EXPECT_EQ(std::memcmp(memory->data(), writer.bytes.data(), memory->size()), 0);
    EXPECT_EQ(memory->type(), nv::DataType::kINT8);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 64, 0U);
    writer.refuse = 1;
    EXPECT_FALSE(builder->buildSerializedNetworkToStream(*network, *config, writer));
    EXPECT_NE(logger.errors.back().find("the writer took"), std::string::npos);
}

TEST_F(BuilderTest, precision_flags_change_what_is_computed_in) {
    nv::ITensor& x = input("x", {4, 8});
    Tensor w = numbers({8, 8});
    network->markOutput(*network
                             ->addMatrixMultiply(x, nv::MatrixOperation::kNONE, constant(w),
                                                 nv::MatrixOperation::kNONE)
                             ->getOutput(0));
    config->setFlag(nv::BuilderFlag::kFP16);
    std::shared_ptr<const Engine> engine = build();
    EXPECT_EQ(engine->metadata().at("precision"), "f16");
    bool halves = false;
    const Graph& g = engine->graph();
    for (const Node& n : g.nodes()) {
        halves = halves || g.type(n.outputs[0]).dtype == DType::F16;
    }
    EXPECT_TRUE(halves);
}

class Monitor final : public nv::IProgressMonitor {
public:
    void phaseStart(const char* name, const char* parent, int32_t steps) noexcept override {
        open.emplace_back(name);
        roots += parent == nullptr ? 1 : 0;
        total += steps;
    }
    bool stepComplete(const char*, int32_t) noexcept override { return ++done < most; }
    void phaseFinish(const char* name) noexcept override {
        EXPECT_EQ(open.back(), name);
        open.pop_back();
    }
    std::vector<std::string> open;
    int32_t roots = 0;
    int32_t total = 0;
    int32_t done = 0;
    int32_t most = INT32_MAX;
};

TEST_F(BuilderTest, a_monitor_sees_all_steps_and_can_stop) {
    small_network();
    Monitor monitor;
    config->setProgressMonitor(&monitor);
    ASSERT_NE(build(), nullptr);
    EXPECT_EQ(monitor.roots, 1);
    EXPECT_EQ(monitor.done, monitor.total);
    EXPECT_TRUE(monitor.open.empty());
    Monitor stopping;
    stopping.most = 3;
    config->setProgressMonitor(&stopping);
    EXPECT_EQ(builder->buildSerializedNetwork(*network, *config), nullptr);
    EXPECT_EQ(logger.errors.back(),
              "IBuilder::buildSerializedNetwork: the progress monitor stopped the build");
    EXPECT_TRUE(stopping.open.empty());
}

TEST_F(BuilderTest, settings_are_returned_as_set_and_reset) {
    config->setFlag(nv::BuilderFlag::kREFIT);
    EXPECT_TRUE(config->getFlag(nv::BuilderFlag::kREFIT));
    EXPECT_TRUE(config->getFlag(nv::BuilderFlag::kTF32));
    config->clearFlag(nv::BuilderFlag::kTF32);
    EXPECT_FALSE(config->getFlag(nv::BuilderFlag::kTF32));
    config->setMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE, 1U << 20U);
    EXPECT_EQ(config->getMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE), 1U << 20U);
    config->setBuilderOptimizationLevel(5);
    config->setMaxAuxStreams(2);
    config->setPreviewFeature(nv::PreviewFeature::kALIASED_PLUGIN_IO_10_03, true);
    config->setHardwareCompatibilityLevel(nv::HardwareCompatibilityLevel::kAMPERE_PLUS);
    EXPECT_TRUE(config->setNbComputeCapabilities(2));
    EXPECT_TRUE(config->setComputeCapability(nv::ComputeCapability::kSM90, 1));
    EXPECT_FALSE(config->setComputeCapability(nv::ComputeCapability::kCURRENT, 0));
    EXPECT_EQ(config->getComputeCapability(0), nv::ComputeCapability::kNONE);
    EXPECT_EQ(config->getComputeCapability(1), nv::ComputeCapability::kSM90);
    config->reset();
    EXPECT_EQ(config->getFlags(), 1U << 6U);
    EXPECT_EQ(config->getBuilderOptimizationLevel(), 3);
    EXPECT_EQ(config->getMaxAuxStreams(), -1);
    EXPECT_EQ(config->getNbComputeCapabilities(), 0);
    EXPECT_FALSE(config->getPreviewFeature(nv::PreviewFeature::kALIASED_PLUGIN_IO_10_03));
    EXPECT_EQ(config->getHardwareCompatibilityLevel(), nv::HardwareCompatibilityLevel::kNONE);
}

TEST_F(BuilderTest, timing_caches_may_be_empty) {
    std::unique_ptr<nv::ITimingCache> cache(config->createTimingCache(nullptr, 0));
    EXPECT_EQ(cache->queryKeys(nullptr, 0), 0);
    std::unique_ptr<nv::IHostMemory> bytes(cache->serialize());
    std::unique_ptr<nv::ITimingCache> again(
        config->createTimingCache(bytes->data(), bytes->size()));
    ASSERT_NE(again, nullptr);
    EXPECT_TRUE(config->setTimingCache(*again, false));
    EXPECT_NE(config->getTimingCache(), nullptr);
    EXPECT_EQ(config->createTimingCache("nonsense", 8), nullptr);
    nv::TimingCacheKey key{};
    EXPECT_EQ(cache->query(key).tacticHash, nv::TimingCacheValue::kINVALID_TACTIC_HASH);
    EXPECT_FALSE(cache->update(key, {1, 1}));
}

TEST_F(BuilderTest, objects_may_be_deleted_in_any_order) {
    nv::IOptimizationProfile* p = builder->createOptimizationProfile();
    for (int i = 0; i < 3; ++i) {
        p->setDimensions("x", static_cast<nv::OptProfileSelector>(i), dims({i + 1, 4}));
    }
    small_network();
    EXPECT_EQ(config->addOptimizationProfile(p), 0);
    std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
    builder.reset();
    EXPECT_EQ(config->getNbOptimizationProfiles(), 1);
    EXPECT_EQ(network->getNbLayers(), 1);
    EXPECT_EQ(list(network->getOutput(0)->getDimensions()), (std::vector<int64_t>{-1, 4}));
    network.reset();
    config.reset();
    EXPECT_GT(bytes->size(), 0U);
}

TEST_F(BuilderTest, engines_without_a_way_through_bytes_outlive_the_weights) {
    auto w = std::make_unique<std::array<float, 2>>(std::array<float, 2>{3, 4});
    network->addConstant(dims({2}), {nv::DataType::kFLOAT, w->data(), 2});
    nv::ITensor& x = input("x", {2});
    auto* sum = network->addElementWise(x, *network->getLayer(0)->getOutput(0),
                                        nv::ElementWiseOperation::kSUM);
    network->markOutput(*sum->getOutput(0));
    EXPECT_TRUE(builder->isNetworkSupported(*network, *config));
    std::unique_ptr<nv::ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
    ASSERT_NE(engine, nullptr) << logger.errors.back();
    network.reset();
    w.reset();
    EXPECT_EQ(engine->getNbIOTensors(), 2);
    EXPECT_STREQ(engine->getIOTensorName(0), "x");
}

TEST_F(BuilderTest, a_recorder_is_counted_and_handed_on) {
    Recorder recorder;
    builder->setErrorRecorder(&recorder);
    EXPECT_EQ(recorder.references, 1);
    network.reset(builder->createNetworkV2(0));
    EXPECT_EQ(recorder.references, 2);
    EXPECT_EQ(network->addInput("", nv::DataType::kFLOAT, dims({1})), nullptr);
    ASSERT_EQ(recorder.getNbErrors(), 1);
    EXPECT_EQ(recorder.getErrorCode(0), nv::ErrorCode::kINVALID_ARGUMENT);
    EXPECT_STREQ(recorder.getErrorDesc(0),
                 "INetworkDefinition::addInput: the name of an input is empty");
    network.reset();
    builder.reset();
    EXPECT_EQ(recorder.references, 0);
}

} // namespace

} // namespace ingot::test
