// SPDX-License-Identifier: Apache-2.0
// Plugins of older generations. Ingot runs those that derive from IPluginV2DynamicExt; write new
// ones as IPluginV3. Included by NvInferRuntimePlugin.h.
#pragma once

#include "ingot/plugin_shapes.h"

namespace nvinfer1 {

static constexpr int32_t kPLUGIN_VERSION_PYTHON_BIT = 0x40;

/// In the upper byte of IPluginV2::getTensorRTVersion().
enum class PluginVersion : uint8_t {
    kV2 = 0,
    kV2_EXT = 1,
    kV2_IOEXT = 2,
    kV2_DYNAMICEXT = 3,
    kV2_DYNAMICEXT_PYTHON = kPLUGIN_VERSION_PYTHON_BIT | 3,
};

enum class PluginCreatorVersion : int32_t {
    kV1 = 0,
    kV1_PYTHON = kPLUGIN_VERSION_PYTHON_BIT,
};

namespace impl {
constexpr int32_t pluginVersion(PluginVersion version) noexcept {
    return static_cast<int32_t>((static_cast<uint32_t>(version) << 24) |
                                (static_cast<uint32_t>(NV_TENSORRT_VERSION) & 0xFFFFFFU));
}
} // namespace impl

/// Base of plugins of older generations. Not accepted by itself.
///
/// Lifetime: INetworkDefinition::addPluginV2() clones what it is given, which stays the
/// application's; clones are the library's, which calls destroy().
/// Thread safety: one thread at a time for each clone.
/// Errors: a method that returns another number than 0, or nullptr, fails the build or the run.
class IPluginV2 {
public:
    IPluginV2() = default;
    virtual ~IPluginV2() noexcept = default;

    virtual int32_t getTensorRTVersion() const noexcept { return NV_TENSORRT_VERSION; }
    virtual const AsciiChar* getPluginType() const noexcept = 0;
    virtual const AsciiChar* getPluginVersion() const noexcept = 0;
    virtual int32_t getNbOutputs() const noexcept = 0;
    virtual Dims getOutputDimensions(int32_t index, const Dims* inputs,
                                     int32_t nbInputDims) noexcept = 0;
    virtual bool supportsFormat(DataType type, PluginFormat format) const noexcept = 0;
    virtual void configureWithFormat(const Dims* inputDims, int32_t nbInputs,
                                     const Dims* outputDims, int32_t nbOutputs, DataType type,
                                     PluginFormat format, int32_t maxBatchSize) noexcept = 0;
    /// Returns 0 for success.
    virtual int32_t initialize() noexcept = 0;
    virtual void terminate() noexcept = 0;
    virtual size_t getWorkspaceSize(int32_t maxBatchSize) const noexcept = 0;
    virtual int32_t enqueue(int32_t batchSize, const void* const* inputs, void* const* outputs,
                            void* workspace, cudaStream_t stream) noexcept = 0;
    virtual size_t getSerializationSize() const noexcept = 0;
    virtual void serialize(void* buffer) const noexcept = 0;
    virtual void destroy() noexcept = 0;
    virtual IPluginV2* clone() const noexcept = 0;
    virtual void setPluginNamespace(const AsciiChar* pluginNamespace) noexcept = 0;
    virtual const AsciiChar* getPluginNamespace() const noexcept = 0;

protected:
    IPluginV2(const IPluginV2&) = default;
    IPluginV2(IPluginV2&&) = default;
    IPluginV2& operator=(const IPluginV2&) & = default;
    IPluginV2& operator=(IPluginV2&&) & = default;
};

/// Base of IPluginV2DynamicExt. Not accepted by itself.
class IPluginV2Ext : public IPluginV2 {
public:
    virtual DataType getOutputDataType(int32_t index, const DataType* inputTypes,
                                       int32_t nbInputs) const noexcept = 0;
    virtual bool isOutputBroadcastAcrossBatch(int32_t outputIndex, const bool* inputIsBroadcasted,
                                              int32_t nbInputs) const noexcept {
        static_cast<void>(outputIndex), static_cast<void>(inputIsBroadcasted);
        static_cast<void>(nbInputs);
        return false;
    }
    virtual bool canBroadcastInputAcrossBatch(int32_t inputIndex) const noexcept {
        static_cast<void>(inputIndex);
        return false;
    }
    virtual void configurePlugin(const Dims* inputDims, int32_t nbInputs, const Dims* outputDims,
                                 int32_t nbOutputs, const DataType* inputTypes,
                                 const DataType* outputTypes, const bool* inputIsBroadcast,
                                 const bool* outputIsBroadcast, PluginFormat floatFormat,
                                 int32_t maxBatchSize) noexcept = 0;
    /// Called for each context; the first two are nullptr.
    virtual void attachToContext(cudnnContext* cudnn, cublasContext* cublas,
                                 IGpuAllocator* allocator) noexcept {
        static_cast<void>(cudnn), static_cast<void>(cublas), static_cast<void>(allocator);
    }
    virtual void detachFromContext() noexcept {}
    IPluginV2Ext* clone() const noexcept override = 0;

    int32_t getTensorRTVersion() const noexcept override {
        return impl::pluginVersion(PluginVersion::kV2_EXT);
    }

protected:
    void configureWithFormat(const Dims*, int32_t, const Dims*, int32_t, DataType, PluginFormat,
                             int32_t) noexcept override {}
};

/// A plugin with formats per tensor and a fixed batch dimension. Declared so that programs compile;
/// not accepted.
class IPluginV2IOExt : public IPluginV2Ext {
public:
    virtual void configurePlugin(const PluginTensorDesc* in, int32_t nbInput,
                                 const PluginTensorDesc* out, int32_t nbOutput) noexcept = 0;
    virtual bool supportsFormatCombination(int32_t pos, const PluginTensorDesc* inOut,
                                           int32_t nbInputs, int32_t nbOutputs) const noexcept = 0;

    int32_t getTensorRTVersion() const noexcept override {
        return impl::pluginVersion(PluginVersion::kV2_IOEXT);
    }

private:
    void configurePlugin(const Dims*, int32_t, const Dims*, int32_t, const DataType*,
                         const DataType*, const bool*, const bool*, PluginFormat,
                         int32_t) noexcept final {}
    bool supportsFormat(DataType, PluginFormat) const noexcept final { return false; }
};

/// A plugin of the older generation for dynamic shapes.
class IPluginV2DynamicExt : public IPluginV2Ext {
public:
    static constexpr int32_t kFORMAT_COMBINATION_LIMIT = 100;

    IPluginV2DynamicExt* clone() const noexcept override = 0;
    /// \see IPluginV3OneBuild::getOutputShapes
    virtual DimsExprs getOutputDimensions(int32_t outputIndex, const DimsExprs* inputs,
                                          int32_t nbInputs, IExprBuilder& exprBuilder) noexcept = 0;
    /// \see IPluginV3OneBuild::supportsFormatCombination
    virtual bool supportsFormatCombination(int32_t pos, const PluginTensorDesc* inOut,
                                           int32_t nbInputs, int32_t nbOutputs) noexcept = 0;
    virtual void configurePlugin(const DynamicPluginTensorDesc* in, int32_t nbInputs,
                                 const DynamicPluginTensorDesc* out,
                                 int32_t nbOutputs) noexcept = 0;
    virtual size_t getWorkspaceSize(const PluginTensorDesc* inputs, int32_t nbInputs,
                                    const PluginTensorDesc* outputs,
                                    int32_t nbOutputs) const noexcept = 0;
    /// \see IPluginV3OneRuntime::enqueue
    virtual int32_t enqueue(const PluginTensorDesc* inputDesc, const PluginTensorDesc* outputDesc,
                            const void* const* inputs, void* const* outputs, void* workspace,
                            cudaStream_t stream) noexcept = 0;

    int32_t getTensorRTVersion() const noexcept override {
        return impl::pluginVersion(PluginVersion::kV2_DYNAMICEXT);
    }

private:
    Dims getOutputDimensions(int32_t, const Dims*, int32_t) noexcept final { return {-1, {}}; }
    bool supportsFormat(DataType, PluginFormat) const noexcept final { return false; }
    void configurePlugin(const Dims*, int32_t, const Dims*, int32_t, const DataType*,
                         const DataType*, const bool*, const bool*, PluginFormat,
                         int32_t) noexcept final {}
    size_t getWorkspaceSize(int32_t) const noexcept final { return 0; }
    int32_t enqueue(int32_t, const void* const*, void* const*, void*, cudaStream_t) noexcept final {
        return 1;
    }
    bool isOutputBroadcastAcrossBatch(int32_t, const bool*, int32_t) const noexcept final {
        return false;
    }
    bool canBroadcastInputAcrossBatch(int32_t) const noexcept final { return true; }
};

/// Makes IPluginV2 objects.
class IPluginCreator : public IPluginCreatorInterface {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override { return {"PLUGIN CREATOR_V1", 1, 0}; }
    virtual const AsciiChar* getPluginName() const noexcept = 0;
    virtual const AsciiChar* getPluginVersion() const noexcept = 0;
    virtual const PluginFieldCollection* getFieldNames() noexcept = 0;
    virtual IPluginV2* createPlugin(const AsciiChar* name,
                                    const PluginFieldCollection* fc) noexcept = 0;
    /// From what IPluginV2::serialize() wrote.
    virtual IPluginV2* deserializePlugin(const AsciiChar* name, const void* serialData,
                                         size_t serialLength) noexcept = 0;
    virtual void setPluginNamespace(const AsciiChar* pluginNamespace) noexcept = 0;
    virtual const AsciiChar* getPluginNamespace() const noexcept = 0;

    IPluginCreator() = default;
    ~IPluginCreator() override = default;

protected:
    IPluginCreator(const IPluginCreator&) = default;
    IPluginCreator(IPluginCreator&&) = default;
    IPluginCreator& operator=(const IPluginCreator&) & = default;
    IPluginCreator& operator=(IPluginCreator&&) & = default;
};

namespace v_1_0 {
using nvinfer1::IPluginCreator;
} // namespace v_1_0

} // namespace nvinfer1
