// SPDX-License-Identifier: Apache-2.0
// Values of shape inputs in profiles.
#include "api/network_fixture.h"

#include <array>

namespace ingot::test {

namespace {

// y = x reshaped to the values of s.
class ShapeValuesTest : public NetworkTest {
protected:
    ShapeValuesTest() {
        nv::ITensor& x = input("x", {12});
        nv::ITensor& s = input("s", nv::DataType::kINT32, {2});
        auto* shuffle = network->addShuffle(x);
        shuffle->setInput(1, s);
        network->markOutput(*shuffle->getOutput(0));
    }
    nv::IOptimizationProfile* profile(const char* name, std::array<int64_t, 3> first,
                                      int32_t count = 2) {
        nv::IOptimizationProfile* p = builder->createOptimizationProfile();
        for (int i = 0; i < 3; ++i) {
            std::array<int64_t, 2> values = {first[static_cast<size_t>(i)], 12};
            EXPECT_TRUE(p->setShapeValuesV2(name, static_cast<nv::OptProfileSelector>(i),
                                            values.data(), count));
        }
        return p;
    }
    std::string refusal() {
        std::unique_ptr<nv::IHostMemory> none(builder->buildSerializedNetwork(*network, *config));
        EXPECT_EQ(none, nullptr);
        return logger.errors.empty() ? "" : logger.errors.back();
    }
};

TEST_F(ShapeValuesTest, values_of_shape_inputs_reach_the_engine) {
    config->addOptimizationProfile(profile("s", {1, 2, int64_t{1} << 40}));
    std::unique_ptr<nv::ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
    ASSERT_NE(engine, nullptr) << logger.errors.back();
    using Selector = nv::OptProfileSelector;
    EXPECT_EQ(engine->getProfileTensorValuesV2("s", 0, Selector::kMIN)[0], 1);
    EXPECT_EQ(engine->getProfileTensorValuesV2("s", 0, Selector::kOPT)[0], 2);
    EXPECT_EQ(engine->getProfileTensorValuesV2("s", 0, Selector::kMAX)[0], int64_t{1} << 40);
    EXPECT_EQ(engine->getProfileTensorValuesV2("s", 0, Selector::kMAX)[1], 12);
    EXPECT_EQ(engine->getProfileTensorValues("s", 0, Selector::kMAX)[0], INT32_MAX);
    EXPECT_EQ(engine->getProfileTensorValuesV2("x", 0, Selector::kMAX), nullptr);
    EXPECT_EQ(engine->getProfileTensorValues("x", 0, Selector::kMAX), nullptr);
}

TEST_F(ShapeValuesTest, values_are_checked_against_the_network) {
    const std::string start = "IBuilder::buildSerializedNetwork: optimisation profile 0: ";
    config->addOptimizationProfile(profile("t", {1, 2, 3}));
    EXPECT_EQ(refusal(), start + "values are set for 't', which is no input of the network");
    config->reset();
    config->addOptimizationProfile(profile("x", {1, 2, 3}));
    EXPECT_EQ(refusal(),
              start + "values are set for input 'x', which holds FLOAT, expected INT32 or INT64");
    config->reset();
    config->addOptimizationProfile(profile("s", {1, 2, 3}, 1));
    EXPECT_EQ(refusal(), start + "1 values are set for input 's', which is [2]");
    config->reset();
    nv::ITensor& ids = input("ids", nv::DataType::kINT32, {2});
    network->markOutput(*network->addIdentity(ids)->getOutput(0));
    config->addOptimizationProfile(profile("ids", {1, 2, 3}));
    EXPECT_EQ(refusal(), start + "values are set for input 'ids', which is no shape tensor: set "
                                 "its shape");
}

} // namespace

} // namespace ingot::test
