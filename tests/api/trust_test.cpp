// SPDX-License-Identifier: Apache-2.0
// Signatures and trusted keys by the public API.
#include "api/network_fixture.h"
#include "api/tensorrt/runtime/engine.h"
#include "api/tensorrt/runtime/place.h"
#include "engine/trust.h"
#include "ingot.h"
#include "trust_keys.h"

#include <gtest/gtest.h>

namespace ingot::test {

namespace {

class ApiTrust : public NetworkTest {
protected:
    void SetUp() override {
        runtime.reset(nv::createInferRuntime(logger));
        nv::ILayer* layer = network->addUnary(input("x", {4}), nv::UnaryOperation::kNEG);
        network->markOutput(*layer->getOutput(0));
        plan.reset(builder->buildSerializedNetwork(*network, *config));
        ASSERT_NE(plan, nullptr);
    }
    std::unique_ptr<nv::IHostMemory> signed_by(const std::string& key) {
        return std::unique_ptr<nv::IHostMemory>(
            signEngine(logger, plan->data(), plan->size(), key.c_str()));
    }
    bool loads(const nv::IHostMemory& bytes) {
        std::unique_ptr<nv::ICudaEngine> e(
            runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
        return e != nullptr;
    }
    std::unique_ptr<nv::IRuntime> runtime;
    std::unique_ptr<nv::IHostMemory> plan;
};

} // namespace

TEST_F(ApiTrust, OnlySignedEnginesWhereThatIsAskedFor) {
    auto first = signed_by(private_key_1);
    auto second = signed_by(private_key_2);
    ASSERT_TRUE(first && second);
    EXPECT_TRUE(loads(*plan) && loads(*first) && loads(*second));
    ASSERT_TRUE(setTrustedOnly(*runtime, true));
    EXPECT_FALSE(loads(*first));
    EXPECT_NE(take_error().find("it is signed, but no trusted keys are given"), std::string::npos);
    ASSERT_TRUE(setTrustedKeys(*runtime, public_key_1.c_str()));
    EXPECT_TRUE(loads(*first));
    EXPECT_FALSE(loads(*second));
    EXPECT_NE(take_error().find("which is not one of the trusted keys"), std::string::npos);
    EXPECT_FALSE(loads(*plan));
    EXPECT_NE(take_error().find("only engines signed by a trusted key are allowed, and it is "
                                "not signed"),
              std::string::npos);
    EXPECT_FALSE(setTrustedKeys(*runtime, "nonsense"));
    EXPECT_NE(take_error().find("line 1: expected a public key in PEM"), std::string::npos);
    EXPECT_TRUE(loads(*first)); // the keys stay
    ASSERT_TRUE(setTrustedKeys(*runtime, nullptr));
    EXPECT_FALSE(loads(*first));
    take_error();
    ASSERT_TRUE(setTrustedOnly(*runtime, false));
    EXPECT_TRUE(loads(*plan));
    EXPECT_FALSE(ingotSetTrustedKeys(nullptr, nullptr));
    EXPECT_FALSE(ingotSetTrustedOnly(nullptr, true));
}

TEST_F(ApiTrust, CodeIsAllowedByKeyOrByName) {
    auto first = signed_by(private_key_1);
    ASSERT_NE(first, nullptr);
    auto distrust = [&] {
        std::unique_ptr<nv::ICudaEngine> e(
            runtime->deserializeCudaEngine(first->data(), first->size()));
        return e == nullptr ? "null"
                            : static_cast<api::EngineObject&>(*e).state()->engine().distrust();
    };
    EXPECT_EQ(distrust(), "it is signed, but no trusted keys are given");
    runtime->setEngineHostCodeAllowed(true);
    EXPECT_TRUE(runtime->getEngineHostCodeAllowed());
    EXPECT_EQ(distrust(), "");
    runtime->setEngineHostCodeAllowed(false);
    EXPECT_FALSE(runtime->getEngineHostCodeAllowed());
    EXPECT_NE(distrust(), "");
    ASSERT_TRUE(setTrustedKeys(*runtime, public_key_1.c_str()));
    EXPECT_EQ(distrust(), "");
}

namespace {

/// A GPU to all appearances, which keeps what it was given to run.
class LikeAGpu : public Backend {
public:
    LikeAGpu() { api::set_gpu(this); }
    ~LikeAGpu() override { api::set_gpu(nullptr); }
    std::string_view name() const override { return "like a GPU"; }
    std::string description() const override { return "for tests"; }
    int compute_capability() const override { return 90; }
    std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph> graph,
                                              const CompileOptions& options) const override {
        kernels.push_back(options.kernels == nullptr ? 0 : options.kernels->size());
        return cpu_backend().compile(std::move(graph), {});
    }
    mutable std::vector<size_t> kernels; // of each compilation
};

class WarningLogger : public nv::ILogger {
public:
    void log(Severity severity, const char* msg) noexcept override {
        if (severity == Severity::kWARNING) {
            warnings.emplace_back(msg);
        }
    }
    std::vector<std::string> warnings;
};

} // namespace

TEST_F(ApiTrust, WarningAboutKernelsGoesToTheEnginesLoggerOnce) {
    std::unique_ptr<nv::ICudaEngine> built(
        runtime->deserializeCudaEngine(plan->data(), plan->size()));
    AlignedBytes bytes =
        engine_bytes(*static_cast<api::EngineObject&>(*built).state()->engine().with_kernels(
            {{std::string(32, 'a'), "native code"}}, std::array{90}));
    bytes = signed_engine(bytes, private_key_from_pem(private_key_1)); // as no process wrote it
    LikeAGpu gpu;
    WarningLogger said;
    std::unique_ptr<nv::IRuntime> other(nv::createInferRuntime(said));
    ASSERT_TRUE(setDevice(*other, Device::kGPU));
    std::unique_ptr<nv::ICudaEngine> engine(
        other->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr);
    std::unique_ptr<nv::IRuntimeConfig> recording(engine->createRuntimeConfig());
    recording->setCudaGraphStrategy(nv::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
    testing::internal::CaptureStderr();
    std::unique_ptr<nv::IExecutionContext> first(engine->createExecutionContext());
    std::unique_ptr<nv::IExecutionContext> second(engine->createExecutionContext(recording.get()));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    ASSERT_TRUE(first && second);
    EXPECT_EQ(gpu.kernels, (std::vector<size_t>{0, 0}));
    ASSERT_EQ(said.warnings.size(), 1U);
    EXPECT_NE(said.warnings[0].find("the engine's 1 kernels built ahead are not used but compiled "
                                    "anew: it is signed, but no trusted keys are given; sign it "
                                    "with 'ingot sign'"),
              std::string::npos)
        << said.warnings[0];

    other->setEngineHostCodeAllowed(true);
    std::unique_ptr<nv::ICudaEngine> allowed(
        other->deserializeCudaEngine(bytes.data(), bytes.size()));
    std::unique_ptr<nv::IExecutionContext> context(allowed->createExecutionContext());
    EXPECT_EQ(gpu.kernels.back(), 1U);
    EXPECT_EQ(said.warnings.size(), 1U);
}

TEST_F(ApiTrust, WhatCannotBeSigned) {
    EXPECT_EQ(signEngine(logger, nullptr, 1, private_key_1.c_str()), nullptr);
    EXPECT_EQ(signEngine(logger, plan->data(), plan->size(), nullptr), nullptr);
    EXPECT_EQ(signEngine(logger, plan->data(), plan->size(), public_key_1.c_str()), nullptr);
    EXPECT_EQ(signEngine(logger, plan->data(), plan->size() - 1, private_key_1.c_str()), nullptr);
}

} // namespace ingot::test
