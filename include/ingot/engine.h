// SPDX-License-Identifier: Apache-2.0
// ICudaEngine and what is made from it: configurations, runtime cache, inspector. Included by
// NvInferRuntime.h.
#pragma once

#include "ingot/runtime_types.h"

namespace nvinfer1 {

/// How ICudaEngine::serializeWithConfig() writes. Made by createSerializationConfig(); the caller
/// deletes it. Used by one thread at a time.
class ISerializationConfig : public INoCopy {
public:
    virtual ~ISerializationConfig() noexcept = default;

    /// Replaces all flags. Returns false for bits that are no flag. Default: kINCLUDE_REFIT set
    /// where the engine can be refitted, and kEXCLUDE_WEIGHTS where its weights are missing.
    virtual bool setFlags(SerializationFlags serializationFlags) noexcept = 0;
    virtual SerializationFlags getFlags() const noexcept = 0;
    virtual bool clearFlag(SerializationFlag serializationFlag) noexcept = 0;
    virtual bool setFlag(SerializationFlag serializationFlag) noexcept = 0;
    virtual bool getFlag(SerializationFlag serializationFlag) const noexcept = 0;
};

/// Compiled kernels that contexts share, in memory. Made by IRuntimeConfig::createRuntimeCache();
/// the caller deletes it; contexts that use it keep its content alive.
///
/// Thread safety: all methods; contexts of several engines and threads may share one cache.
class IRuntimeCache : public INoCopy {
public:
    virtual ~IRuntimeCache() noexcept = default;

    /// The kernels compiled so far, for a file. The caller deletes the result.
    virtual IHostMemory* serialize() const noexcept = 0;
    /// Adds what serialize() wrote. Returns false, and leaves the cache as it was, for bytes that
    /// are damaged or stem from another release or GPU.
    virtual bool deserialize(const void* blob, size_t size) noexcept = 0;
    /// Forgets everything. Returns false when that failed.
    virtual bool reset() noexcept = 0;
};

/// How contexts run. Made by ICudaEngine::createRuntimeConfig(); the caller deletes it, any time:
/// contexts copy it. Used by one thread at a time.
class IRuntimeConfig : public INoCopy {
public:
    virtual ~IRuntimeConfig() noexcept = default;

    /// Default kSTATIC.
    virtual void
    setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy strategy) noexcept = 0;
    virtual ExecutionContextAllocationStrategy
    getExecutionContextAllocationStrategy() const noexcept = 0;
    /// A new, empty cache. The caller deletes it.
    virtual IRuntimeCache* createRuntimeCache() const noexcept = 0;
    /// Contexts made with this configuration find and leave kernels in `cache`. Default: a cache
    /// of the process, backed by the user's cache folder.
    virtual bool setRuntimeCache(const IRuntimeCache& cache) noexcept = 0;
    /// The cache set; nullptr when none was. Do not delete the result.
    virtual IRuntimeCache* getRuntimeCache() const noexcept = 0;
    /// Default kLAZY.
    virtual void setDynamicShapesKernelSpecializationStrategy(
        DynamicShapesKernelSpecializationStrategy
            dynamicShapesKernelSpecializationStrategy) noexcept = 0;
    virtual DynamicShapesKernelSpecializationStrategy
    getDynamicShapesKernelSpecializationStrategy() const noexcept = 0;
    /// Default kDISABLED. Returns false for a number that is no strategy.
    virtual bool setCudaGraphStrategy(CudaGraphStrategy strategy) noexcept = 0;
    virtual CudaGraphStrategy getCudaGraphStrategy() const noexcept = 0;
};

/// Describes the layers of an engine as text. Made by ICudaEngine::createEngineInspector(); the
/// caller deletes it. Used by one thread at a time.
class IEngineInspector : public INoCopy {
public:
    virtual ~IEngineInspector() noexcept = default;

    /// With a context, shapes are those set in it, and the kernels chosen are told; nullptr goes
    /// back to the engine alone. Returns false for a context of another engine.
    virtual bool setExecutionContext(const IExecutionContext* context) noexcept = 0;
    virtual const IExecutionContext* getExecutionContext() const noexcept = 0;
    /// One layer, 0 <= layerIndex < engine.getNbLayers(). How much it tells depends on the
    /// ProfilingVerbosity of the build. The text is valid until the next call; nullptr on an error.
    virtual const char* getLayerInformation(int32_t layerIndex,
                                            LayerInformationFormat format) const noexcept = 0;
    /// All layers and the inputs and outputs. As getLayerInformation().
    virtual const char* getEngineInformation(LayerInformationFormat format) const noexcept = 0;
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
};

/// Saves the weights of an engine that can be refitted, takes them out of memory, and puts them
/// back: several engines take turns in one memory. Made by ICudaEngine::createWeightsManager(); the
/// caller deletes it, at any time: it keeps what it needs of the engine.
///
/// The data saved are the weights that IRefitter::getAllWeights() names, in that order, each from a
/// multiple of 256 bytes on, with zeros between. They fit engines that were built from the same
/// network, on any device.
///
/// Thread safety: no other call on the engine, its contexts and refitters goes on meanwhile.
/// Errors: false, and nothing is changed.
class IWeightsManager : public INoCopy {
public:
    virtual ~IWeightsManager() noexcept = default;

    /// Bytes that are saved and restored.
    virtual int64_t getSize() const noexcept = 0;
    /// Copies the weights to `destination`, after what `stream` holds; done when it returns. On the
    /// CPU backend kDEVICE is memory of the host. \param size has to be getSize().
    virtual bool saveToBuffer(void* destination, int64_t size, TensorLocation location,
                              cudaStream_t stream) noexcept = 0;
    /// The same in pieces, from the first byte on.
    virtual bool saveToStream(IStreamWriter& writer, cudaStream_t stream) noexcept = 0;
    /// Takes the weights out of the device's memory and the host's, after what `stream` holds.
    /// Contexts stay; nothing runs before a restore or a refit with all weights, and serialised
    /// engines lack them too. False when they are unloaded already.
    virtual bool unload(cudaStream_t stream) noexcept = 0;
    /// Gives weights back to an engine that has none: after unload(), or when it was built or
    /// written without them. The engine becomes what a refit with them makes of it; they are
    /// checked as a refit checks them. `source` is read when the call returns.
    virtual bool restoreFromBuffer(const void* source, int64_t size, TensorLocation location,
                                   cudaStream_t stream) noexcept = 0;
    /// Not supported: memory of others is not mapped. Reports an error and returns false.
    virtual bool restoreFromVmmAllocation(uint64_t allocationHandle, int64_t offset, int64_t size,
                                          cudaStream_t stream) noexcept = 0;
};

/// A network that was built: ready to make contexts, which run it. It is portable; what belongs to
/// a device is made with the first context.
///
/// Lifetime: made by IRuntime::deserializeCudaEngine() or IBuilder::buildEngineWithConfig(),
/// deleted by the caller at any time; contexts keep what they need of it alive. Thread safety:
/// const methods and createExecutionContext(), createRuntimeConfig() and createEngineInspector()
/// from any thread. Changing methods (set..., load..., refitting) must not meet any other call.
/// Errors: a tensor name that is not an input or output is reported; the call then returns the
/// value said below, else 0, false, nullptr or Dims with nbDims == -1.
class ICudaEngine : public INoCopy {
public:
    virtual ~ICudaEngine() noexcept = default;

    /// Shape as in the network; -1 where the size is known only at run time. A size for which min
    /// and max are the same in all profiles is known.
    virtual Dims getTensorShape(const char* tensorName) const noexcept = 0;
    /// kFLOAT for an unknown name.
    virtual DataType getTensorDataType(const char* tensorName) const noexcept = 0;
    /// Steps that the engine runs, after fusion.
    virtual int32_t getNbLayers() const noexcept = 0;
    /// The engine as bytes: what it lacks (weights before a refit) they lack too. The caller
    /// deletes the result. nullptr when weights are still to be loaded.
    virtual IHostMemory* serialize() const noexcept = 0;
    /// A context of its own memory. The caller deletes it. nullptr when memory or kernels cannot
    /// be had.
    virtual IExecutionContext*
    createExecutionContext(ExecutionContextAllocationStrategy strategy =
                               ExecutionContextAllocationStrategy::kSTATIC) noexcept = 0;
    /// Always kDEVICE (on the CPU backend that is host memory), also of values from which sizes
    /// follow.
    virtual TensorLocation getTensorLocation(const char* tensorName) const noexcept = 0;
    /// Always false: values from which sizes follow lie in device memory like all others, and are
    /// read by the run.
    virtual bool isShapeInferenceIO(const char* tensorName) const noexcept = 0;
    virtual TensorIOMode getTensorIOMode(const char* tensorName) const noexcept = 0;
    /// The input that this output is an update of, by addKVCacheUpdate() or a plugin's
    /// getAliasedInput(): give both one address (another one works, too, and costs a copy). nullptr
    /// when there is none.
    virtual const char* getAliasedInputTensor(const char* tensorName) const noexcept = 0;
    /// A context made as `runtimeConfig` says; nullptr stands for the defaults.
    virtual IExecutionContext* createExecutionContext(IRuntimeConfig* runtimeConfig) noexcept = 0;
    /// A configuration with the defaults. The caller deletes it.
    virtual IRuntimeConfig* createRuntimeConfig() noexcept = 0;

    /// Activation memory in bytes that a context needs, the largest over all profiles; exact. It is
    /// unbounded for an engine with open sizes and no profiles: that is reported, and the result is
    /// -1; IExecutionContext::updateDeviceMemorySizeForShapes() gives it for a shape.
    virtual int64_t getDeviceMemorySizeV2() const noexcept = 0;
    /// The same of one profile; -1 for a bad index, and as above.
    virtual int64_t getDeviceMemorySizeForProfileV2(int32_t profileIndex) const noexcept = 0;
    /// Whether an IRefitter can replace weights.
    virtual bool isRefittable() const noexcept = 0;

    // A format that pads channels (kCHWx, kHWCx, kDHWCx, kCDHW32) is vectorised: shapes stay those
    // of the tensor, but memory has room for a whole number of vectors of channels.

    /// Bytes of a component of a vectorised format; -1 when the format is not vectorised.
    virtual int32_t getTensorBytesPerComponent(const char* tensorName) const noexcept = 0;
    virtual int32_t getTensorBytesPerComponent(const char* tensorName,
                                               int32_t profileIndex) const noexcept = 0;
    /// Components of an element; -1 when the format is not vectorised.
    virtual int32_t getTensorComponentsPerElement(const char* tensorName) const noexcept = 0;
    virtual int32_t getTensorComponentsPerElement(const char* tensorName,
                                                  int32_t profileIndex) const noexcept = 0;
    virtual TensorFormat getTensorFormat(const char* tensorName) const noexcept = 0;
    virtual TensorFormat getTensorFormat(const char* tensorName,
                                         int32_t profileIndex) const noexcept = 0;
    /// Type and format in words.
    virtual const char* getTensorFormatDesc(const char* tensorName) const noexcept = 0;
    virtual const char* getTensorFormatDesc(const char* tensorName,
                                            int32_t profileIndex) const noexcept = 0;
    /// The dimension that the format vectorises; -1 when it is not vectorised.
    virtual int32_t getTensorVectorizedDim(const char* tensorName) const noexcept = 0;
    virtual int32_t getTensorVectorizedDim(const char* tensorName,
                                           int32_t profileIndex) const noexcept = 0;

    /// Name of the network.
    virtual const char* getName() const noexcept = 0;
    /// At least 1.
    virtual int32_t getNbOptimizationProfiles() const noexcept = 0;
    /// Shape of an input in a profile.
    virtual Dims getProfileShape(const char* tensorName, int32_t profileIndex,
                                 OptProfileSelector select) const noexcept = 0;
    /// Bounds of an input's values, as many as it has elements, which runs check; nullptr: none.
    virtual const int64_t* getProfileTensorValuesV2(const char* tensorName, int32_t profileIndex,
                                                    OptProfileSelector select) const noexcept = 0;
    virtual EngineCapability getEngineCapability() const noexcept = 0;
    /// \see IRuntime::setErrorRecorder
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
    virtual TacticSources getTacticSources() const noexcept = 0;
    virtual ProfilingVerbosity getProfilingVerbosity() const noexcept = 0;
    /// The caller deletes it.
    virtual IEngineInspector* createEngineInspector() const noexcept = 0;
    virtual int32_t getNbIOTensors() const noexcept = 0;
    /// Inputs first, each in the order of the network. nullptr for a bad index.
    virtual const char* getIOTensorName(int32_t index) const noexcept = 0;
    virtual HardwareCompatibilityLevel getHardwareCompatibilityLevel() const noexcept = 0;
    /// Streams beside the main one that a context uses: always 0, layers run one after another.
    virtual int32_t getNbAuxStreams() const noexcept = 0;

    /// The caller deletes it.
    virtual ISerializationConfig* createSerializationConfig() noexcept = 0;
    /// As serialize(), with choices.
    virtual IHostMemory* serializeWithConfig(ISerializationConfig& config) const noexcept = 0;

    /// Bytes of the weights that can be streamed; 0 unless built with kWEIGHT_STREAMING.
    virtual int64_t getStreamableWeightsSize() const noexcept = 0;
    /// Device memory in bytes for streamable weights; the rest stays on the host and is copied for
    /// each layer that reads it, beside the layers before where an eighth of the budget holds it.
    /// getStreamableWeightsSize() and more turn streaming off, which is the default; 0 streams all.
    /// Must be set while there are no contexts. On the CPU backend weights lie on the host anyway.
    /// Returns false for less than 0, and when it is too late.
    virtual bool setWeightStreamingBudgetV2(int64_t gpuMemoryBudget) noexcept = 0;
    virtual int64_t getWeightStreamingBudgetV2() const noexcept = 0;
    /// A budget that fits the free memory of the device.
    virtual int64_t getWeightStreamingAutomaticBudget() const noexcept = 0;
    /// Device memory in bytes that streaming under the present budget needs in a context:
    /// getDeviceMemorySizeV2() has it already.
    virtual int64_t getWeightStreamingScratchMemorySize() const noexcept = 0;

    /// Whether INetworkDefinition::markDebug() marked it. Debug tensors that are no outputs are not
    /// among getNbIOTensors().
    virtual bool isDebugTensor(const char* name) const noexcept = 0;
    virtual int64_t getEngineStat(EngineStat stat) const noexcept = 0;

    /// False between a deferred deserialisation and loadWeights().
    /// \see IRuntime::setDeferredWeightsLoading
    virtual bool areWeightsLoaded() const noexcept = 0;
    /// Takes the bytes the engine was deserialised from, which are compared with what it has, and
    /// not copied. Returns false when they are others.
    virtual bool loadWeights(const void* blob, int64_t size) noexcept = 0;
    /// The same from a reader, piece by piece; `stream` is passed to it. Done when it returns.
    virtual bool loadWeightsAsync(IStreamReaderV2& streamReader, cudaStream_t stream) noexcept = 0;

    // Older generations.

    /// \see getProfileTensorValuesV2. Values that exceed 32 bits are clamped.
    TRT_DEPRECATED virtual const int32_t*
    getProfileTensorValues(const char* tensorName, int32_t profileIndex,
                           OptProfileSelector select) const noexcept = 0;
    TRT_DEPRECATED IExecutionContext* createExecutionContextWithoutDeviceMemory() noexcept {
        return createExecutionContext(ExecutionContextAllocationStrategy::kUSER_MANAGED);
    }
    TRT_DEPRECATED size_t getDeviceMemorySize() const noexcept {
        return static_cast<size_t>(getDeviceMemorySizeV2());
    }
    TRT_DEPRECATED size_t getDeviceMemorySizeForProfile(int32_t profileIndex) const noexcept {
        const int64_t bytes = getDeviceMemorySizeForProfileV2(profileIndex);
        return bytes < 0 ? 0 : static_cast<size_t>(bytes);
    }
    /// Always false.
    TRT_DEPRECATED bool hasImplicitBatchDimension() const noexcept { return false; }
    /// -1: no streaming; 0: getWeightStreamingAutomaticBudget(); else bytes.
    TRT_DEPRECATED bool setWeightStreamingBudget(int64_t gpuMemoryBudget) noexcept {
        if (gpuMemoryBudget < 0) {
            return setWeightStreamingBudgetV2(getStreamableWeightsSize());
        }
        return setWeightStreamingBudgetV2(gpuMemoryBudget == 0 ? getWeightStreamingAutomaticBudget()
                                                               : gpuMemoryBudget);
    }
    TRT_DEPRECATED int64_t getWeightStreamingBudget() const noexcept {
        return getWeightStreamingBudgetV2();
    }
    TRT_DEPRECATED int64_t getMinimumWeightStreamingBudget() const noexcept { return 0; }

    // Newest last: objects of older lean libraries lack what they do not know.

    /// Frees the weights of an engine that was deserialised with
    /// IRuntime::setDeferredWeightsLoading(), with what a refit made of them: it is again as it was
    /// then, and loadWeights() serves. Contexts stay. No run goes on meanwhile. Returns false when
    /// the weights are not loaded, or were loaded with the engine.
    virtual bool unloadWeights() noexcept = 0;
    /// The caller deletes it. nullptr, with an error, for an engine that cannot be refitted: build
    /// it with kREFIT, kREFIT_IDENTICAL, kREFIT_INDIVIDUAL or kSTRIP_PLAN.
    virtual IWeightsManager* createWeightsManager() noexcept = 0;
};

} // namespace nvinfer1
