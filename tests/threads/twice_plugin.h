// SPDX-License-Identifier: Apache-2.0
// A plugin that doubles, and its creator: both may be used by several threads, each clone by one.
#pragma once

#include "NvInferRuntimePlugin.h"

#include <string>
#include <utility>

namespace ingot::test {

class Twice final : public nvinfer1::IPluginV3,
                    public nvinfer1::IPluginV3OneCore,
                    public nvinfer1::IPluginV3OneBuild,
                    public nvinfer1::IPluginV3OneRuntime {
public:
    static constexpr const char* name = "Twice";

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
    nvinfer1::IPluginV3* clone() noexcept override { return new Twice(*this); }
    const char* getPluginName() const noexcept override { return name; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    const char* getPluginNamespace() const noexcept override { return ""; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t configurePlugin(const nvinfer1::DynamicPluginTensorDesc*, int32_t,
                            const nvinfer1::DynamicPluginTensorDesc*, int32_t) noexcept override {
        ++calls_; // unprotected: one thread at a time is the contract
        return 0;
    }
    int32_t getOutputDataTypes(nvinfer1::DataType* out, int32_t, const nvinfer1::DataType* in,
                               int32_t) const noexcept override {
        out[0] = in[0];
        return 0;
    }
    int32_t getOutputShapes(const nvinfer1::DimsExprs* in, int32_t, const nvinfer1::DimsExprs*,
                            int32_t, nvinfer1::DimsExprs* out, int32_t,
                            nvinfer1::IExprBuilder&) noexcept override {
        out[0] = in[0];
        return 0;
    }
    bool supportsFormatCombination(int32_t pos, const nvinfer1::DynamicPluginTensorDesc* all,
                                   int32_t, int32_t) noexcept override {
        return all[pos].desc.type == nvinfer1::DataType::kFLOAT;
    }
    int32_t onShapeChange(const nvinfer1::PluginTensorDesc*, int32_t,
                          const nvinfer1::PluginTensorDesc*, int32_t) noexcept override {
        ++calls_;
        return 0;
    }
    int32_t enqueue(const nvinfer1::PluginTensorDesc* in, const nvinfer1::PluginTensorDesc*,
                    const void* const* inputs, void* const* outputs, void*,
                    cudaStream_t) noexcept override {
        ++calls_;
        int64_t n = 1;
        for (int32_t i = 0; i < in[0].dims.nbDims; ++i) {
            n *= in[0].dims.d[i];
        }
        for (int64_t i = 0; i < n; ++i) {
            static_cast<float*>(outputs[0])[i] = 2 * static_cast<const float*>(inputs[0])[i];
        }
        return 0;
    }
    nvinfer1::IPluginV3*
    attachToContext(nvinfer1::IPluginResourceContext* resources) noexcept override {
        ++calls_;
        return resources == nullptr ? nullptr : clone();
    }
    const nvinfer1::PluginFieldCollection* getFieldsToSerialize() noexcept override {
        return &none_;
    }

private:
    int64_t calls_ = 0;
    nvinfer1::PluginFieldCollection none_{};
};

class TwiceCreator : public nvinfer1::IPluginCreatorV3One {
public:
    explicit TwiceCreator(std::string name = Twice::name) : name_(std::move(name)) {}
    nvinfer1::IPluginV3* createPlugin(const nvinfer1::AsciiChar*,
                                      const nvinfer1::PluginFieldCollection*,
                                      nvinfer1::TensorRTPhase) noexcept override {
        return new Twice;
    }
    const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return &fields_; }
    const nvinfer1::AsciiChar* getPluginName() const noexcept override { return name_.c_str(); }
    const nvinfer1::AsciiChar* getPluginVersion() const noexcept override { return "1"; }
    const nvinfer1::AsciiChar* getPluginNamespace() const noexcept override { return ""; }

private:
    std::string name_;
    nvinfer1::PluginFieldCollection fields_{};
};

} // namespace ingot::test
