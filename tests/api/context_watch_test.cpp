// SPDX-License-Identifier: Apache-2.0
// Who watches runs: profilers, debug listeners; and what inspectors say of layers.
#include "api/runtime_fixture.h"

#include <nlohmann/json.hpp>

#include <map>

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

/// y = softmax(x) + 1 by way of 'middle', a value of its own.
std::shared_ptr<const Engine> with_middle() {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[2,2]"));
    Value s = ops::softmax(g, x, 1);
    g.set_value_name(s, "middle");
    Value t = ops::softmax(g, s, 0);
    g.set_value_name(t, "last");
    g.add_output("y", t);
    g.add_output("other", s);
    api::EngineFacts facts;
    facts.debug_tensors = {"middle"};
    Properties properties;
    api::put_facts(facts, properties);
    return Engine::create(std::move(g), {}, std::move(properties));
}

class Listener : public nvinfer1::IDebugListener {
public:
    bool processDebugTensor(const void* addr, nvinfer1::TensorLocation location,
                            nvinfer1::DataType type, const nvinfer1::Dims& shape, const char* name,
                            cudaStream_t) override {
        EXPECT_EQ(location, nvinfer1::TensorLocation::kHOST);
        EXPECT_EQ(type, nvinfer1::DataType::kFLOAT);
        EXPECT_EQ(sizes(shape), (std::vector<int64_t>{2, 2}));
        seen[name] = values_at(addr, 4);
        return go_on;
    }
    std::map<std::string, std::vector<float>> seen;
    bool go_on = true;
};

TEST_P(ContextWatch, ListenersSeeDebugTensors) {
    auto engine = load(*with_middle());
    EXPECT_TRUE(engine->isDebugTensor("middle"));
    EXPECT_FALSE(engine->isDebugTensor("y"));
    auto c = context(*engine);
    c->setTensorAddress("x", memory->floats({0, 0, 5, 5}));
    void* y = memory->allocate(16);
    c->setTensorAddress("y", y);
    c->setTensorAddress("other", memory->allocate(16));
    Listener listener;
    EXPECT_TRUE(c->setDebugListener(&listener));
    EXPECT_EQ(c->getDebugListener(), &listener);
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_TRUE(listener.seen.empty()); // off by default
    EXPECT_TRUE(c->setTensorDebugState("middle", true));
    EXPECT_TRUE(c->getDebugState("middle"));
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    ASSERT_EQ(listener.seen.size(), 1U);
    EXPECT_EQ(listener.seen["middle"], (std::vector<float>{0.5, 0.5, 0.5, 0.5}));
    listener.go_on = false;
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_EQ(logger.take_error(), "IExecutionContext::enqueueV3: the debug listener ended the run "
                                   "at tensor 'middle'");
    EXPECT_TRUE(c->setAllTensorsDebugState(false));
    EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_FALSE(c->setTensorDebugState("y", true));
    EXPECT_EQ(logger.take_error(), "IExecutionContext::setTensorDebugState: tensor 'y' was not "
                                   "marked with markDebug()");
    EXPECT_FALSE(c->setUnfusedTensorsDebugState(true));
    EXPECT_NE(logger.take_error(), "");
}

TEST_P(ContextWatch, InspectorsTellWhatTheBuildAllows) {
    api::EngineFacts facts;
    for (ProfilingVerbosity v : {ProfilingVerbosity::kNONE, ProfilingVerbosity::kLAYER_NAMES_ONLY,
                                 ProfilingVerbosity::kDETAILED}) {
        facts.verbosity = v;
        auto engine = load(*two_results(true, facts));
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
