// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/old_plugin.h"

#include "base/error.h"

#include <string>
#include <vector>

namespace ingot::api {

using nvinfer1::DataType;
using nvinfer1::DimsExprs;
using nvinfer1::DynamicPluginTensorDesc;
using nvinfer1::IPluginV2;
using nvinfer1::IPluginV2DynamicExt;
using nvinfer1::IPluginV3;
using nvinfer1::PluginTensorDesc;

namespace {

std::vector<PluginTensorDesc> descs(const DynamicPluginTensorDesc* list, int32_t count) {
    std::vector<PluginTensorDesc> out;
    for (int32_t i = 0; i < count; ++i) {
        out.push_back(list[i].desc);
        out.back().dims = list[i].max;
    }
    return out;
}

class Adapter final : public IPluginV3,
                      public nvinfer1::IPluginV3OneCore,
                      public nvinfer1::IPluginV3OneBuild,
                      public nvinfer1::IPluginV3OneRuntime {
public:
    explicit Adapter(IPluginV2DynamicExt& plugin) : plugin_(plugin) {}
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;
    Adapter(Adapter&&) = delete;
    Adapter& operator=(Adapter&&) = delete;
    ~Adapter() noexcept override {
        if (attached_) {
            plugin_.detachFromContext();
            plugin_.terminate();
        }
        plugin_.destroy();
    }
    IPluginV2& plugin() { return plugin_; }

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
    IPluginV3* clone() noexcept override {
        IPluginV2DynamicExt* copy = plugin_.clone();
        return copy == nullptr ? nullptr : new (std::nothrow) Adapter(*copy);
    }

    const char* getPluginName() const noexcept override { return plugin_.getPluginType(); }
    const char* getPluginVersion() const noexcept override { return plugin_.getPluginVersion(); }
    const char* getPluginNamespace() const noexcept override {
        return plugin_.getPluginNamespace();
    }

    int32_t getNbOutputs() const noexcept override { return plugin_.getNbOutputs(); }
    int32_t configurePlugin(const DynamicPluginTensorDesc* in, int32_t in_count,
                            const DynamicPluginTensorDesc* out,
                            int32_t out_count) noexcept override {
        plugin_.configurePlugin(in, in_count, out, out_count);
        return 0;
    }
    int32_t getOutputDataTypes(DataType* out, int32_t out_count, const DataType* in,
                               int32_t in_count) const noexcept override {
        for (int32_t i = 0; i < out_count; ++i) {
            out[i] = plugin_.getOutputDataType(i, in, in_count);
        }
        return 0;
    }
    int32_t getOutputShapes(const DimsExprs* in, int32_t in_count, const DimsExprs*,
                            int32_t shape_count, DimsExprs* out, int32_t out_count,
                            nvinfer1::IExprBuilder& builder) noexcept override {
        for (int32_t i = 0; i < out_count; ++i) {
            out[i] = plugin_.getOutputDimensions(i, in, in_count, builder);
        }
        return shape_count;
    }
    bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc* all,
                                   int32_t in_count, int32_t out_count) noexcept override {
        try {
            std::vector<PluginTensorDesc> list = descs(all, in_count + out_count);
            return plugin_.supportsFormatCombination(pos, list.data(), in_count, out_count);
        } catch (const std::exception&) {
            return false;
        }
    }
    size_t getWorkspaceSize(const DynamicPluginTensorDesc* in, int32_t in_count,
                            const DynamicPluginTensorDesc* out,
                            int32_t out_count) const noexcept override {
        try {
            return plugin_.getWorkspaceSize(descs(in, in_count).data(), in_count,
                                            descs(out, out_count).data(), out_count);
        } catch (const std::exception&) {
            return SIZE_MAX; // the caller refuses it
        }
    }

    int32_t onShapeChange(const PluginTensorDesc* in, int32_t in_count, const PluginTensorDesc* out,
                          int32_t out_count) noexcept override {
        try {
            std::vector<DynamicPluginTensorDesc> all;
            for (int32_t i = 0; i < in_count + out_count; ++i) {
                const PluginTensorDesc& d = i < in_count ? in[i] : out[i - in_count];
                all.push_back({d, d.dims, d.dims, d.dims});
            }
            plugin_.configurePlugin(all.data(), in_count, all.data() + in_count, out_count);
            return 0;
        } catch (const std::exception&) {
            return 1;
        }
    }
    int32_t enqueue(const PluginTensorDesc* in, const PluginTensorDesc* out,
                    const void* const* inputs, void* const* outputs, void* workspace,
                    cudaStream_t stream) noexcept override {
        return plugin_.enqueue(in, out, inputs, outputs, workspace, stream);
    }
    IPluginV3* attachToContext(nvinfer1::IPluginResourceContext* context) noexcept override {
        auto* copy = static_cast<Adapter*>(clone());
        if (copy == nullptr) {
            return nullptr;
        }
        if (copy->plugin_.initialize() != 0) {
            delete copy;
            return nullptr;
        }
        copy->attached_ = true;
        copy->plugin_.attachToContext(nullptr, nullptr, context->getGpuAllocator());
        return copy;
    }
    const nvinfer1::PluginFieldCollection* getFieldsToSerialize() noexcept override {
        try {
            bytes_.resize(plugin_.getSerializationSize());
        } catch (const std::exception&) {
            return nullptr;
        }
        plugin_.serialize(bytes_.data());
        field_ = {"data", bytes_.data(), nvinfer1::PluginFieldType::kUNKNOWN,
                  static_cast<int32_t>(bytes_.size())};
        fields_ = {1, &field_};
        return &fields_;
    }

private:
    IPluginV2DynamicExt& plugin_;
    bool attached_ = false;
    std::vector<char> bytes_;
    nvinfer1::PluginField field_;
    nvinfer1::PluginFieldCollection fields_;
};

} // namespace

IPluginV2DynamicExt& dynamic_plugin(IPluginV2& plugin) {
    constexpr uint32_t python = nvinfer1::kPLUGIN_VERSION_PYTHON_BIT;
    uint32_t kind = (static_cast<uint32_t>(plugin.getTensorRTVersion()) >> 24U) & ~python;
    require(kind == static_cast<uint32_t>(nvinfer1::PluginVersion::kV2_DYNAMICEXT),
            ErrorCode::Unsupported, "plugin '", plugin.getPluginType(),
            "' is no IPluginV2DynamicExt, the only IPluginV2 that is supported; derive it from "
            "IPluginV3");
    return static_cast<IPluginV2DynamicExt&>(plugin);
}

std::unique_ptr<IPluginV3> adapt_plugin(IPluginV2DynamicExt& plugin) {
    struct Destroy {
        void operator()(IPluginV2DynamicExt* p) const { p->destroy(); }
    };
    std::unique_ptr<IPluginV2DynamicExt, Destroy> owner(&plugin);
    auto adapter = std::make_unique<Adapter>(plugin);
    static_cast<void>(owner.release());
    return adapter;
}

IPluginV2& adapted_plugin(IPluginV3& plugin) {
    return static_cast<Adapter&>(plugin).plugin();
}

} // namespace ingot::api
