// SPDX-License-Identifier: Apache-2.0
// A plugin of the older generation with its creator.
#include "NvInferPlugin.h"

#include <cstring>
#include <string>

namespace {

using namespace nvinfer1;

class Twice : public IPluginV2DynamicExt {
public:
    IPluginV2DynamicExt* clone() const noexcept override { return new Twice(*this); }
    DimsExprs getOutputDimensions(int32_t, const DimsExprs* inputs, int32_t,
                                  IExprBuilder& exprBuilder) noexcept override {
        DimsExprs out = inputs[0];
        out.d[0] = exprBuilder.operation(DimensionOperation::kSUM, *out.d[0], *out.d[0]);
        return out;
    }
    bool supportsFormatCombination(int32_t pos, const PluginTensorDesc* inOut, int32_t,
                                   int32_t) noexcept override {
        return inOut[pos].type == DataType::kFLOAT && inOut[pos].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(const DynamicPluginTensorDesc*, int32_t, const DynamicPluginTensorDesc*,
                         int32_t) noexcept override {}
    size_t getWorkspaceSize(const PluginTensorDesc*, int32_t, const PluginTensorDesc*,
                            int32_t) const noexcept override {
        return 0;
    }
    int32_t enqueue(const PluginTensorDesc*, const PluginTensorDesc*, const void* const*,
                    void* const*, void*, cudaStream_t) noexcept override {
        return 0;
    }
    DataType getOutputDataType(int32_t, const DataType* inputTypes,
                               int32_t) const noexcept override {
        return inputTypes[0];
    }
    const char* getPluginType() const noexcept override { return "Twice"; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return sizeof(int); }
    void serialize(void* buffer) const noexcept override {
        const int version = 1;
        std::memcpy(buffer, &version, sizeof version);
    }
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(const char* name) noexcept override { namespace_ = name; }
    const char* getPluginNamespace() const noexcept override { return namespace_.c_str(); }

private:
    using IPluginV2::enqueue;
    using IPluginV2::getOutputDimensions;
    using IPluginV2::getWorkspaceSize;
    using IPluginV2Ext::configurePlugin;

    std::string namespace_;
};

class TwiceCreator : public IPluginCreator {
public:
    const char* getPluginName() const noexcept override { return "Twice"; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    const PluginFieldCollection* getFieldNames() noexcept override { return &fields_; }
    IPluginV2* createPlugin(const char*, const PluginFieldCollection*) noexcept override {
        return new Twice;
    }
    IPluginV2* deserializePlugin(const char*, const void*, size_t) noexcept override {
        return new Twice;
    }
    void setPluginNamespace(const char* name) noexcept override { namespace_ = name; }
    const char* getPluginNamespace() const noexcept override { return namespace_.c_str(); }

private:
    PluginFieldCollection fields_{0, nullptr};
    std::string namespace_;
};

REGISTER_TENSORRT_PLUGIN(TwiceCreator);

} // namespace

int main() {
    IPluginV2DynamicExt* const plugin = new Twice;
    const int32_t kind = plugin->getTensorRTVersion() >> 24;
    plugin->destroy();
    IPluginCreator* const creator = getPluginRegistry()->getPluginCreator("Twice", "1");
    return creator != nullptr && kind == static_cast<int32_t>(PluginVersion::kV2_DYNAMICEXT) ? 0
                                                                                             : 1;
}
