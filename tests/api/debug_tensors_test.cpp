// SPDX-License-Identifier: Apache-2.0
// Debug tensors from network to listener: marked ones survive fusion, unfused ones are shown in
// their order; engines separate them from inputs and outputs.
#include "NvInfer.h"
#include "api/runtime_fixture.h"

#include <map>

namespace ingot::test {
namespace {

using nvinfer1::ElementWiseOperation;
using nvinfer1::TensorLocation;

struct Seen {
    TensorLocation location;
    nvinfer1::DataType type;
    std::vector<int64_t> shape;
    cudaStream_t stream;
    const void* address;
};

class Listener : public nvinfer1::IDebugListener {
public:
    bool processDebugTensor(const void* addr, TensorLocation location, nvinfer1::DataType type,
                            const nvinfer1::Dims& shape, const char* name,
                            cudaStream_t stream) override {
        order.emplace_back(name);
        seen[name] = {location, type, sizes(shape), stream, addr};
        if (type == nvinfer1::DataType::kFLOAT && reads) {
            size_t count = 1;
            for (int64_t d : sizes(shape)) {
                count *= static_cast<size_t>(d);
            }
            values[name] = values_at(addr, count);
        }
        return go_on;
    }
    std::vector<std::string> take_order() { return std::exchange(order, {}); }

    std::vector<std::string> order;
    std::map<std::string, Seen> seen;
    std::map<std::string, std::vector<float>> values;
    bool go_on = true;
    bool reads = true; // waits for the device, which a capture forbids
};

class DebugTensors : public RuntimeTest {
protected:
    DebugTensors() {
        builder.reset(nvinfer1::createInferBuilder(logger));
        network.reset(builder->createNetworkV2(0));
        config.reset(builder->createBuilderConfig());
    }
    /// y = |x + x| * x, whose three layers fuse into one: sum, abs, y are their results.
    void three_layers() {
        x = network->addInput("x", nvinfer1::DataType::kFLOAT, dims({-1, 2}));
        auto* add = network->addElementWise(*x, *x, ElementWiseOperation::kSUM);
        sum = add->getOutput(0);
        sum->setName("sum");
        auto* absolute = network->addUnary(*sum, nvinfer1::UnaryOperation::kABS);
        abs = absolute->getOutput(0);
        abs->setName("abs");
        auto* product = network->addElementWise(*abs, *x, ElementWiseOperation::kPROD);
        y = product->getOutput(0);
        y->setName("y");
        network->markOutput(*y);
        nvinfer1::IOptimizationProfile* p = builder->createOptimizationProfile();
        p->setDimensions("x", nvinfer1::OptProfileSelector::kMIN, dims({1, 2}));
        p->setDimensions("x", nvinfer1::OptProfileSelector::kOPT, dims({2, 2}));
        p->setDimensions("x", nvinfer1::OptProfileSelector::kMAX, dims({8, 2}));
        config->addOptimizationProfile(p);
    }
    std::unique_ptr<nvinfer1::ICudaEngine> build() {
        std::unique_ptr<nvinfer1::IHostMemory> bytes(
            builder->buildSerializedNetwork(*network, *config));
        return std::unique_ptr<nvinfer1::ICudaEngine>(
            bytes == nullptr ? nullptr
                             : runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
    }
    void bind(nvinfer1::IExecutionContext& c, const std::vector<float>& values) {
        auto rows = static_cast<int64_t>(values.size() / 2);
        c.setInputShape("x", dims({rows, 2}));
        c.setTensorAddress("x", memory->floats(values));
        out = static_cast<float*>(memory->allocate(64));
        c.setTensorAddress("y", out);
    }
    TensorLocation here() const {
        return GetParam() ? TensorLocation::kDEVICE : TensorLocation::kHOST;
    }

    std::unique_ptr<nvinfer1::IBuilder> builder;
    std::unique_ptr<nvinfer1::INetworkDefinition> network;
    std::unique_ptr<nvinfer1::IBuilderConfig> config;
    nvinfer1::ITensor* x = nullptr;
    nvinfer1::ITensor* sum = nullptr;
    nvinfer1::ITensor* abs = nullptr;
    nvinfer1::ITensor* y = nullptr;
    float* out = nullptr;
    Listener listener;
};

TEST_P(DebugTensors, AMarkedTensorSurvivesFusionAndIsNoOutput) {
    three_layers();
    EXPECT_TRUE(network->markDebug(*sum));
    EXPECT_FALSE(network->markDebug(*sum)); // is marked already
    EXPECT_TRUE(network->isDebugTensor(*sum));
    EXPECT_TRUE(network->markDebug(*abs));
    EXPECT_TRUE(network->unmarkDebug(*abs));
    EXPECT_FALSE(network->unmarkDebug(*abs));
    EXPECT_FALSE(network->isDebugTensor(*abs));
    auto engine = build();
    ASSERT_NE(engine, nullptr) << logger.take_error();
    EXPECT_TRUE(engine->isDebugTensor("sum"));
    EXPECT_FALSE(engine->isDebugTensor("abs"));
    EXPECT_EQ(engine->getNbIOTensors(), 2);
    EXPECT_EQ(engine->getTensorIOMode("sum"), nvinfer1::TensorIOMode::kNONE);
    logger.take_error();
    auto c = context(*engine);
    bind(*c, {1, -2, 3, -4});
    cudaStream_t caller = GetParam() ? stream() : nullptr;
    ASSERT_TRUE(c->setDebugListener(&listener));
    ASSERT_TRUE(c->enqueueV3(caller)) << logger.take_error();
    EXPECT_TRUE(listener.order.empty()); // off by default
    EXPECT_FALSE(c->getDebugState("sum"));
    EXPECT_TRUE(c->setTensorDebugState("sum", true));
    EXPECT_TRUE(c->getDebugState("sum"));
    for (int run = 0; run < 3; ++run) {
        ASSERT_TRUE(c->enqueueV3(caller)) << logger.take_error();
        EXPECT_EQ(listener.take_order(), (std::vector<std::string>{"sum"}));
        EXPECT_EQ(listener.values["sum"], (std::vector<float>{2, -4, 6, -8}));
        EXPECT_EQ(values_at(out, 4), (std::vector<float>{2, -8, 18, -32}));
    }
    Seen s = listener.seen["sum"];
    EXPECT_EQ(s.type, nvinfer1::DataType::kFLOAT);
    EXPECT_EQ(s.shape, (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(s.location, here());
    EXPECT_EQ(s.stream, caller);
    bind(*c, {1, 1, 2, 2, -3, 5}); // another shape
    ASSERT_TRUE(c->enqueueV3(caller)) << logger.take_error();
    EXPECT_EQ(listener.seen["sum"].shape, (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(listener.values["sum"], (std::vector<float>{2, 2, 4, 4, -6, 10}));
    EXPECT_TRUE(c->setTensorDebugState("sum", false));
    listener.take_order();
    ASSERT_TRUE(c->enqueueV3(caller));
    EXPECT_TRUE(listener.order.empty());
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(DebugTensors, InputsAndOutputsCanBeMarkedToo) {
    three_layers();
    EXPECT_TRUE(network->markDebug(*y));
    EXPECT_TRUE(network->markDebug(*abs));
    EXPECT_TRUE(network->markDebug(*x));
    auto engine = build();
    ASSERT_NE(engine, nullptr) << logger.take_error();
    auto c = context(*engine);
    bind(*c, {1, -2});
    c->setDebugListener(&listener);
    EXPECT_TRUE(c->setAllTensorsDebugState(true));
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(listener.take_order(), (std::vector<std::string>{"x", "abs", "y"}));
    EXPECT_EQ(listener.values["x"], (std::vector<float>{1, -2}));
    EXPECT_EQ(listener.values["abs"], (std::vector<float>{2, 4}));
    EXPECT_EQ(listener.values["y"], (std::vector<float>{2, -8}));
    EXPECT_EQ(listener.seen["y"].address, out);
    listener.go_on = false;
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_EQ(logger.take_error(),
              "IExecutionContext::enqueueV3: the debug listener returned false "
              "for tensor 'x'");
    EXPECT_TRUE(c->setAllTensorsDebugState(false));
    EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
}

TEST_P(DebugTensors, UnfusedOnesAreShownAsTheyAreComputed) {
    three_layers();
    EXPECT_TRUE(network->markUnfusedTensorsAsDebugTensors());
    EXPECT_TRUE(network->unmarkUnfusedTensorsAsDebugTensors());
    auto engine = build();
    ASSERT_NE(engine, nullptr) << logger.take_error();
    auto without = context(*engine);
    EXPECT_FALSE(without->setUnfusedTensorsDebugState(true));
    EXPECT_EQ(logger.take_error(),
              "IExecutionContext::setUnfusedTensorsDebugState: the build did not mark them with "
              "markUnfusedTensorsAsDebugTensors()");
    network->markUnfusedTensorsAsDebugTensors();
    network->markDebug(*sum);
    engine = build();
    ASSERT_NE(engine, nullptr) << logger.take_error();
    auto c = context(*engine);
    bind(*c, {1, -2});
    c->setDebugListener(&listener);
    EXPECT_FALSE(c->getUnfusedTensorsDebugState());
    EXPECT_TRUE(c->setUnfusedTensorsDebugState(true));
    EXPECT_TRUE(c->getUnfusedTensorsDebugState());
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(listener.take_order(), (std::vector<std::string>{"y"})); // 'abs' was fused into it
    EXPECT_EQ(listener.seen["y"].location, TensorLocation::kHOST);
    EXPECT_EQ(listener.values["y"], (std::vector<float>{2, -8}));
    EXPECT_TRUE(c->setTensorDebugState("sum", true));
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(listener.take_order(), (std::vector<std::string>{"y", "sum"}));
    EXPECT_EQ(listener.values["sum"], (std::vector<float>{2, -4}));
}

TEST_P(DebugTensors, SizesThatDataDecides) {
    x = network->addInput("x", nvinfer1::DataType::kFLOAT, dims({4}));
    nvinfer1::ITensor* where = network->addNonZero(*x)->getOutput(0);
    where->setName("where");
    y = network->addElementWise(*x, *x, ElementWiseOperation::kSUM)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    network->markDebug(*where);
    auto engine = build();
    ASSERT_NE(engine, nullptr) << logger.take_error();
    auto c = context(*engine);
    auto* in = memory->floats({0, 2, 3, 0});
    c->setTensorAddress("x", in);
    c->setTensorAddress("y", memory->allocate(16));
    c->setDebugListener(&listener);
    c->setTensorDebugState("where", true);
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(listener.seen["where"].shape, (std::vector<int64_t>{1, 2}));
    in[0] = 1;
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(listener.seen["where"].shape, (std::vector<int64_t>{1, 3}));
    EXPECT_EQ(listener.take_order().size(), 2U);
}

// As made by trtexec --markDebug.
TEST_P(DebugTensors, EnginesOfTheCommandHaveThemToo) {
    Graph g;
    Value v = g.add_input("x", parse_type("f32[2,2]"));
    Value twice = ops::add(g, v, v);
    g.add_output("y", ops::add(g, twice, 1.0));
    g.add_output("twice", twice);
    Properties properties;
    put_debug_outputs(1, properties);
    auto engine = load(*Engine::create(std::move(g), {}, std::move(properties)));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    EXPECT_EQ(engine->getNbIOTensors(), 2);
    EXPECT_TRUE(engine->isDebugTensor("twice"));
    auto c = context(*engine);
    bind(*c, {1, -2, 3, -4});
    c->setDebugListener(&listener);
    EXPECT_TRUE(c->setTensorDebugState("twice", true)) << logger.take_error();
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    EXPECT_EQ(listener.values["twice"], (std::vector<float>{2, -4, 6, -8}));
}

TEST_P(DebugTensors, AWrongNumberOfThemIsDamage) {
    for (const char* count : {"3", "-1", "x", ""}) {
        Graph g;
        Value v = g.add_input("x", parse_type("f32[2,2]"));
        g.add_output("y", ops::add(g, v, v));
        EXPECT_EQ(load(*Engine::create(std::move(g), {}, {{"debug_outputs", count}})), nullptr);
        EXPECT_NE(logger.take_error().find(str("the metadata declares ", count,
                                               " debug outputs; the graph has 1 output")),
                  std::string::npos);
    }
}

TEST_P(DebugTensors, WhatCannotBeMarked) {
    three_layers();
    sum->setName("abs");
    network->markDebug(*sum);
    network->markDebug(*abs);
    EXPECT_EQ(build(), nullptr);
    EXPECT_NE(logger.take_error().find("debug tensor 'abs' has the name of an output or of another "
                                       "debug tensor; give it another with ITensor::setName()"),
              std::string::npos);
    network->unmarkDebug(*abs);
    auto other = std::unique_ptr<nvinfer1::INetworkDefinition>(builder->createNetworkV2(0));
    nvinfer1::ITensor* strange = other->addInput("x", nvinfer1::DataType::kFLOAT, dims({4}));
    EXPECT_FALSE(network->markDebug(*strange));
    EXPECT_NE(logger.take_error(), "");
    network->unmarkDebug(*sum);
    sum->setName("sum");
    // A value in a branch may not exist.
    nvinfer1::IIfConditional* choice = network->addIfConditional();
    nvinfer1::ITensor* condition =
        network->addInput("condition", nvinfer1::DataType::kBOOL, dims({}));
    choice->setCondition(*condition);
    nvinfer1::ITensor* inside = choice->addInput(*y)->getOutput(0);
    nvinfer1::ITensor* doubled =
        network->addElementWise(*inside, *inside, ElementWiseOperation::kSUM)->getOutput(0);
    doubled->setName("doubled");
    network->markOutput(*choice->addOutput(*doubled, *inside)->getOutput(0));
    network->markDebug(*doubled);
    EXPECT_EQ(build(), nullptr);
    EXPECT_NE(logger.take_error().find("debug tensor 'doubled' lies inside a loop or conditional: "
                                       "lead it out by an output layer, and mark that layer's "
                                       "output"),
              std::string::npos);
}

TEST_P(DebugTensors, InACaptureTheListenersWorkIsCapturedWithTheRun) {
    if (!GetParam()) {
        GTEST_SKIP() << "the CPU captures nothing";
    }
    three_layers();
    network->markDebug(*sum);
    auto engine = build();
    ASSERT_NE(engine, nullptr) << logger.take_error();
    auto c = context(*engine);
    bind(*c, {1, -2});
    c->setDebugListener(&listener);
    c->setTensorDebugState("sum", true);
    ASSERT_TRUE(c->enqueueV3(stream())) << logger.take_error();
    listener.take_order();
    listener.reads = false;
    begin_capture();
    ASSERT_TRUE(c->enqueueV3(stream())) << logger.take_error();
    auto graph = end_capture();
    EXPECT_EQ(listener.take_order(), (std::vector<std::string>{"sum"})); // once, while capturing
    auto* in = static_cast<float*>(const_cast<void*>(c->getTensorAddress("x")));
    in[0] = 50;
    graph();
    EXPECT_EQ(values_at(listener.seen["sum"].address, 2), (std::vector<float>{100, -4}));
}

INSTANTIATE_TEST_SUITE_P(Devices, DebugTensors, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
