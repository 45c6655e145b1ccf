// SPDX-License-Identifier: Apache-2.0
// Objects may be deleted in any order; recorders are counted and passed on.
#include "api/runtime_fixture.h"

#include <algorithm>
#include <array>
#include <functional>

namespace ingot::test {
namespace {

class Recorder : public nvinfer1::IErrorRecorder {
public:
    int32_t getNbErrors() const noexcept override { return static_cast<int32_t>(errors.size()); }
    nvinfer1::ErrorCode getErrorCode(int32_t i) const noexcept override {
        return errors[static_cast<size_t>(i)].first;
    }
    ErrorDesc getErrorDesc(int32_t i) const noexcept override {
        return errors[static_cast<size_t>(i)].second.c_str();
    }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override { errors.clear(); }
    bool reportError(nvinfer1::ErrorCode code, ErrorDesc desc) noexcept override {
        EXPECT_LE(std::strlen(desc), kMAX_DESC_LENGTH);
        errors.emplace_back(code, desc);
        return false;
    }
    RefCount incRefCount() noexcept override { return ++count; }
    RefCount decRefCount() noexcept override { return --count; }

    std::vector<std::pair<nvinfer1::ErrorCode, std::string>> errors;
    RefCount count = 0;
};

class RuntimeLifetime : public RuntimeTest {};

TEST_P(RuntimeLifetime, EveryOrderOfDeletion) {
    AlignedBytes bytes = engine_bytes(*two_results());
    std::array<int, 6> order = {0, 1, 2, 3, 4, 5};
    int orders = 0;
    do {
        // The emulated GPU is slow: a sample of the orders is enough there.
        if (GetParam() && orders++ % 60 != 0) {
            continue;
        }
        runtime.reset(nvinfer1::createInferRuntime(logger));
        ingot::setDevice(*runtime, GetParam() ? Device::kGPU : Device::kCPU);
        auto engine = load(bytes);
        ASSERT_NE(engine, nullptr) << logger.take_error();
        std::unique_ptr<nvinfer1::IRuntimeConfig> config(engine->createRuntimeConfig());
        std::unique_ptr<nvinfer1::IRuntimeCache> cache(config->createRuntimeCache());
        ASSERT_TRUE(config->setRuntimeCache(*cache));
        std::unique_ptr<nvinfer1::IExecutionContext> c(
            engine->createExecutionContext(config.get()));
        ASSERT_NE(c, nullptr) << logger.take_error();
        std::unique_ptr<nvinfer1::IEngineInspector> inspector(engine->createEngineInspector());
        auto use = [&] {
            if (c != nullptr) {
                void* y = memory->allocate(16);
                c->setInputShape("x", dims({2, 2}));
                c->setTensorAddress("x", memory->floats({1, 2, 3, 4}));
                c->setTensorAddress("y", y);
                c->setTensorAddress("z", memory->allocate(16));
                ASSERT_TRUE(c->enqueueV3(nullptr)) << logger.take_error();
                EXPECT_EQ(values_at(y, 4), (std::vector<float>{2, 3, 4, 5}));
                EXPECT_EQ(c->getEngine().getNbIOTensors(), 3);
            }
            if (inspector != nullptr) {
                EXPECT_NE(
                    inspector->getLayerInformation(0, nvinfer1::LayerInformationFormat::kONELINE),
                    nullptr);
            }
            if (config != nullptr) {
                EXPECT_NE(config->getRuntimeCache(), nullptr);
            }
            if (cache != nullptr) {
                std::unique_ptr<nvinfer1::IHostMemory> kept(cache->serialize());
                EXPECT_NE(kept, nullptr);
            }
        };
        const std::array<std::function<void()>, 6> drop = {
            [&] { runtime.reset(); }, [&] { engine.reset(); },    [&] { config.reset(); },
            [&] { cache.reset(); },   [&] { inspector.reset(); }, [&] { c.reset(); }};
        for (int i : order) {
            drop[static_cast<size_t>(i)]();
            use();
        }
    } while (std::next_permutation(order.begin(), order.end()));
    EXPECT_EQ(logger.take_error(), "");
}

TEST_P(RuntimeLifetime, RecordersArePassedOnAndCounted) {
    Recorder first;
    Recorder second;
    runtime->setErrorRecorder(&first);
    EXPECT_EQ(runtime->getErrorRecorder(), &first);
    auto engine = load(*two_results());
    auto c = context(*engine);
    EXPECT_EQ(engine->getErrorRecorder(), &first);
    EXPECT_EQ(c->getErrorRecorder(), &first);
    EXPECT_FALSE(c->setTensorAddress("w", nullptr));
    ASSERT_EQ(first.errors.size(), 1U);
    EXPECT_EQ(first.errors[0].first, nvinfer1::ErrorCode::kINVALID_ARGUMENT);
    EXPECT_EQ(first.errors[0].second, "IExecutionContext::setTensorAddress: there is no input or "
                                      "output 'w', did you mean 'x'?");
    EXPECT_EQ(logger.take_error(), "");
    c->setErrorRecorder(&second);
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_EQ(second.errors.size(), 1U);
    EXPECT_EQ(first.errors.size(), 1U);
    EXPECT_EQ(engine->getIOTensorName(9), nullptr);
    EXPECT_EQ(first.errors.size(), 2U);
    EXPECT_EQ(runtime->deserializeCudaEngine(nullptr, 5), nullptr);
    EXPECT_EQ(first.errors.size(), 3U);
    EXPECT_GT(first.count, 0);
    EXPECT_EQ(second.count, 1);
    runtime.reset();
    engine.reset();
    EXPECT_GT(first.count, 0); // what the context shares with its engine
    c.reset();
    EXPECT_EQ(first.count, 0);
    EXPECT_EQ(second.count, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, RuntimeLifetime, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
