// SPDX-License-Identifier: Apache-2.0
// Every setting of a configuration: it has a default, returns the set value, reset() restores it,
// and a refused value changes nothing.
#include "api/network_fixture.h"

namespace ingot::test {

namespace {

using Config = nv::IBuilderConfig;

struct Setting {
    const char* name;
    int64_t (*get)(Config&);
    void (*set)(Config&, int64_t);
    int64_t otherwise;
    int64_t good;
    int64_t bad; // equal to good where nothing is refused
};

// A row for a getter and setter of one number or enumerator.
#define SETTING(NAME, TYPE, OTHERWISE, GOOD, BAD)                                                  \
    Setting {                                                                                      \
#NAME, [](Config& c) { return static_cast<int64_t>(c.get##NAME()); },                     \
            [](Config& c, int64_t v) { c.set##NAME(static_cast<TYPE>(v)); }, OTHERWISE, GOOD, BAD        \
    }

const Setting settings[] = {
    SETTING(AvgTimingIterations, int32_t, 1, 4, 0),
    SETTING(EngineCapability, nv::EngineCapability, 0, 1, 7),
    SETTING(Flags, nv::BuilderFlags, 1 << 6, 5, int64_t{1} << 31),
    SETTING(DLACore, int32_t, -1, 1, 1),
    SETTING(DefaultDeviceType, nv::DeviceType, 0, 1, 5),
    SETTING(ProfilingVerbosity, nv::ProfilingVerbosity, 0, 2, 9),
    SETTING(TacticSources, nv::TacticSources, 3, 1, 1 << 10),
    SETTING(BuilderOptimizationLevel, int32_t, 3, 5, 6),
    SETTING(HardwareCompatibilityLevel, nv::HardwareCompatibilityLevel, 0, 1, 8),
    SETTING(MaxAuxStreams, int32_t, -1, 2, -2),
    SETTING(RuntimePlatform, nv::RuntimePlatform, 0, 1, 4),
    SETTING(MaxNbTactics, int32_t, -1, 3, 0),
    SETTING(TilingOptimizationLevel, nv::TilingOptimizationLevel, 0, 3, 4),
    SETTING(L2LimitForTiling, int64_t, -1, 1 << 20, -2),
    SETTING(NbComputeCapabilities, int32_t, 0, 2, -1),
    SETTING(QuantizationFlags, nv::QuantizationFlags, 0, 1, 2),
};

class ConfigTest : public NetworkTest {};

TEST_F(ConfigTest, settings_come_back_are_checked_and_reset) {
    for (const Setting& s : settings) {
        SCOPED_TRACE(s.name);
        EXPECT_EQ(s.get(*config), s.otherwise);
        s.set(*config, s.good);
        EXPECT_EQ(s.get(*config), s.good);
        size_t before = logger.errors.size();
        s.set(*config, s.bad);
        EXPECT_EQ(s.get(*config), s.good);
        EXPECT_EQ(logger.errors.size() - before, s.bad == s.good ? 0U : 1U);
    }
    config->reset();
    for (const Setting& s : settings) {
        EXPECT_EQ(s.get(*config), s.otherwise) << s.name;
    }
}

TEST_F(ConfigTest, each_flag_is_set_and_cleared_alone) {
    for (int32_t i = 0; i < nv::EnumMax<nv::BuilderFlag>(); ++i) {
        auto flag = static_cast<nv::BuilderFlag>(i);
        config->setFlags(0);
        config->setFlag(flag);
        EXPECT_EQ(config->getFlags(), 1U << static_cast<uint32_t>(i));
        EXPECT_TRUE(config->getFlag(flag));
        config->clearFlag(flag);
        EXPECT_EQ(config->getFlags(), 0U);
    }
    config->setQuantizationFlag(nv::QuantizationFlag::kCALIBRATE_BEFORE_FUSION);
    EXPECT_TRUE(config->getQuantizationFlag(nv::QuantizationFlag::kCALIBRATE_BEFORE_FUSION));
    config->clearQuantizationFlag(nv::QuantizationFlag::kCALIBRATE_BEFORE_FUSION);
    EXPECT_EQ(config->getQuantizationFlags(), 0U);
}

TEST_F(ConfigTest, pools_and_features_are_kept_by_kind) {
    for (int32_t i = 0; i < nv::EnumMax<nv::MemoryPoolType>(); ++i) {
        auto pool = static_cast<nv::MemoryPoolType>(i);
        size_t otherwise = config->getMemoryPoolLimit(pool);
        config->setMemoryPoolLimit(pool, 4096U + static_cast<size_t>(i));
        EXPECT_EQ(config->getMemoryPoolLimit(pool), 4096U + static_cast<size_t>(i));
        config->reset();
        EXPECT_EQ(config->getMemoryPoolLimit(pool), otherwise);
    }
    for (int32_t i = 0; i < nv::EnumMax<nv::PreviewFeature>(); ++i) {
        auto feature = static_cast<nv::PreviewFeature>(i);
        EXPECT_FALSE(config->getPreviewFeature(feature));
        config->setPreviewFeature(feature, true);
        EXPECT_TRUE(config->getPreviewFeature(feature));
        config->reset();
        EXPECT_FALSE(config->getPreviewFeature(feature));
    }
}

TEST_F(ConfigTest, what_is_given_by_reference_is_kept_and_let_go) {
    auto* stream = reinterpret_cast<cudaStream_t>(0x10);
    config->setProfileStream(stream);
    EXPECT_EQ(config->getProfileStream(), stream);
    const char* paths[] = {"a.so", "b.so"};
    size_t before = logger.errors.size();
    config->setPluginsToSerialize(paths, 2);
    ASSERT_EQ(logger.errors.size(), before + 1);
    EXPECT_EQ(logger.errors.back(),
              "IBuilderConfig::setPluginsToSerialize: an engine file holds no host code, so that "
              "'a.so' cannot travel in it: load it with IPluginRegistry::loadLibrary() before the "
              "engine is deserialised");
    EXPECT_EQ(config->getNbPluginsToSerialize(), 0);
    EXPECT_EQ(config->getPluginToSerialize(0), nullptr);
    config->setPluginsToSerialize(nullptr, 0);
    EXPECT_EQ(logger.errors.size(), before + 1);
    EXPECT_TRUE(config->setBuildRoute("-int8_without_calibration=on"));
    EXPECT_STREQ(config->getBuildRoute(), "-int8_without_calibration=on");
    EXPECT_NE(std::string(config->getAllBuildRoutes()).find("int8_without_calibration"),
              std::string::npos);
    EXPECT_TRUE(config->setRemoteAutoTuningConfig(""));
    EXPECT_FALSE(config->setRemoteAutoTuningConfig("host"));
    std::unique_ptr<nv::ITimingCache> cache(config->createTimingCache(nullptr, 0));
    EXPECT_TRUE(config->setTimingCache(*cache, false));
    config->reset();
    EXPECT_EQ(config->getProfileStream(), nullptr);
    EXPECT_EQ(config->getNbPluginsToSerialize(), 0);
    EXPECT_STREQ(config->getBuildRoute(), "");
    EXPECT_EQ(config->getTimingCache(), nullptr);
    EXPECT_EQ(config->getProgressMonitor(), nullptr);
    EXPECT_EQ(config->getInt8Calibrator(), nullptr);
    EXPECT_EQ(config->getCalibrationProfile(), nullptr);
}

} // namespace

} // namespace ingot::test
