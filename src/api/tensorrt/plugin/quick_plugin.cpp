// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/quick_plugin.h"

#include "base/error.h"
#include "impl/NvInferPythonPlugin.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot::api {

namespace nv = nvinfer1;

using nv::DynamicPluginTensorDesc;
using nv::PluginTensorDesc;

namespace {

constexpr std::string_view quick_core = "PLUGIN_V3QUICK_CORE";
constexpr std::string_view quick_build = "PLUGIN_V3QUICK_BUILD";
constexpr std::string_view quick_runtime = "PLUGIN_V3QUICK_RUNTIME";
constexpr std::string_view quick_creator = "PLUGIN CREATOR_V3QUICK";
// Its address distinguishes an adapter's part from an application's.
constexpr char adapted_build[] = "PLUGIN_V3ONE_BUILD";

std::string_view kind_of(const nv::IVersionedInterface& i) {
    const char* kind = i.getInterfaceInfo().kind;
    return kind == nullptr ? "" : kind;
}

bool is_quick(nv::IPluginV3& plugin) {
    nv::IPluginCapability* core = plugin.getCapabilityInterface(nv::PluginCapabilityType::kCORE);
    return core != nullptr && kind_of(*core) == quick_core;
}

std::vector<nv::Dims> strides_of(const PluginTensorDesc* list, int32_t count) {
    std::vector<nv::Dims> all;
    for (int32_t i = 0; i < count; ++i) {
        nv::Dims strides = list[i].dims;
        int64_t stride = 1;
        for (int32_t d = strides.nbDims; d-- > 0;) {
            const int64_t size = std::exchange(strides.d[d], stride);
            stride = size < 0 || stride < 0 ? -1 : stride * size;
        }
        all.push_back(strides);
    }
    return all;
}

/// The build part of an adapter, which also receives the ranks of inputs.
class AdaptedBuild : public nv::IPluginV3OneBuildV2 {
public:
    nv::InterfaceInfo getInterfaceInfo() const noexcept override { return {adapted_build, 2, 0}; }
    void set_ranks(std::vector<int32_t> ranks) { ranks_ = std::move(ranks); }

protected:
    const int32_t* ranks() const { return ranks_.data(); }

private:
    std::vector<int32_t> ranks_; // of the inputs
};

class QuickAdapter final : public nv::IPluginV3,
                           public nv::IPluginV3OneCore,
                           public AdaptedBuild,
                           public nv::IPluginV3OneRuntime {
public:
    explicit QuickAdapter(std::unique_ptr<nv::IPluginV3> plugin) : plugin_(std::move(plugin)) {
        core_ = part<nv::IPluginV3QuickCore>(nv::PluginCapabilityType::kCORE, quick_core);
        build_ = part<nv::IPluginV3QuickBuild>(nv::PluginCapabilityType::kBUILD, quick_build);
        runtime_ =
            part<nv::IPluginV3QuickRuntime>(nv::PluginCapabilityType::kRUNTIME, quick_runtime);
        require(
            runtime_ != nullptr, ErrorCode::Unsupported, "plugin '", core_->getPluginName(),
            "' has no part of kind ", quick_runtime,
            ": kernels that are compiled ahead are not supported; give the kernel's text to "
            "ingot::addCudaSourceLayer(), or define how the plugin runs (tensorrt.plugin.impl)");
    }
    nv::IPluginV3& plugin() { return *plugin_; }

    nv::IPluginCapability* getCapabilityInterface(nv::PluginCapabilityType type) noexcept override {
        switch (type) {
        case nv::PluginCapabilityType::kCORE:
            return static_cast<nv::IPluginV3OneCore*>(this);
        case nv::PluginCapabilityType::kBUILD:
            return build_ == nullptr ? nullptr : static_cast<AdaptedBuild*>(this);
        case nv::PluginCapabilityType::kRUNTIME:
            return static_cast<nv::IPluginV3OneRuntime*>(this);
        }
        return nullptr;
    }
    nv::IPluginV3* clone() noexcept override {
        try {
            std::unique_ptr<nv::IPluginV3> copy(plugin_->clone());
            return copy == nullptr ? nullptr : new QuickAdapter(std::move(copy));
        } catch (const std::exception&) {
            return nullptr;
        }
    }

    const char* getPluginName() const noexcept override { return core_->getPluginName(); }
    const char* getPluginVersion() const noexcept override { return core_->getPluginVersion(); }
    const char* getPluginNamespace() const noexcept override { return core_->getPluginNamespace(); }

    int32_t getNbOutputs() const noexcept override { return build_->getNbOutputs(); }
    int32_t configurePlugin(const DynamicPluginTensorDesc* in, int32_t in_count,
                            const DynamicPluginTensorDesc* out,
                            int32_t out_count) noexcept override {
        return build_->configurePlugin(in, in_count, out, out_count);
    }
    int32_t getOutputDataTypes(nv::DataType* out, int32_t out_count, const nv::DataType* in,
                               int32_t in_count) const noexcept override {
        return build_->getOutputDataTypes(out, out_count, in, ranks(), in_count);
    }
    int32_t getOutputShapes(const nv::DimsExprs* in, int32_t in_count, const nv::DimsExprs* shape,
                            int32_t shape_count, nv::DimsExprs* out, int32_t out_count,
                            nv::IExprBuilder& builder) noexcept override {
        return build_->getOutputShapes(in, in_count, shape, shape_count, out, out_count, builder);
    }
    bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc* all,
                                   int32_t in_count, int32_t out_count) noexcept override {
        try {
            const auto width = static_cast<size_t>(in_count) + static_cast<size_t>(out_count);
            if (pos == 0) {
                const int32_t count =
                    build_->getNbSupportedFormatCombinations(all, in_count, out_count);
                combinations_.assign(width * static_cast<size_t>(std::max(count, 0)), {});
                if (count <= 0 || build_->getSupportedFormatCombinations(
                                      all, in_count, out_count, combinations_.data(), count) != 0) {
                    combinations_.clear();
                }
            }
            for (size_t at = 0; at + width <= combinations_.size(); at += width) {
                if (fits(combinations_.data() + at, all, pos)) {
                    return true;
                }
            }
            return false;
        } catch (const std::exception&) {
            return false;
        }
    }
    int32_t getAliasedInput(int32_t output) noexcept override {
        return build_->getAliasedInput(output);
    }
    int32_t getNbTactics() noexcept override { return build_->getNbTactics(); }
    int32_t getValidTactics(int32_t* tactics, int32_t count) noexcept override {
        return build_->getValidTactics(tactics, count);
    }
    const char* getTimingCacheID() noexcept override { return build_->getTimingCacheID(); }

    int32_t setTactic(int32_t tactic) noexcept override { return runtime_->setTactic(tactic); }
    int32_t onShapeChange(const PluginTensorDesc* in, int32_t in_count, const PluginTensorDesc* out,
                          int32_t out_count) noexcept override {
        try {
            in_strides_ = strides_of(in, in_count);
            out_strides_ = strides_of(out, out_count);
            return 0;
        } catch (const std::exception&) {
            return 1;
        }
    }
    int32_t enqueue(const PluginTensorDesc* in, const PluginTensorDesc* out,
                    const void* const* inputs, void* const* outputs, void*,
                    cudaStream_t stream) noexcept override {
        return runtime_->enqueue(in, out, inputs, outputs, in_strides_.data(), out_strides_.data(),
                                 static_cast<int32_t>(in_strides_.size()),
                                 static_cast<int32_t>(out_strides_.size()), stream);
    }
    nv::IPluginV3* attachToContext(nv::IPluginResourceContext*) noexcept override {
        return clone();
    }
    const nv::PluginFieldCollection* getFieldsToSerialize() noexcept override {
        return runtime_->getFieldsToSerialize();
    }

private:
    /// Null where the plugin lacks this part.
    template <class Part>
    Part* part(nv::PluginCapabilityType type, std::string_view kind) {
        nv::IPluginCapability* found = plugin_->getCapabilityInterface(type);
        return found == nullptr || kind_of(*found) != kind ? nullptr : static_cast<Part*>(found);
    }
    static bool fits(const PluginTensorDesc* combination, const DynamicPluginTensorDesc* all,
                     int32_t last) {
        for (int32_t i = 0; i <= last; ++i) {
            if (combination[i].type != all[i].desc.type ||
                combination[i].format != all[i].desc.format) {
                return false;
            }
        }
        return true;
    }

    std::unique_ptr<nv::IPluginV3> plugin_;
    nv::IPluginV3QuickCore* core_ = nullptr;
    nv::IPluginV3QuickBuild* build_ = nullptr; // may be null at run time
    nv::IPluginV3QuickRuntime* runtime_ = nullptr;
    std::vector<PluginTensorDesc> combinations_; // the latest query
    std::vector<nv::Dims> in_strides_;
    std::vector<nv::Dims> out_strides_;
};

/// The build part of an adapter; null for other parts.
AdaptedBuild* find_adapted(nv::IPluginCapability* part) {
    // NOLINTNEXTLINE(bugprone-string-compare): addresses are compared.
    const bool is_ours = part != nullptr && part->getInterfaceInfo().kind == adapted_build;
    return is_ours ? static_cast<AdaptedBuild*>(part) : nullptr;
}

} // namespace

std::unique_ptr<nv::IPluginV3> runnable_plugin(std::unique_ptr<nv::IPluginV3> plugin) {
    return plugin != nullptr && is_quick(*plugin)
               ? std::make_unique<QuickAdapter>(std::move(plugin))
               : std::move(plugin);
}

nv::IPluginV3& origin_of(nv::IPluginV3& plugin) {
    AdaptedBuild* build =
        find_adapted(plugin.getCapabilityInterface(nv::PluginCapabilityType::kBUILD));
    return build == nullptr ? plugin : static_cast<QuickAdapter*>(build)->plugin();
}

void tell_ranks(const nv::IPluginV3OneBuild& build, std::span<const Type> in) {
    if (AdaptedBuild* adapted = find_adapted(&const_cast<nv::IPluginV3OneBuild&>(build))) {
        std::vector<int32_t> ranks;
        for (const Type& t : in) {
            ranks.push_back(static_cast<int32_t>(t.rank()));
        }
        adapted->set_ranks(std::move(ranks));
    }
}

std::unique_ptr<nv::IPluginV3> create_plugin(nv::IPluginCreatorInterface& creator, const char* name,
                                             const nv::PluginFieldCollection& fields,
                                             nv::TensorRTPhase phase) {
    if (kind_of(creator) != quick_creator) {
        auto& one = static_cast<nv::IPluginCreatorV3One&>(creator);
        return runnable_plugin(
            std::unique_ptr<nv::IPluginV3>(one.createPlugin(name, &fields, phase)));
    }
    auto& quick = static_cast<nv::IPluginCreatorV3Quick&>(creator);
    return runnable_plugin(std::unique_ptr<nv::IPluginV3>(
        quick.createPlugin(quick.getPluginName(), quick.getPluginNamespace(), &fields, phase,
                           nv::QuickPluginCreationRequest::kSTRICT_JIT)));
}

const nv::PluginFieldCollection* field_names(nv::IPluginCreatorInterface& creator) {
    return kind_of(creator) == quick_creator
               ? static_cast<nv::IPluginCreatorV3Quick&>(creator).getFieldNames()
               : static_cast<nv::IPluginCreatorV3One&>(creator).getFieldNames();
}

} // namespace ingot::api
