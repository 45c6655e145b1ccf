// SPDX-License-Identifier: Apache-2.0
// A plugin of the newest generation with its creator, registered and added to a network.
#include "NvInfer.h"
#include "NvInferPlugin.h"

#include <cstring>
#include <memory>
#include <string>

namespace {

class Clip : public nvinfer1::IPluginV3,
             public nvinfer1::IPluginV3OneCore,
             public nvinfer1::IPluginV3OneBuildV2,
             public nvinfer1::IPluginV3OneRuntime {
public:
    explicit Clip(float limit) : limit_(limit) {}
    Clip(const Clip&) = default;

    nvinfer1::IPluginCapability*
    getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept override {
        switch (type) {
        case nvinfer1::PluginCapabilityType::kCORE:
            return static_cast<nvinfer1::IPluginV3OneCore*>(this);
        case nvinfer1::PluginCapabilityType::kBUILD:
            return static_cast<nvinfer1::IPluginV3OneBuild*>(this);
        case nvinfer1::PluginCapabilityType::kRUNTIME:
            return static_cast<nvinfer1::IPluginV3OneRuntime*>(this);
        }
        return nullptr;
    }
    nvinfer1::IPluginV3* clone() noexcept override { return new Clip(*this); }

    const char* getPluginName() const noexcept override { return "Clip"; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    const char* getPluginNamespace() const noexcept override { return ""; }

    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t configurePlugin(const nvinfer1::DynamicPluginTensorDesc*, int32_t,
                            const nvinfer1::DynamicPluginTensorDesc*, int32_t) noexcept override {
        return 0;
    }
    bool supportsFormatCombination(int32_t pos, const nvinfer1::DynamicPluginTensorDesc* inOut,
                                   int32_t, int32_t) noexcept override {
        return inOut[pos].desc.format == nvinfer1::PluginFormat::kLINEAR &&
               inOut[pos].desc.type == nvinfer1::DataType::kFLOAT;
    }
    int32_t getOutputDataTypes(nvinfer1::DataType* outputTypes, int32_t,
                               const nvinfer1::DataType* inputTypes,
                               int32_t) const noexcept override {
        outputTypes[0] = inputTypes[0];
        return 0;
    }
    int32_t getOutputShapes(const nvinfer1::DimsExprs* inputs, int32_t, const nvinfer1::DimsExprs*,
                            int32_t, nvinfer1::DimsExprs* outputs, int32_t,
                            nvinfer1::IExprBuilder& exprBuilder) noexcept override {
        outputs[0] = inputs[0];
        const auto* const two = exprBuilder.constant(2);
        outputs[0].d[0] =
            exprBuilder.operation(nvinfer1::DimensionOperation::kPROD, *inputs[0].d[0], *two);
        return outputs[0].d[0] != nullptr ? 0 : 1;
    }
    int32_t getAliasedInput(int32_t) noexcept override { return -1; }
    size_t getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc*, int32_t,
                            const nvinfer1::DynamicPluginTensorDesc*,
                            int32_t) const noexcept override {
        return 256;
    }

    int32_t onShapeChange(const nvinfer1::PluginTensorDesc*, int32_t,
                          const nvinfer1::PluginTensorDesc*, int32_t) noexcept override {
        return 0;
    }
    int32_t enqueue(const nvinfer1::PluginTensorDesc* inputDesc, const nvinfer1::PluginTensorDesc*,
                    const void* const* inputs, void* const* outputs, void*,
                    cudaStream_t) noexcept override {
        size_t count = 1;
        for (int32_t i = 0; i < inputDesc[0].dims.nbDims; ++i) {
            count *= static_cast<size_t>(inputDesc[0].dims.d[i]);
        }
        std::memcpy(outputs[0], inputs[0], count * sizeof(float));
        return 0;
    }
    nvinfer1::IPluginV3* attachToContext(nvinfer1::IPluginResourceContext*) noexcept override {
        return clone();
    }
    const nvinfer1::PluginFieldCollection* getFieldsToSerialize() noexcept override {
        field_ = {"limit", &limit_, nvinfer1::PluginFieldType::kFLOAT32, 1};
        fields_ = {1, &field_};
        return &fields_;
    }

private:
    float limit_;
    nvinfer1::PluginField field_;
    nvinfer1::PluginFieldCollection fields_;
};

class ClipCreator : public nvinfer1::IPluginCreatorV3One {
public:
    nvinfer1::IPluginV3* createPlugin(const char*, const nvinfer1::PluginFieldCollection* fc,
                                      nvinfer1::TensorRTPhase) noexcept override {
        return fc->nbFields == 1 ? new Clip(*static_cast<const float*>(fc->fields[0].data))
                                 : nullptr;
    }
    const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return &fields_; }
    const char* getPluginName() const noexcept override { return "Clip"; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    const char* getPluginNamespace() const noexcept override { return ""; }

private:
    nvinfer1::PluginField field_{"limit", nullptr, nvinfer1::PluginFieldType::kFLOAT32, 1};
    nvinfer1::PluginFieldCollection fields_{1, &field_};
};

REGISTER_TENSORRT_PLUGIN(ClipCreator);

class Counter : public nvinfer1::IPluginResource {
public:
    int32_t release() noexcept override { return 0; }
    nvinfer1::IPluginResource* clone() noexcept override { return new Counter(*this); }
};

} // namespace

nvinfer1::ITensor* add_clip(nvinfer1::INetworkDefinition& network, nvinfer1::ITensor& x);
nvinfer1::ITensor* add_clip(nvinfer1::INetworkDefinition& network, nvinfer1::ITensor& x) {
    using namespace nvinfer1;
    Counter counter;
    IPluginRegistry* const registry = getPluginRegistry();
    registry->acquirePluginResource("counter", &counter);
    auto* const creator = static_cast<IPluginCreatorV3One*>(registry->getCreator("Clip", "1", ""));
    const float limit = 6;
    const PluginField field{"limit", &limit, PluginFieldType::kFLOAT32, 1};
    const PluginFieldCollection fields{1, &field};
    const std::unique_ptr<IPluginV3> plugin{
        creator->createPlugin("clip", &fields, TensorRTPhase::kBUILD)};
    ITensor* const inputs[] = {&x};
    IPluginV3Layer* const layer = network.addPluginV3(inputs, 1, nullptr, 0, *plugin);
    registry->releasePluginResource("counter");
    return layer != nullptr ? layer->getOutput(0) : nullptr;
}

int main() {
    return 0;
}
