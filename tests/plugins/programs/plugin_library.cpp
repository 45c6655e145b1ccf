// SPDX-License-Identifier: Apache-2.0
// A library of one plugin, as users write them: Offset adds the attribute `by`. The first of its
// two tactics fails, so that no build can choose it. SELF_REGISTERING: its creator registers itself
// when the library is opened; else getCreators() returns it.
#include "NvInfer.h"

#include <memory>
#include <vector>

namespace {

using namespace nvinfer1;

class Offset final : public IPluginV3,
                     public IPluginV3OneCore,
                     public IPluginV3OneBuild,
                     public IPluginV3OneRuntime {
public:
    explicit Offset(float by) : by_(by) {}
    Offset(const Offset&) = default;

    IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override {
        switch (type) {
        case PluginCapabilityType::kCORE:
            return static_cast<IPluginV3OneCore*>(this);
        case PluginCapabilityType::kBUILD:
            return static_cast<IPluginV3OneBuild*>(this);
        case PluginCapabilityType::kRUNTIME:
            return static_cast<IPluginV3OneRuntime*>(this);
        }
        return nullptr;
    }
    IPluginV3* clone() noexcept override { return std::make_unique<Offset>(*this).release(); }
    const char* getPluginName() const noexcept override { return "Offset"; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    const char* getPluginNamespace() const noexcept override { return ""; }

    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t configurePlugin(const DynamicPluginTensorDesc*, int32_t, const DynamicPluginTensorDesc*,
                            int32_t) noexcept override {
        return 0;
    }
    int32_t getOutputDataTypes(DataType* out, int32_t, const DataType* in,
                               int32_t) const noexcept override {
        out[0] = in[0];
        return 0;
    }
    int32_t getOutputShapes(const DimsExprs* in, int32_t, const DimsExprs*, int32_t, DimsExprs* out,
                            int32_t, IExprBuilder&) noexcept override {
        out[0] = in[0];
        return 0;
    }
    bool supportsFormatCombination(int32_t at, const DynamicPluginTensorDesc* all, int32_t,
                                   int32_t) noexcept override {
        return all[at].desc.type == DataType::kFLOAT;
    }
    int32_t getNbTactics() noexcept override { return 2; }
    int32_t getValidTactics(int32_t* tactics, int32_t) noexcept override {
        tactics[0] = fails;
        tactics[1] = works;
        return 0;
    }
    const char* getTimingCacheID() noexcept override { return "offset"; }

    int32_t setTactic(int32_t tactic) noexcept override {
        tactic_ = tactic;
        return 0;
    }
    int32_t onShapeChange(const PluginTensorDesc*, int32_t, const PluginTensorDesc*,
                          int32_t) noexcept override {
        return 0;
    }
    int32_t enqueue(const PluginTensorDesc* in, const PluginTensorDesc*, const void* const* inputs,
                    void* const* outputs, void*, cudaStream_t) noexcept override {
        int64_t count = 1;
        for (int32_t i = 0; i < in[0].dims.nbDims; ++i) {
            count *= in[0].dims.d[i];
        }
        for (int64_t i = 0; i < count; ++i) {
            static_cast<float*>(outputs[0])[i] = static_cast<const float*>(inputs[0])[i] + by_;
        }
        return tactic_ == works ? 0 : 1;
    }
    IPluginV3* attachToContext(IPluginResourceContext*) noexcept override { return clone(); }
    const PluginFieldCollection* getFieldsToSerialize() noexcept override {
        fields_.assign(1, PluginField("by", &by_, PluginFieldType::kFLOAT32, 1));
        all_ = {1, fields_.data()};
        return &all_;
    }

private:
    static constexpr int32_t fails = 1;
    static constexpr int32_t works = 2;
    float by_;
    int32_t tactic_ = 0;
    std::vector<PluginField> fields_;
    PluginFieldCollection all_{};
};

class OffsetCreator final : public IPluginCreatorV3One {
public:
    IPluginV3* createPlugin(const char*, const PluginFieldCollection* fc,
                            TensorRTPhase) noexcept override {
        return fc->nbFields == 1
                   ? std::make_unique<Offset>(*static_cast<const float*>(fc->fields[0].data))
                         .release()
                   : nullptr;
    }
    const PluginFieldCollection* getFieldNames() noexcept override { return &names_; }
    const char* getPluginName() const noexcept override { return "Offset"; }
    const char* getPluginVersion() const noexcept override { return "1"; }
    const char* getPluginNamespace() const noexcept override { return ""; }

private:
    PluginField field_{"by", nullptr, PluginFieldType::kFLOAT32, 1};
    PluginFieldCollection names_{1, &field_};
};

#ifdef SELF_REGISTERING
REGISTER_TENSORRT_PLUGIN(OffsetCreator);
#endif

} // namespace

#ifndef SELF_REGISTERING
static ILoggerFinder* logger_finder = nullptr;

extern "C" void setLoggerFinder(ILoggerFinder* finder) {
    logger_finder = finder;
}

extern "C" IPluginCreatorInterface* const* getCreators(int32_t& count) {
    static OffsetCreator creator;
    static IPluginCreatorInterface* const all[] = {&creator};
    count = logger_finder == nullptr ? 0 : 1; // it comes first
    return all;
}
#endif
