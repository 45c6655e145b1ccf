// SPDX-License-Identifier: Apache-2.0
// The builder: INetworkDefinition describes a network, IBuilder makes an engine of it.
#pragma once

#include "NvInferLegacyDims.h"
#include "NvInferRuntime.h"
#include "ingot/builder_config.h"
#include "ingot/calibrator.h"
#include "ingot/network.h"

namespace nvinfer1 {

/// Makes engines of networks.
///
/// Lifetime: made by createInferBuilder(), deleted by the caller at any time; networks,
/// configurations and engines keep what they need. Profiles belong to it.
/// Thread safety: create... methods and builds of different networks and configurations from any
/// thread; set... methods must not meet any other call. Builds that time kernels on the same GPU
/// disturb each other's times.
class IBuilder : public INoCopy {
public:
    virtual ~IBuilder() noexcept = default;

    /// Always 0: there is no DLA.
    virtual int32_t getMaxDLABatchSize() const noexcept = 0;
    virtual int32_t getNbDLACores() const noexcept = 0;
    /// Sets the allocator of device memory during builds; nullptr for the default.
    virtual void setGpuAllocator(IGpuAllocator* allocator) noexcept = 0;
    /// A configuration with the defaults. The caller deletes it.
    virtual IBuilderConfig* createBuilderConfig() noexcept = 0;
    /// An empty network. The caller deletes it. nullptr for bits that are no flag.
    virtual INetworkDefinition* createNetworkV2(NetworkDefinitionCreationFlags flags) noexcept = 0;
    /// An empty profile, which belongs to the builder.
    virtual IOptimizationProfile* createOptimizationProfile() noexcept = 0;
    /// \see IRuntime::setErrorRecorder
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
    /// Back to the defaults.
    virtual void reset() noexcept = 0;
    /// The engine as bytes. The caller deletes the result. nullptr when it cannot be built or was
    /// cancelled. Needs no GPU unless kCURRENT or timing is asked for.
    virtual IHostMemory* buildSerializedNetwork(INetworkDefinition& network,
                                                IBuilderConfig& config) noexcept = 0;
    /// The same to a writer.
    virtual bool buildSerializedNetworkToStream(INetworkDefinition& network, IBuilderConfig& config,
                                                IStreamWriter& writer) noexcept = 0;
    /// The engine ready to run, without a way through bytes. The caller deletes it.
    virtual ICudaEngine* buildEngineWithConfig(INetworkDefinition& network,
                                               IBuilderConfig& config) noexcept = 0;
    /// Whether a build would find every layer and setting supported; the others are reported.
    virtual bool isNetworkSupported(const INetworkDefinition& network,
                                    const IBuilderConfig& config) const noexcept = 0;
    virtual ILogger* getLogger() const noexcept = 0;
    /// Most threads of the host that a build uses, the caller's included. Default: all cores.
    /// Returns false for less than 1.
    virtual bool setMaxThreads(int32_t maxThreads) noexcept = 0;
    virtual int32_t getMaxThreads() const noexcept = 0;
    /// Plugins that networks built here may use: its own, then the global ones.
    virtual IPluginRegistry& getPluginRegistry() noexcept = 0;

    // Older generations.

    /// Whether the GPU at hand has units for these types. Without one false: the CPU computes
    /// halves in FP32, so that they gain nothing there.
    TRT_DEPRECATED virtual bool platformHasFastFp16() const noexcept = 0;
    TRT_DEPRECATED virtual bool platformHasFastInt8() const noexcept = 0;
    TRT_DEPRECATED virtual bool platformHasTf32() const noexcept = 0;
    /// There is no kernel text: kernelText becomes nullptr.
    IHostMemory* buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig& config,
                                        IHostMemory*& kernelText) noexcept {
        kernelText = nullptr;
        return buildSerializedNetwork(network, config);
    }
};

} // namespace nvinfer1

// Called through the inline function below.
extern "C" TENSORRTAPI void* createInferBuilder_INTERNAL(void* logger, int32_t version) noexcept;

namespace nvinfer1 {

/// A builder; the caller deletes it. nullptr when the library is older than these headers.
static inline IBuilder* createInferBuilder(ILogger& logger) noexcept {
    return static_cast<IBuilder*>(createInferBuilder_INTERNAL(&logger, NV_TENSORRT_VERSION));
}

/// The plugins that networks of this capability may use: getPluginRegistry() for kSTANDARD, nullptr
/// for others.
extern "C" TENSORRTAPI IPluginRegistry*
getBuilderPluginRegistry(EngineCapability capability) noexcept;

/// Folder of the libraries that the builder opens when needed. Default: that of the library itself.
extern "C" TENSORRTAPI void setInternalLibraryPath(const char* path) noexcept;

} // namespace nvinfer1

// Programs that were written for earlier headers of Ingot name them so.
using nvinfer1::getBuilderPluginRegistry;
using nvinfer1::setInternalLibraryPath;
