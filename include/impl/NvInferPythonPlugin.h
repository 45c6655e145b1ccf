// SPDX-License-Identifier: Apache-2.0
// Plugins as the Python module tensorrt.plugin makes them. Programs in C++ write IPluginV3 with the
// parts of NvInferRuntimePlugin.h. Kernels compiled ahead (the AOT half of TensorRT's header) are
// left out: ingot::addCudaSourceLayer() takes a kernel's text, which fits every GPU.
#pragma once

#include "NvInfer.h"

namespace nvinfer1 {

/// Which kind of a plugin is asked for. Ingot has one kind: those that run by enqueue().
enum class QuickPluginCreationRequest : int32_t {
    kUNKNOWN = 0,
    kPREFER_JIT = 1,
    kPREFER_AOT = 2,
    kSTRICT_JIT = 3,
    kSTRICT_AOT = 4, ///< A creator that has no such plugin gives nullptr
};

/// Name, version and namespace of a plugin.
class IPluginV3QuickCore : public IPluginCapability {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"PLUGIN_V3QUICK_CORE", 1, 0};
    }
    virtual const AsciiChar* getPluginName() const noexcept = 0;
    virtual const AsciiChar* getPluginVersion() const noexcept = 0;
    virtual const AsciiChar* getPluginNamespace() const noexcept = 0;
};

/// How a plugin stands in a network. Methods that return int32_t return 0 for success.
class IPluginV3QuickBuild : public IPluginCapability {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"PLUGIN_V3QUICK_BUILD", 1, 0};
    }
    /// Writes nbOutputs types for inputs of these types and numbers of dimensions.
    virtual int32_t getOutputDataTypes(DataType* outputTypes, int32_t nbOutputs,
                                       const DataType* inputTypes, const int32_t* inputRanks,
                                       int32_t nbInputs) const noexcept = 0;
    /// \see IPluginV3OneBuild::getOutputShapes
    virtual int32_t getOutputShapes(const DimsExprs* inputs, int32_t nbInputs,
                                    const DimsExprs* shapeInputs, int32_t nbShapeInputs,
                                    DimsExprs* outputs, int32_t nbOutputs,
                                    IExprBuilder& exprBuilder) noexcept = 0;
    /// \see IPluginV3OneBuild::configurePlugin
    virtual int32_t configurePlugin(const DynamicPluginTensorDesc* in, int32_t nbInputs,
                                    const DynamicPluginTensorDesc* out,
                                    int32_t nbOutputs) noexcept = 0;
    /// How many combinations of types and formats it runs on.
    virtual int32_t getNbSupportedFormatCombinations(const DynamicPluginTensorDesc* inOut,
                                                     int32_t nbInputs,
                                                     int32_t nbOutputs) noexcept = 0;
    /// Writes them: nbInputs + nbOutputs descriptions for each, of which type and format count. One
    /// has to be that of the network, dense and row major.
    virtual int32_t getSupportedFormatCombinations(const DynamicPluginTensorDesc* inOut,
                                                   int32_t nbInputs, int32_t nbOutputs,
                                                   PluginTensorDesc* supportedCombinations,
                                                   int32_t nbFormatCombinations) noexcept = 0;
    virtual int32_t getNbOutputs() const noexcept = 0;
    /// \see IPluginV3OneBuildV2::getAliasedInput
    virtual int32_t getAliasedInput(int32_t outputIndex) noexcept {
        static_cast<void>(outputIndex);
        return -1;
    }
    /// \see IPluginV3OneBuild::getValidTactics
    virtual int32_t getValidTactics(int32_t* tactics, int32_t nbTactics) noexcept {
        static_cast<void>(tactics), static_cast<void>(nbTactics);
        return 0;
    }
    virtual int32_t getNbTactics() noexcept { return 0; }
    /// \see IPluginV3OneBuild::getTimingCacheID
    virtual const char* getTimingCacheID() noexcept { return nullptr; }
    /// Never asked.
    virtual const char* getMetadataString() noexcept { return nullptr; }
};

/// How a plugin runs.
class IPluginV3QuickRuntime : public IPluginCapability {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"PLUGIN_V3QUICK_RUNTIME", 1, 0};
    }
    /// \see IPluginV3OneRuntime::setTactic
    virtual int32_t setTactic(int32_t tactic) noexcept {
        static_cast<void>(tactic);
        return 0;
    }
    /// As IPluginV3OneRuntime::enqueue(), without a workspace. Strides are in elements.
    virtual int32_t enqueue(const PluginTensorDesc* inputDesc, const PluginTensorDesc* outputDesc,
                            const void* const* inputs, void* const* outputs,
                            const Dims* inputStrides, const Dims* outputStrides, int32_t nbInputs,
                            int32_t nbOutputs, cudaStream_t stream) noexcept = 0;
    /// \see IPluginV3OneRuntime::getFieldsToSerialize
    virtual const PluginFieldCollection* getFieldsToSerialize() noexcept = 0;
};

/// Makes such plugins. Thread safety: createPlugin() from any thread.
class IPluginCreatorV3Quick : public IPluginCreatorInterface {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"PLUGIN CREATOR_V3QUICK", 1, 0};
    }
    /// \see IPluginCreatorV3One::createPlugin
    virtual IPluginV3* createPlugin(const AsciiChar* name, const AsciiChar* nspace,
                                    const PluginFieldCollection* fc, TensorRTPhase phase,
                                    QuickPluginCreationRequest request) noexcept = 0;
    /// \see IPluginCreatorV3One::getFieldNames
    virtual const PluginFieldCollection* getFieldNames() noexcept = 0;
    virtual const AsciiChar* getPluginName() const noexcept = 0;
    virtual const AsciiChar* getPluginVersion() const noexcept = 0;
    virtual const AsciiChar* getPluginNamespace() const noexcept = 0;

    IPluginCreatorV3Quick() = default;
    ~IPluginCreatorV3Quick() override = default;

protected:
    IPluginCreatorV3Quick(const IPluginCreatorV3Quick&) = default;
    IPluginCreatorV3Quick(IPluginCreatorV3Quick&&) = default;
    IPluginCreatorV3Quick& operator=(const IPluginCreatorV3Quick&) & = default;
    IPluginCreatorV3Quick& operator=(IPluginCreatorV3Quick&&) & = default;
};

namespace v_1_0 {
using nvinfer1::IPluginCreatorV3Quick;
using nvinfer1::IPluginV3QuickBuild;
using nvinfer1::IPluginV3QuickCore;
using nvinfer1::IPluginV3QuickRuntime;
} // namespace v_1_0

} // namespace nvinfer1
