// SPDX-License-Identifier: Apache-2.0
// Observers of runs: profilers; and the inspectors' texts on layers.
#include "api/runtime_fixture.h"

#include <nlohmann/json.hpp>

namespace ingot::test {
namespace {

using nvinfer1::LayerInformationFormat;
using nvinfer1::ProfilingVerbosity;

class Profiler : public nvinfer1::IProfiler {
public:
    void reportLayerTime(const char* layerName, float ms) noexcept override {
        EXPECT_GE(ms, 0.0F);
        names.emplace_back(layerName);
    }
    std::vector<std::string> names;
};

class ContextWatch : public RuntimeTest {
protected:
    void bind(nvinfer1::IExecutionContext& c) {
        c.setInputShape("x", dims({2, 2}));
        c.setTensorAddress("x", memory->floats({1, 2, 3, 4}));
        c.setTensorAddress("y", memory->allocate(16));
        c.setTensorAddress("z", memory->allocate(16));
    }
};

TEST_P(ContextWatch, ProfilersGetEveryLayer) {
    auto engine = load(*two_results());
    auto c = context(*engine);
    bind(*c);
    Profiler p;
    EXPECT_FALSE(c->reportToProfiler());
    EXPECT_EQ(logger.take_error(), "IExecutionContext::reportToProfiler: there is no profiler");
    c->setProfiler(&p);
    EXPECT_EQ(c->getProfiler(), &p);
    EXPECT_FALSE(c->reportToProfiler());
    EXPECT_NE(logger.take_error(), "");
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(p.names.size(), static_cast<size_t>(engine->getNbLayers()));
    p.names.clear();
    c->setEnqueueEmitsProfile(false);
    EXPECT_FALSE(c->getEnqueueEmitsProfile());
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_TRUE(p.names.empty());
    EXPECT_TRUE(c->reportToProfiler());
    EXPECT_EQ(p.names.size(), static_cast<size_t>(engine->getNbLayers()));
    p.names.clear();
    c->setProfiler(nullptr);
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_TRUE(p.names.empty());
}

TEST_P(ContextWatch, InspectorsTellWhatTheBuildAllows) {
    api::BuildSettings settings;
    for (ProfilingVerbosity v : {ProfilingVerbosity::kNONE, ProfilingVerbosity::kLAYER_NAMES_ONLY,
                                 ProfilingVerbosity::kDETAILED}) {
        settings.verbosity = v;
        auto engine = load(*two_results(true, settings));
        EXPECT_EQ(engine->getProfilingVerbosity(), v);
        std::unique_ptr<nvinfer1::IEngineInspector> inspector(engine->createEngineInspector());
        auto j =
            nlohmann::json::parse(inspector->getEngineInformation(LayerInformationFormat::kJSON));
        EXPECT_EQ(j["I/O Tensors"], (nlohmann::json{"x", "y", "z"}));
        if (v == ProfilingVerbosity::kNONE) {
            EXPECT_TRUE(j["Layers"].empty());
            EXPECT_STREQ(inspector->getLayerInformation(0, LayerInformationFormat::kONELINE),
                         "layer 0");
            continue;
        }
        ASSERT_EQ(j["Layers"].size(), static_cast<size_t>(engine->getNbLayers()));
        bool detailed = v == ProfilingVerbosity::kDETAILED;
        EXPECT_EQ(j["Layers"][0].is_object(), detailed);
        auto layer =
            nlohmann::json::parse(inspector->getLayerInformation(0, LayerInformationFormat::kJSON));
        EXPECT_EQ(layer, j["Layers"][0]);
        std::string lines = inspector->getEngineInformation(LayerInformationFormat::kONELINE);
        EXPECT_EQ(lines.find("Layers:\n"), 0U);
        std::string line = inspector->getLayerInformation(0, LayerInformationFormat::kONELINE);
        EXPECT_NE(lines.find(line), std::string::npos);
        EXPECT_EQ(line.find("Name: ") == 0, detailed) << line;
        if (detailed) {
            EXPECT_EQ(layer["Inputs"][0]["Dimensions"][0], 2); // opt of the profile
            auto c = context(*engine);
            EXPECT_TRUE(inspector->setExecutionContext(c.get()));
            EXPECT_EQ(inspector->getLayerInformation(0, LayerInformationFormat::kJSON), nullptr);
            EXPECT_EQ(logger.take_error(),
                      "IEngineInspector::getLayerInformation: the shape of input 'x' is not set: "
                      "call setInputShape()");
            c->setInputShape("x", dims({5, 2}));
            layer = nlohmann::json::parse(
                inspector->getLayerInformation(0, LayerInformationFormat::kJSON));
            EXPECT_EQ(layer["Inputs"][0]["Dimensions"][0], 5);
            EXPECT_TRUE(inspector->setExecutionContext(nullptr));
        }
    }
    EXPECT_EQ(logger.take_error(), "");
}

INSTANTIATE_TEST_SUITE_P(Devices, ContextWatch, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
