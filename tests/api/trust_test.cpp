// SPDX-License-Identifier: Apache-2.0
// Signatures and trusted keys by the public API.
#include "api/network_fixture.h"
#include "api/tensorrt/runtime/engine.h"
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
    std::string take_error() {
        std::string all;
        for (const std::string& e : logger.errors) {
            all += e + "\n";
        }
        logger.errors.clear();
        return all;
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

TEST_F(ApiTrust, WhatCannotBeSigned) {
    EXPECT_EQ(signEngine(logger, nullptr, 1, private_key_1.c_str()), nullptr);
    EXPECT_EQ(signEngine(logger, plan->data(), plan->size(), nullptr), nullptr);
    EXPECT_EQ(signEngine(logger, plan->data(), plan->size(), public_key_1.c_str()), nullptr);
    EXPECT_EQ(signEngine(logger, plan->data(), plan->size() - 1, private_key_1.c_str()), nullptr);
}

} // namespace ingot::test
