// SPDX-License-Identifier: Apache-2.0
// A fixture that builds networks with plugins and runs engines on the CPU or an emulated GPU, whose
// memory is the process's.
#pragma once

#include "api/runtime_fixture.h"
#include "api/test_plugins.h"

namespace ingot::test {

/// Builds networks, and runs the engines on the CPU (false) or an emulated GPU (true).
class PluginTest : public RuntimeTest {
protected:
    PluginTest() {
        builder.reset(nv::createInferBuilder(logger));
        config.reset(builder->createBuilderConfig());
        network.reset(builder->createNetworkV2(0));
        if (real::is_asked_for() && GetParam()) { // the plugins compute on the host
            static HostVisible host_visible;
            runtime->setGpuAllocator(&host_visible);
        }
        plugin_log().configured.clear();
        plugin_log().attached = plugin_log().shape_changes = plugin_log().runs = 0;
    }
    ~PluginTest() override {
        context.reset();
        engine.reset();
        network.reset();
        EXPECT_EQ(plugin_log().live, 0);
    }

    nv::ITensor& input(const char* name, std::initializer_list<int64_t> shape,
                       nv::DataType type = nv::DataType::kFLOAT) {
        return *network->addInput(name, type, dims(shape));
    }
    /// Adds the plugin, marks its outputs y0, y1, ...; false when it is refused.
    bool add(std::vector<nv::ITensor*> in, nv::IPluginV3& plugin,
             std::vector<nv::ITensor*> shapes = {}) {
        nv::IPluginV3Layer* layer =
            network->addPluginV3(in.data(), static_cast<int32_t>(in.size()), shapes.data(),
                                 static_cast<int32_t>(shapes.size()), plugin);
        return layer != nullptr && mark(*layer);
    }
    bool mark(nv::ILayer& layer) {
        for (int32_t i = 0; i < layer.getNbOutputs(); ++i) {
            layer.getOutput(i)->setName(str("y", i).c_str());
            network->markOutput(*layer.getOutput(i));
        }
        return true;
    }
    void profile(const char* name, std::initializer_list<int64_t> min,
                 std::initializer_list<int64_t> max) {
        nv::IOptimizationProfile* p = builder->createOptimizationProfile();
        p->setDimensions(name, nv::OptProfileSelector::kMIN, dims(min));
        p->setDimensions(name, nv::OptProfileSelector::kOPT, dims(max));
        p->setDimensions(name, nv::OptProfileSelector::kMAX, dims(max));
        config->addOptimizationProfile(p);
    }
    bool build() {
        bytes.reset(builder->buildSerializedNetwork(*network, *config));
        return bytes != nullptr;
    }
    bool load_engine() {
        engine.reset(runtime->deserializeCudaEngine(bytes->data(), bytes->size()));
        if (engine != nullptr) {
            context.reset(engine->createExecutionContext());
        }
        return context != nullptr;
    }
    bool build_and_load() { return build() && load_engine(); }

    /// Binds the input to a copy of the values.
    template <class T>
    void feed(const char* name, std::initializer_list<int64_t> shape,
              const std::vector<T>& values) {
        void* p = memory->allocate(static_cast<int64_t>(values.size() * sizeof(T)));
        std::memcpy(p, values.data(), values.size() * sizeof(T));
        EXPECT_TRUE(context->setInputShape(name, dims(shape)));
        EXPECT_TRUE(context->setTensorAddress(name, p));
    }
    /// Runs; the results of y0.
    template <class T>
    std::vector<T> run(size_t count) {
        void* p = memory->allocate(static_cast<int64_t>(count * sizeof(T)));
        EXPECT_TRUE(context->setTensorAddress("y0", p));
        EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.take_error();
        synchronize();
        std::vector<T> out(count);
        std::memcpy(out.data(), p, count * sizeof(T));
        return out;
    }

    std::unique_ptr<nv::IBuilder> builder;
    std::unique_ptr<nv::IBuilderConfig> config;
    std::unique_ptr<nv::INetworkDefinition> network;
    std::unique_ptr<nv::IHostMemory> bytes;
    std::unique_ptr<nv::ICudaEngine> engine;
    std::unique_ptr<nv::IExecutionContext> context;
};

} // namespace ingot::test
