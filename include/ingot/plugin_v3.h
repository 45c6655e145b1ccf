// SPDX-License-Identifier: Apache-2.0
// The three parts of an IPluginV3, and its creator. Included by NvInferRuntimePlugin.h.
#pragma once

#include "ingot/plugin_shapes.h"

namespace nvinfer1 {

/// The identity of a plugin. The strings equal its creator's, and are valid as long as the object.
class IPluginV3OneCore : public IPluginCapability {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override { return {"PLUGIN_V3ONE_CORE", 1, 0}; }
    virtual const AsciiChar* getPluginName() const noexcept = 0;
    virtual const AsciiChar* getPluginVersion() const noexcept = 0;
    virtual const AsciiChar* getPluginNamespace() const noexcept = 0;
};

/// How a plugin is built into an engine. Methods that return int32_t return 0 for success; another
/// number fails the build and is reported. All tensors are dense and row major
/// (TensorFormat::kLINEAR), with the types that the network gives them: no others are tried. Shape
/// inputs stand in getOutputShapes() alone.
class IPluginV3OneBuild : public IPluginCapability {
public:
    static constexpr int32_t kDEFAULT_FORMAT_COMBINATION_LIMIT = 100;

    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"PLUGIN_V3ONE_BUILD", 1, 0};
    }
    /// Formats, types and the shapes of one profile: -1 for sizes that are not known. Called for
    /// each profile, before getWorkspaceSize() and IPluginV3OneRuntime::getFieldsToSerialize().
    virtual int32_t configurePlugin(const DynamicPluginTensorDesc* in, int32_t nbInputs,
                                    const DynamicPluginTensorDesc* out,
                                    int32_t nbOutputs) noexcept = 0;
    /// Fills outputTypes.
    virtual int32_t getOutputDataTypes(DataType* outputTypes, int32_t nbOutputs,
                                       const DataType* inputTypes,
                                       int32_t nbInputs) const noexcept = 0;
    /// Fills `outputs` with expressions of the sizes of inputs and the values of shape inputs,
    /// which stand in shapeInputs as the sizes of a shape.
    virtual int32_t getOutputShapes(const DimsExprs* inputs, int32_t nbInputs,
                                    const DimsExprs* shapeInputs, int32_t nbShapeInputs,
                                    DimsExprs* outputs, int32_t nbOutputs,
                                    IExprBuilder& exprBuilder) noexcept = 0;
    /// Whether type and format of tensor `pos` will do, given those before it. Tensors are inputs,
    /// then outputs. False refuses the layer.
    virtual bool supportsFormatCombination(int32_t pos, const DynamicPluginTensorDesc* inOut,
                                           int32_t nbInputs, int32_t nbOutputs) noexcept = 0;
    /// At least 1.
    virtual int32_t getNbOutputs() const noexcept = 0;
    /// Bytes of scratch memory for shapes up to these. While an engine runs it is asked with min,
    /// opt and max equal to the shapes that occur, after configurePlugin() with these.
    virtual size_t getWorkspaceSize(const DynamicPluginTensorDesc* inputs, int32_t nbInputs,
                                    const DynamicPluginTensorDesc* outputs,
                                    int32_t nbOutputs) const noexcept {
        static_cast<void>(inputs), static_cast<void>(nbInputs);
        static_cast<void>(outputs), static_cast<void>(nbOutputs);
        return 0;
    }
    /// Fills `tactics` with the plugin's own numbers of implementations, each once, not 0. Where
    /// there are several, the build runs a clone with each, attached and with zeros as inputs of
    /// the first profile's expected shapes, on the device of IBuilderConfig (ingot::setDevice): on
    /// the CPU where there is no GPU, with host addresses and no stream. The engine holds the
    /// fastest, and setTactic() gets it. One whose methods return an error is left out; where none
    /// is left, or no size is known, the engine holds the first.
    virtual int32_t getValidTactics(int32_t* tactics, int32_t nbTactics) noexcept {
        static_cast<void>(tactics), static_cast<void>(nbTactics);
        return 0;
    }
    virtual int32_t getNbTactics() noexcept { return 0; }
    /// Names what the tactics compute, for the timing cache, beside the plugin's name, the types
    /// and sizes of its inputs and the list of tactics. nullptr: their times are not kept.
    virtual const char* getTimingCacheID() noexcept { return nullptr; }
    /// How many combinations may be tried, at least 1: there is one.
    virtual int32_t getFormatCombinationLimit() noexcept {
        return kDEFAULT_FORMAT_COMBINATION_LIMIT;
    }
    /// Never asked.
    virtual const char* getMetadataString() noexcept { return nullptr; }
};

/// An IPluginV3OneBuild whose outputs may lie where inputs lie, with
/// PreviewFeature::kALIASED_PLUGIN_IO_10_03 or without. The input is copied before the plugin runs,
/// so that others that read it see what it was; both addresses are those of the copy.
class IPluginV3OneBuildV2 : public IPluginV3OneBuild {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"PLUGIN_V3ONE_BUILD", 2, 0};
    }
    /// The input that this output updates in place, of the same type and shape; -1 for none. An
    /// input serves one output.
    virtual int32_t getAliasedInput(int32_t outputIndex) noexcept {
        static_cast<void>(outputIndex);
        return -1;
    }
};

/// How a plugin runs. Methods that return int32_t return 0 for success; another number fails the
/// run and is reported. Sizes that the plugin finds out itself are -1 in descriptions; memory for
/// such outputs is as large as was declared. Nothing runs where all outputs are empty.
class IPluginV3OneRuntime : public IPluginCapability {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"PLUGIN_V3ONE_RUNTIME", 1, 0};
    }
    /// Which implementation enqueue() is to use; 0 when the plugin named none.
    virtual int32_t setTactic(int32_t tactic) noexcept {
        static_cast<void>(tactic);
        return 0;
    }
    /// Before the first run with these shapes, types and formats.
    virtual int32_t onShapeChange(const PluginTensorDesc* in, int32_t nbInputs,
                                  const PluginTensorDesc* out, int32_t nbOutputs) noexcept = 0;
    /// Queues the work on `stream`, a stream of the context, which is ordered with the caller's.
    /// With CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE, or where the caller captures its stream, the
    /// work is captured too. On the CPU backend addresses are host addresses, the stream is
    /// nullptr, and the work is done when the call returns. \param workspace as many bytes as
    /// getWorkspaceSize() asked for.
    virtual int32_t enqueue(const PluginTensorDesc* inputDesc, const PluginTensorDesc* outputDesc,
                            const void* const* inputs, void* const* outputs, void* workspace,
                            cudaStream_t stream) noexcept = 0;
    /// A clone of the whole plugin for one layer of one context, before its first run; the library
    /// deletes it. nullptr on an error.
    virtual IPluginV3* attachToContext(IPluginResourceContext* context) noexcept = 0;
    /// The fields from which the creator makes this plugin again, copied into the engine; valid
    /// until the next call. Called while building.
    virtual const PluginFieldCollection* getFieldsToSerialize() noexcept = 0;
};

/// Makes IPluginV3 objects, for a network and for engines that are loaded.
/// Thread safety: createPlugin() from any thread.
class IPluginCreatorV3One : public IPluginCreatorInterface {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"PLUGIN CREATOR_V3ONE", 1, 0};
    }
    /// A plugin ready for use; nullptr on an error. The caller deletes it; the library does so with
    /// those it asked for: for nodes of a model that is parsed (kBUILD) and for engines that are
    /// loaded (kRUNTIME, one for all layers of equal fields).
    virtual IPluginV3* createPlugin(const AsciiChar* name, const PluginFieldCollection* fc,
                                    TensorRTPhase phase) noexcept = 0;
    /// The fields that createPlugin() understands in the build phase. The parser hands on those
    /// attributes that are listed, in the listed types; all of them when the list is empty.
    virtual const PluginFieldCollection* getFieldNames() noexcept = 0;
    virtual const AsciiChar* getPluginName() const noexcept = 0;
    virtual const AsciiChar* getPluginVersion() const noexcept = 0;
    virtual const AsciiChar* getPluginNamespace() const noexcept = 0;

    IPluginCreatorV3One() = default;
    ~IPluginCreatorV3One() override = default;

protected:
    IPluginCreatorV3One(const IPluginCreatorV3One&) = default;
    IPluginCreatorV3One(IPluginCreatorV3One&&) = default;
    IPluginCreatorV3One& operator=(const IPluginCreatorV3One&) & = default;
    IPluginCreatorV3One& operator=(IPluginCreatorV3One&&) & = default;
};

namespace v_1_0 {
using nvinfer1::IPluginCreatorV3One;
using nvinfer1::IPluginV3OneBuild;
using nvinfer1::IPluginV3OneCore;
using nvinfer1::IPluginV3OneRuntime;
} // namespace v_1_0
namespace v_2_0 {
using IPluginV3OneBuild = nvinfer1::IPluginV3OneBuildV2;
} // namespace v_2_0

} // namespace nvinfer1
