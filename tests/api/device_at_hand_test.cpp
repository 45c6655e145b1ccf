// SPDX-License-Identifier: Apache-2.0
// Builder queries that depend on the present device: the CPU, or an emulated GPU.
#include "api/network_fixture.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/backends.h"
#include "backends/cuda/backend.h"
#include "emulator/emulated_gpu.h"
#include "ingot.h"

#include <cstring>

namespace ingot::test {

namespace {

class Lines : public nv::ILogger {
public:
    void log(Severity severity, const char* msg) noexcept override {
        (severity <= Severity::kERROR ? errors : others).emplace_back(msg);
    }
    bool has(const std::string& line) const {
        return std::find(others.begin(), others.end(), line) != others.end();
    }
    std::vector<std::string> errors;
    std::vector<std::string> others;
};

class DeviceAtHand : public ::testing::Test {
protected:
    DeviceAtHand() {
        ingot::setCacheFolder("");
        builder.reset(nv::createInferBuilder(lines));
        config.reset(builder->createBuilderConfig());
        network.reset(builder->createNetworkV2(0));
        nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, dims({2, 3}));
        network->markOutput(*network->addActivation(*x, nv::ActivationType::kRELU)->getOutput(0));
    }
    ~DeviceAtHand() override {
        api::set_gpu(nullptr);
        ingot::setCacheFolder(nullptr);
    }
    void plug_in(int compute_capability) {
        gpu = std::make_unique<emulator::EmulatedGpu>(compute_capability);
        backend = cuda::make_backend(*gpu);
        api::set_gpu(backend.get());
    }
    void ask_for(nv::ComputeCapability cc) {
        EXPECT_TRUE(config->setNbComputeCapabilities(1));
        EXPECT_TRUE(config->setComputeCapability(cc, 0));
    }
    /// The engine file; empty when the build failed.
    std::string build() {
        std::unique_ptr<nv::IHostMemory> m(builder->buildSerializedNetwork(*network, *config));
        return m == nullptr ? "" : std::string(static_cast<const char*>(m->data()), m->size());
    }

    Lines lines;
    std::unique_ptr<emulator::EmulatedGpu> gpu;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<nv::IBuilder> builder;
    std::unique_ptr<nv::IBuilderConfig> config;
    std::unique_ptr<nv::INetworkDefinition> network;
};

bool has_gpu() {
    std::string why;
    return cuda_backend(why) != nullptr;
}

TEST_F(DeviceAtHand, WithoutAGpuTheCurrentCapabilityIsAsNoneSet) {
    if (has_gpu()) {
        GTEST_SKIP() << "this machine has a GPU";
    }
    std::string none = build();
    ask_for(nv::ComputeCapability::kCURRENT);
    std::string current = build();
    ASSERT_FALSE(current.empty()) << lines.errors.back();
    EXPECT_EQ(current, none);
    EXPECT_TRUE(lines.has("kCURRENT: there is no GPU here; kernels are compiled where the engine "
                          "is loaded"));
    EXPECT_TRUE(builder->isNetworkSupported(*network, *config));
    // Also where the build targets a GPU, or the CPU beside one.
    ASSERT_TRUE(ingot::setDevice(*config, Device::kGPU));
    EXPECT_EQ(build(), none);
    plug_in(90);
    ASSERT_TRUE(ingot::setDevice(*config, Device::kCPU));
    EXPECT_EQ(build(), none);
}

TEST_F(DeviceAtHand, TheCurrentCapabilityIsThatOfTheGpu) {
    for (int cc : {80, 90}) {
        SCOPED_TRACE(cc);
        plug_in(cc);
        ask_for(nv::ComputeCapability::kCURRENT);
        std::string current = build();
        std::string error = lines.errors.empty() ? "" : lines.errors.back();
        ask_for(static_cast<nv::ComputeCapability>(cc));
        EXPECT_EQ(build(), current);
        if (kernel_compiler().empty()) { // then both require it, and report that
            EXPECT_NE(error.find("NVRTC"), std::string::npos) << error;
            EXPECT_EQ(lines.errors.back(), error);
            continue;
        }
        ASSERT_FALSE(current.empty()) << error;
        AlignedBytes bytes(current.size());
        std::memcpy(bytes.data(), current.data(), current.size());
        auto engine = Engine::load(bytes, nullptr);
        ASSERT_NE(engine->kernels(), nullptr);
        EXPECT_FALSE(engine->kernels()->empty());
    }
}

TEST_F(DeviceAtHand, FastTypesAreThoseOfTheDevice) {
    EXPECT_EQ(builder->platformHasFastFp16(), has_gpu());
    EXPECT_EQ(builder->platformHasFastInt8(), has_gpu());
    EXPECT_EQ(builder->platformHasTf32(), has_gpu());
    plug_in(90);
    EXPECT_TRUE(builder->platformHasFastFp16());
    EXPECT_TRUE(builder->platformHasFastInt8());
    EXPECT_TRUE(builder->platformHasTf32());
    EXPECT_TRUE(lines.errors.empty());
}

} // namespace

} // namespace ingot::test
