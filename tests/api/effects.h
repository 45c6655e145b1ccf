// SPDX-License-Identifier: Apache-2.0
// For the tests of settings without effect: a scene in which each of them can be set, and the
// expected message of each.
#pragma once

#include "NvOnnxParser.h"
#include "api/network_fixture.h"
#include "ingot.h"

#include <set>

namespace ingot::test {

using Flag = nv::BuilderFlag;
using Severity = nv::ILogger::Severity;

class Lines : public nv::ILogger {
public:
    void log(Severity severity, const char* msg) noexcept override {
        all.emplace_back(severity, msg);
    }
    int count(Severity severity, const std::string& line) const {
        return static_cast<int>(std::count(all.begin(), all.end(), std::pair(severity, line)));
    }
    bool has(const std::string& part) const {
        return std::any_of(all.begin(), all.end(),
                           [&](const auto& l) { return l.second.find(part) != std::string::npos; });
    }
    std::vector<std::pair<Severity, std::string>> all;
};

/// A network with a product, and on the CPU everything built from it.
class Scene {
public:
    Scene() {
        setCacheFolder("");
        builder.reset(nv::createInferBuilder(lines));
        make_network(0);
        config.reset(builder->createBuilderConfig());
        ingot::setDevice(*config, Device::kCPU);
        runtime.reset(nv::createInferRuntime(lines));
        ingot::setDevice(*runtime, Device::kCPU);
    }
    ~Scene() { setCacheFolder(nullptr); }
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;

    void make_network(nv::NetworkDefinitionCreationFlags flags) {
        network.reset(builder->createNetworkV2(flags));
        nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, dims({2, 4}));
        nv::ITensor* w = network->addConstant(dims({4, 4}), {nv::DataType::kFLOAT, ones.data(), 16})
                             ->getOutput(0);
        nv::ITensor* y =
            network
                ->addMatrixMultiply(*x, nv::MatrixOperation::kNONE, *w, nv::MatrixOperation::kNONE)
                ->getOutput(0);
        y->setName("y");
        network->markOutput(*y);
    }
    std::shared_ptr<const Engine> build() {
        bytes.reset(builder->buildSerializedNetwork(*network, *config));
        if (bytes == nullptr) {
            return nullptr;
        }
        return Engine::load({static_cast<const std::byte*>(bytes->data()), bytes->size()}, bytes,
                            CheckWeights::First);
    }
    nv::ICudaEngine& load() {
        build();
        engine.reset(runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
        return *engine;
    }
    nv::IExecutionContext& run() {
        context.reset(load().createExecutionContext());
        return *context;
    }

    std::array<float, 16> ones{};
    Lines lines;
    std::unique_ptr<nv::IBuilder> builder;
    std::unique_ptr<nv::INetworkDefinition> network;
    std::unique_ptr<nv::IBuilderConfig> config;
    std::unique_ptr<nv::IRuntime> runtime;
    std::shared_ptr<nv::IHostMemory> bytes;
    std::unique_ptr<nv::ICudaEngine> engine;
    std::unique_ptr<nv::IExecutionContext> context;
};

struct Message {
    std::string setting; // as in the lists below
    std::function<void(Scene&)> make;
    std::string line; // one line, a warning unless it says that nothing changes
};

/// The messages for a setting without effect, and for one that asks for behaviour that is always
/// on.
inline const std::string none = ": accepted, no effect, because ";
inline const std::string anyway = ": nothing changes, because ";

/// The classes whose setters configure builds, loading and runs. Those of all other classes in the
/// list of the public surface define layers and tensors.
inline const std::set<std::string> configured = {
    "IBuilder",        "IBuilderConfig",     "IOptimizationProfile", "IParser",
    "IParserRefitter", "IRuntime",           "IRuntimeConfig",       "ICudaEngine",
    "IRefitter",       "IEngineInspector",   "IExecutionContext",    "ISerializationConfig",
    "IOnnxConfig",     "INetworkDefinition", "IPluginRegistry"};
/// The classes that applications derive from: their setters are called by the library.
inline const std::set<std::string> derived = {"IPluginCreator", "IPluginV2", "IPluginV3OneRuntime"};

/// For every setting without effect.
std::vector<Message> messages();

} // namespace ingot::test
