// SPDX-License-Identifier: Apache-2.0
// Contexts and the caller's streams: runs inside a capture, the event for inputs, the profiler
// beside both, settings that streams have.
#include "api/runtime_fixture.h"

namespace ingot::test {
namespace {

using nvinfer1::ProfilingVerbosity;

class Profiler : public nvinfer1::IProfiler {
public:
    void reportLayerTime(const char*, float) noexcept override { ++calls; }
    int calls = 0;
};

class ContextStreams : public RuntimeTest {
protected:
    ContextStreams() : engine(load(*two_results())), c(context(*engine)) {
        x = memory->floats({1, 2, 3, 4});
        y = static_cast<float*>(memory->allocate(16));
        z = static_cast<float*>(memory->allocate(16));
        c->setTensorAddress("x", x);
        c->setTensorAddress("y", y);
        c->setTensorAddress("z", z);
    }
    std::unique_ptr<nvinfer1::ICudaEngine> engine;
    std::unique_ptr<nvinfer1::IExecutionContext> c;
    float* x;
    float* y;
    float* z;
};

TEST_P(ContextStreams, ARunInACaptureRunsWhenTheGraphIsLaunched) {
    EXPECT_FALSE(c->isStreamCapturable(stream())); // no shape, no run
    ASSERT_TRUE(c->setInputShape("x", dims({2, 2})));
    EXPECT_FALSE(c->isStreamCapturable(stream()));
    ASSERT_TRUE(c->enqueueV3(stream())) << logger.take_error();
    EXPECT_EQ(c->isStreamCapturable(stream()), GetParam()); // the CPU has no streams
    EXPECT_FALSE(c->isStreamCapturable(nullptr));
    if (!GetParam()) {
        return;
    }
    y[0] = z[0] = -1;
    begin_capture();
    ASSERT_TRUE(c->enqueueV3(stream())) << logger.take_error();
    auto graph = end_capture();
    EXPECT_EQ(y[0], -1); // nothing ran
    for (int launch = 0; launch < 3; ++launch) {
        x[0] = static_cast<float>(10 * launch);
        graph();
        EXPECT_EQ(values_at(y, 4), (std::vector<float>{x[0] + 1, 3, 4, 5}));
        EXPECT_EQ(values_at(z, 4), (std::vector<float>{2 * x[0], 6, 4, 8}));
    }
    // Runs outside continue; inside, other shapes are refused until they have run once.
    x[0] = 1;
    ASSERT_TRUE(c->enqueueV3(stream()));
    EXPECT_EQ(values_at(y, 1), std::vector<float>{2});
    ASSERT_TRUE(c->setInputShape("x", dims({1, 2})));
    EXPECT_FALSE(c->isStreamCapturable(stream()));
    begin_capture();
    EXPECT_FALSE(c->enqueueV3(stream()));
    static_cast<void>(end_capture());
    EXPECT_EQ(logger.take_error(),
              "IExecutionContext::enqueueV3: the run cannot be captured: enqueue one with these "
              "shapes outside of the capture first, which loads kernels and weights");
}

TEST_P(ContextStreams, WithGraphsOfOursACaptureStillHoldsTheLaunches) {
    if (!GetParam()) {
        GTEST_SKIP() << "the CPU captures nothing";
    }
    std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine->createRuntimeConfig());
    ASSERT_TRUE(config->setCudaGraphStrategy(nvinfer1::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE));
    std::unique_ptr<nvinfer1::IExecutionContext> own(engine->createExecutionContext(config.get()));
    own->setInputShape("x", dims({2, 2}));
    own->setTensorAddress("x", x);
    own->setTensorAddress("y", y);
    own->setTensorAddress("z", z);
    for (int run = 0; run < 3; ++run) {
        ASSERT_TRUE(own->enqueueV3(stream())) << logger.take_error();
    }
    begin_capture();
    ASSERT_TRUE(own->enqueueV3(stream())) << logger.take_error();
    auto graph = end_capture();
    x[1] = 20;
    ASSERT_TRUE(own->enqueueV3(stream())) << logger.take_error(); // replays ours
    EXPECT_EQ(values_at(y + 1, 1), std::vector<float>{21});
    x[1] = 30;
    graph();
    EXPECT_EQ(values_at(y + 1, 1), std::vector<float>{31});
}

TEST_P(ContextStreams, WhatWaitsIsNotCaptured) {
    c->setInputShape("x", dims({2, 2}));
    ASSERT_TRUE(c->enqueueV3(stream()));
    c->setDebugSync(true);
    EXPECT_FALSE(c->isStreamCapturable(stream()));
    if (GetParam()) {
        begin_capture();
        EXPECT_FALSE(c->enqueueV3(stream()));
        static_cast<void>(end_capture());
        EXPECT_EQ(logger.take_error(), "IExecutionContext::enqueueV3: the run cannot be captured, "
                                       "since setDebugSync(true) makes it wait");
    }
    c->setDebugSync(false);
    Profiler p;
    c->setProfiler(&p);
    EXPECT_FALSE(c->isStreamCapturable(stream()));
    c->setEnqueueEmitsProfile(false);
    EXPECT_EQ(c->isStreamCapturable(stream()), GetParam());
    if (!GetParam()) {
        return;
    }
    EXPECT_FALSE(c->reportToProfiler());
    EXPECT_NE(logger.take_error(), "");
    begin_capture();
    ASSERT_TRUE(c->enqueueV3(stream())) << logger.take_error();
    auto graph = end_capture();
    for (int launch = 1; launch < 3; ++launch) {
        graph();
        EXPECT_TRUE(c->reportToProfiler()) << logger.take_error();
        EXPECT_EQ(p.calls, launch * engine->getNbLayers());
    }
}

TEST_P(ContextStreams, TheEventForInputsIsRecordedByEveryRun) {
    int any = 0;
    void* event = real::is_asked_for() ? real::Driver::get().create_event() : &any;
    auto* e = reinterpret_cast<cudaEvent_t>(event);
    EXPECT_EQ(c->getInputConsumedEvent(), nullptr);
    EXPECT_TRUE(c->setInputConsumedEvent(e));
    EXPECT_EQ(c->getInputConsumedEvent(), e);
    c->setInputShape("x", dims({2, 2}));
    ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
    ASSERT_TRUE(c->enqueueV3(nullptr));
    if (gpu != nullptr) {
        ASSERT_EQ(gpu->recorded_events.size(), 2U);
        EXPECT_EQ(gpu->recorded_events[0].first, event);
        EXPECT_LE(gpu->recorded_events[0].second, gpu->launches() / 2);
    }
    EXPECT_TRUE(c->setInputConsumedEvent(nullptr));
    ASSERT_TRUE(c->enqueueV3(nullptr));
    EXPECT_EQ(gpu == nullptr ? 2U : gpu->recorded_events.size(), 2U);
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(ContextStreams, AuxiliaryStreamsAreNotUsed) {
    EXPECT_EQ(engine->getNbAuxStreams(), 0);
    cudaStream_t streams[] = {stream()};
    c->setAuxStreams(streams, 1);
    EXPECT_NE(logger.others().back().find("the engine uses one stream"), std::string::npos);
    c->setInputShape("x", dims({2, 2}));
    EXPECT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
}

TEST_P(ContextStreams, ThePersistentCacheNeedsADeviceThatHasIt) {
    EXPECT_EQ(c->getPersistentCacheLimit(), 0U);
    c->setPersistentCacheLimit(0);
    EXPECT_EQ(logger.take_error(), "");
    c->setPersistentCacheLimit(1 << 20);
    if (GetParam() && gpu == nullptr) { // a device that has it
        EXPECT_EQ(logger.take_error(), "");
        EXPECT_EQ(c->getPersistentCacheLimit(), 1U << 20);
        return;
    }
    EXPECT_EQ(logger.take_error(),
              GetParam() ? "IExecutionContext::setPersistentCacheLimit: 1048576 bytes of cache "
                           "cannot be kept, at most 0 can on this device"
                         : "");
    EXPECT_EQ(c->getPersistentCacheLimit(), 0U);
}

TEST_P(ContextStreams, NvtxTellsAtMostWhatTheBuildAllows) {
    EXPECT_EQ(c->getNvtxVerbosity(), ProfilingVerbosity::kLAYER_NAMES_ONLY);
    EXPECT_TRUE(c->setNvtxVerbosity(ProfilingVerbosity::kNONE));
    EXPECT_EQ(c->getNvtxVerbosity(), ProfilingVerbosity::kNONE);
    EXPECT_FALSE(c->setNvtxVerbosity(ProfilingVerbosity::kDETAILED));
    EXPECT_NE(logger.take_error(), "");
    api::BuildSettings settings;
    settings.verbosity = ProfilingVerbosity::kDETAILED;
    auto detailed = load(*two_results(true, settings));
    EXPECT_TRUE(context(*detailed)->setNvtxVerbosity(ProfilingVerbosity::kDETAILED));
}

INSTANTIATE_TEST_SUITE_P(Devices, ContextStreams, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
