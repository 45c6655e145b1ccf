// SPDX-License-Identifier: Apache-2.0
// The runtime: IRuntime loads engines, ICudaEngine makes contexts, IExecutionContext runs.
#pragma once

#include "NvInferPluginBase.h"
#include "NvInferRuntimeBase.h"
#include "NvInferRuntimeCommon.h"
#include "NvInferRuntimePlugin.h"
#include "ingot/context.h"
#include "ingot/engine.h"
#include "ingot/profile.h"
#include "ingot/refitter.h"
#include "ingot/runtime_types.h"

namespace nvinfer1 {

/// Loads engines. The one of libingot.so and libingot_lean.so loads those of its own release and of
/// earlier ones itself. The one of libingot_dispatch.so has no engine code: for each engine it
/// loads the lean runtime for the release that the engine's header names, in this order:
/// libingot_lean.so.MAJOR beside libingot_dispatch.so, the same where the system's loader searches,
/// libingot_lean.so beside it and there. Objects made by a lean runtime have the methods of its
/// release: do not call those that later headers added.
///
/// Lifetime: made by createInferRuntime(), deleted by the caller at any time; engines keep what
/// they need. Logger, recorder and allocator are the application's and outlive all of them.
/// Thread safety: deserializeCudaEngine() and const methods from any thread; set... methods must
/// not meet any other call.
class IRuntime : public INoCopy {
public:
    virtual ~IRuntime() noexcept = default;

    /// Not supported: there is no DLA; accepted and ignored.
    virtual void setDLACore(int32_t dlaCore) noexcept = 0;
    virtual int32_t getDLACore() const noexcept = 0;
    /// Always 0.
    virtual int32_t getNbDLACores() const noexcept = 0;

    /// Sets the allocator of device memory for engines loaded from here on; nullptr for the
    /// default.
    virtual void setGpuAllocator(IGpuAllocator* allocator) noexcept = 0;
    /// Sets the recorder of errors of this object and of objects that it makes from here on;
    /// nullptr for the logger. The old recorder is released, the new one held.
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

    /// An engine from bytes, which are not needed after the call. The caller deletes it. nullptr
    /// when they are damaged or cannot run here; the message says why and what to do. An engine is
    /// code: load only what you trust.
    virtual ICudaEngine* deserializeCudaEngine(const void* blob, std::size_t size) noexcept = 0;
    /// The same from a reader, which is not needed after the call.
    virtual ICudaEngine* deserializeCudaEngine(IStreamReaderV2& streamReader) noexcept = 0;

    virtual ILogger* getLogger() const noexcept = 0;
    /// Most threads, the caller's included, that plans of engines loaded from here on use, and runs
    /// on the CPU. Default: all cores. Kernels are compiled by others. False for less than 1.
    virtual bool setMaxThreads(int32_t maxThreads) noexcept = 0;
    virtual int32_t getMaxThreads() const noexcept = 0;
    /// Folder for temporary files; nullptr (the default) for the system's. No effect: no temporary
    /// files are written, since engines carry no code to unpack. The values are kept.
    virtual void setTemporaryDirectory(const char* path) noexcept = 0;
    virtual const char* getTemporaryDirectory() const noexcept = 0;
    /// No effect, for the same reason. Default: both.
    virtual void setTempfileControlFlags(TempfileControlFlags flags) noexcept = 0;
    virtual TempfileControlFlags getTempfileControlFlags() const noexcept = 0;
    /// Plugins that engines loaded here may use: getPluginRegistry() of the library that made this
    /// runtime. One of loadRuntime() has its own.
    virtual IPluginRegistry& getPluginRegistry() noexcept = 0;
    /// A runtime from a lean library of this or another release, at a path or under a name that the
    /// system's loader finds. It has this one's logger and recorder, and its own plugins: those of
    /// its getPluginRegistry(). The caller deletes it; this one may be deleted before. The library
    /// stays loaded. nullptr when it cannot be loaded, or is no library of Ingot that this release
    /// can call.
    virtual IRuntime* loadRuntime(const char* path) noexcept = 0;
    /// Whether an engine may bring host code. Default false. No effect: engines hold none (no
    /// runtime, no plugin libraries), so that none is refused for it. The value is kept.
    virtual void setEngineHostCodeAllowed(bool allowed) noexcept = 0;
    virtual bool getEngineHostCodeAllowed() const noexcept = 0;

    /// How many bytes from the start of an engine getEngineValidity() needs. They have the version
    /// of its format and release, its size, and for which GPUs it has kernels.
    virtual int64_t getEngineHeaderSize() const noexcept = 0;
    /// Whether an engine will run here, from its first getEngineHeaderSize() bytes; all of it
    /// checks every hash. An unusable GPU driver makes it kINVALID, though kAUTO would take the
    /// CPU. \param diagnostics bits of EngineInvalidityDiagnostics, 0 unless kINVALID; may be
    /// nullptr.
    virtual EngineValidity getEngineValidity(const void* blob, int64_t blobSize,
                                             uint64_t* diagnostics) const noexcept = 0;
    /// True: contexts compile, but nothing runs before ICudaEngine::loadWeights(), which checks
    /// that it is given what was read with the engine: compiling needs it. Default false.
    virtual void setDeferredWeightsLoading(bool defer) noexcept = 0;
    virtual bool getDeferredWeightsLoading() const noexcept = 0;

    // Older generations.

    virtual ICudaEngine* deserializeCudaEngine(IStreamReader& streamReader) noexcept = 0;

    // Newest last: objects of older lean libraries lack what they do not know.

    /// Kept, and of no effect: there is no DLA. Returns false for a number that is no strategy.
    virtual bool
    setDLAWorkspaceAllocationStrategy(DLAWorkspaceAllocationStrategy strategy) noexcept = 0;
    virtual DLAWorkspaceAllocationStrategy getDLAWorkspaceAllocationStrategy() const noexcept = 0;
};

} // namespace nvinfer1

// Called through the inline functions below.
extern "C" TENSORRTAPI void* createInferRuntime_INTERNAL(void* logger, int32_t version) noexcept;
extern "C" TENSORRTAPI void* createInferRefitter_INTERNAL(void* engine, void* logger,
                                                          int32_t version) noexcept;

/// The global plugin registry. Lives as long as the process; safe from any thread.
extern "C" TENSORRTAPI nvinfer1::IPluginRegistry* getPluginRegistry() noexcept;

/// The logger for what belongs to no builder, runtime or refitter: the one first given to any of
/// them; nullptr before that.
extern "C" TENSORRTAPI nvinfer1::ILogger* getLogger() noexcept;

namespace nvinfer1 {

/// A runtime; the caller deletes it. nullptr when the library is older than these headers.
static inline IRuntime* createInferRuntime(ILogger& logger) noexcept {
    return static_cast<IRuntime*>(createInferRuntime_INTERNAL(&logger, NV_TENSORRT_VERSION));
}

/// A refitter; the caller deletes it. nullptr when the engine cannot be refitted.
static inline IRefitter* createInferRefitter(ICudaEngine& engine, ILogger& logger) noexcept {
    return static_cast<IRefitter*>(
        createInferRefitter_INTERNAL(&engine, &logger, NV_TENSORRT_VERSION));
}

/// Finds the logger of the engine or context that called a plugin; given to plugin libraries.
class ILoggerFinder : public IVersionedInterface {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override { return {"ILoggerFinder", 1, 0}; }
    virtual ILogger* findLogger() = 0;

    ILoggerFinder() = default;
    ~ILoggerFinder() override = default;

protected:
    ILoggerFinder(const ILoggerFinder&) = default;
    ILoggerFinder(ILoggerFinder&&) = default;
    ILoggerFinder& operator=(const ILoggerFinder&) & = default;
    ILoggerFinder& operator=(ILoggerFinder&&) & = default;
};

namespace v_1_0 {
using nvinfer1::ILoggerFinder;
} // namespace v_1_0

/// Registers a creator with the global registry for the life of the program. Thread safety: made by
/// static initialisation. Errors: the registry reports a creator that is there already.
template <typename T>
class PluginRegistrar {
public:
    PluginRegistrar() { getPluginRegistry()->registerCreator(instance_, ""); }

private:
    T instance_{};
};

} // namespace nvinfer1

/// Registers the plugin creator of that class when the library or program is loaded.
#define REGISTER_TENSORRT_PLUGIN(name)                                                             \
    static nvinfer1::PluginRegistrar<name> pluginRegistrar##name {}
