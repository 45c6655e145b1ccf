// SPDX-License-Identifier: Apache-2.0
// IPluginV2DynamicExt as a layer: built, serialised, made again by its creator, and run.
#include "api/plugin_fixture.h"

namespace ingot::test {
namespace {

class OlderPlugins : public PluginTest {};

class OldScale : public nv::IPluginV2DynamicExt {
public:
    explicit OldScale(float factor) : factor_(factor) { ++plugin_log().live; }
    OldScale(const OldScale& o) : nv::IPluginV2DynamicExt(o), factor_(o.factor_) {
        ++plugin_log().live;
    }
    OldScale& operator=(const OldScale&) = delete;
    OldScale(OldScale&&) = delete;
    OldScale& operator=(OldScale&&) = delete;
    ~OldScale() override { --plugin_log().live; }

    const char* getPluginType() const noexcept override { return "OldScale"; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t initialize() noexcept override { return ready_ = true, 0; }
    void terminate() noexcept override { ready_ = false; }
    size_t getSerializationSize() const noexcept override { return sizeof factor_; }
    void serialize(void* to) const noexcept override { std::memcpy(to, &factor_, sizeof factor_); }
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(const char*) noexcept override {}
    const char* getPluginNamespace() const noexcept override { return ""; }
    nv::DataType getOutputDataType(int32_t, const nv::DataType* in,
                                   int32_t) const noexcept override {
        return in[0];
    }
    nv::IPluginV2DynamicExt* clone() const noexcept override { return new OldScale(*this); }
    nv::DimsExprs getOutputDimensions(int32_t, const nv::DimsExprs* in, int32_t,
                                      nv::IExprBuilder&) noexcept override {
        return in[0];
    }
    bool supportsFormatCombination(int32_t pos, const nv::PluginTensorDesc* all, int32_t,
                                   int32_t) noexcept override {
        return all[pos].type == nv::DataType::kFLOAT;
    }
    void configurePlugin(const nv::DynamicPluginTensorDesc*, int32_t,
                         const nv::DynamicPluginTensorDesc*, int32_t) noexcept override {}
    size_t getWorkspaceSize(const nv::PluginTensorDesc*, int32_t, const nv::PluginTensorDesc*,
                            int32_t) const noexcept override {
        return 64;
    }
    int32_t enqueue(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc*,
                    const void* const* inputs, void* const* outputs, void* workspace,
                    cudaStream_t) noexcept override {
        if (!ready_ || workspace == nullptr) {
            return 1;
        }
        synchronize();
        for (int64_t i = 0; i < volume(in[0].dims); ++i) {
            static_cast<float*>(outputs[0])[i] = static_cast<const float*>(inputs[0])[i] * factor_;
        }
        return 0;
    }

private:
    float factor_;
    bool ready_ = false;
};

class OldScaleCreator : public nv::IPluginCreator {
public:
    const char* getPluginName() const noexcept override { return "OldScale"; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    const nv::PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
    nv::IPluginV2* createPlugin(const char*, const nv::PluginFieldCollection*) noexcept override {
        return new OldScale(3);
    }
    nv::IPluginV2* deserializePlugin(const char*, const void* data, size_t n) noexcept override {
        return n == sizeof(float) ? new OldScale(*static_cast<const float*>(data)) : nullptr;
    }
    void setPluginNamespace(const char*) noexcept override {}
    const char* getPluginNamespace() const noexcept override { return ""; }
};

TEST_P(OlderPlugins, AreLayersToo) {
    OldScaleCreator creator;
    ASSERT_TRUE(getPluginRegistry()->registerCreator(creator, ""));
    {
        OldScale plugin(7);
        nv::ITensor* x = &input("x", {2});
        nv::IPluginV2Layer* layer = network->addPluginV2(&x, 1, plugin);
        ASSERT_NE(layer, nullptr) << logger.take_error();
        EXPECT_EQ(layer->getType(), nv::LayerType::kPLUGIN_V2);
        EXPECT_STREQ(layer->getPlugin().getPluginType(), "OldScale");
        EXPECT_NE(&layer->getPlugin(), &plugin);
        mark(*layer);
    }
    ASSERT_TRUE(build_and_load()) << logger.take_error();
    feed<float>("x", {2}, {1, 2});
    EXPECT_EQ(run<float>(2), (std::vector<float>{7, 14}));
    EXPECT_TRUE(getPluginRegistry()->deregisterCreator(creator));
}

INSTANTIATE_TEST_SUITE_P(Places, OlderPlugins, testing::Bool(), [](const auto& place) {
    return std::string(place.param ? "EmulatedGpu" : "Cpu");
});

} // namespace
} // namespace ingot::test
