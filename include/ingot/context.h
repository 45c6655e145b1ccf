// SPDX-License-Identifier: Apache-2.0
// IExecutionContext: one caller's runs of an engine. Included by NvInferRuntime.h.
#pragma once

#include "ingot/engine.h"

namespace nvinfer1 {

/// State of running an engine: shapes, addresses, activation memory.
///
/// Lifetime: made by ICudaEngine::createExecutionContext(), deleted by the caller once the streams
/// it was run on have passed its last run. The engine may be deleted before.
/// Thread safety: one thread at a time. A second one that calls while the first is inside gets an
/// error, nothing is corrupted. Contexts of one engine run at the same time.
/// Order of a run: optimisation profile, then input shapes, then addresses, then enqueueV3(). All
/// of them stay until they are changed.
/// On the CPU backend addresses are host addresses and streams are ignored: a run is complete when
/// its call returns.
/// Errors: a name that is not an input or output, a shape outside the profile, a missing address
/// are reported with name, found and expected, and the method returns false, nullptr, or Dims with
/// nbDims == -1.
class IExecutionContext : public INoCopy {
public:
    virtual ~IExecutionContext() noexcept = default;

    /// Wait for the end of every run, so that its errors show in enqueueV3(). Default false.
    virtual void setDebugSync(bool sync) noexcept = 0;
    virtual bool getDebugSync() const noexcept = 0;
    /// Time layers. nullptr stops. The application keeps it alive.
    virtual void setProfiler(IProfiler* profiler) noexcept = 0;
    virtual IProfiler* getProfiler() const noexcept = 0;
    /// The engine; valid as long as this context, also after the application deleted the engine.
    virtual const ICudaEngine& getEngine() const noexcept = 0;
    /// A name for messages and profilers. Default "".
    virtual void setName(const char* name) noexcept = 0;
    virtual const char* getName() const noexcept = 0;
    /// As setDeviceMemoryV2() with getDeviceMemorySizeV2() bytes.
    virtual void setDeviceMemory(void* memory) noexcept = 0;
    /// Memory for activations of a kUSER_MANAGED context, aligned to 256 bytes, in use until the
    /// last run has ended. Too little is an error at the next run.
    virtual void setDeviceMemoryV2(void* memory, int64_t size) noexcept = 0;

    /// Strides in elements, which are whole vectors in a vectorised format (in kHWC8 a stride of 1
    /// spans 8 scalars); -1 where they depend on sizes not set yet.
    virtual Dims getTensorStrides(const char* tensorName) const noexcept = 0;
    /// The profile in use. Every context starts with 0.
    virtual int32_t getOptimizationProfile() const noexcept = 0;
    /// Sets the shape of an input with sizes that are not static. Returns false for a shape outside
    /// the profile.
    virtual bool setInputShape(const char* tensorName, const Dims& dims) noexcept = 0;
    /// The shape under the input shapes set; -1 where it depends on what is not set, or on data.
    virtual Dims getTensorShape(const char* tensorName) const noexcept = 0;
    /// Whether all input shapes are set.
    virtual bool allInputDimensionsSpecified() const noexcept = 0;
    /// \see IRuntime::setErrorRecorder
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

    /// Runs and waits. `bindings` has an address for each input and output in the order of
    /// getIOTensorName(). Returns false when the run failed.
    virtual bool executeV2(void* const* bindings) noexcept = 0;
    /// Chooses a profile; input shapes are forgotten. The change is made in the order of `stream`.
    /// Returns false for a bad index.
    virtual bool setOptimizationProfileAsync(int32_t profileIndex,
                                             cudaStream_t stream) noexcept = 0;
    /// True (the default): every run reports to the profiler and waits for that. False: a run does
    /// not wait, may be captured, and reportToProfiler() reports it; times then run from the start
    /// of one layer to the start of the next, so that they hold what the GPU waited for the host.
    /// With a profiler no CudaGraphStrategy has an effect.
    virtual void setEnqueueEmitsProfile(bool enqueueEmitsProfile) noexcept = 0;
    virtual bool getEnqueueEmitsProfile() const noexcept = 0;
    /// Waits for the last run since the profiler was set and reports its times; after a run that
    /// was captured, those of the last launch of its graph. Returns false when there is nothing to
    /// report.
    virtual bool reportToProfiler() const noexcept = 0;

    /// Address of an input or output: device memory, or host memory where getTensorLocation() says
    /// so; aligned to 256 bytes for full speed, at least to its element. May be nullptr for an
    /// output with an allocator.
    virtual bool setTensorAddress(const char* tensorName, void* data) noexcept = 0;
    virtual const void* getTensorAddress(const char* tensorName) const noexcept = 0;
    /// As setTensorAddress() for an output only.
    virtual bool setOutputTensorAddress(const char* tensorName, void* data) noexcept = 0;
    /// As setTensorAddress() for an input only, which is not written.
    virtual bool setInputTensorAddress(const char* tensorName, const void* data) noexcept = 0;
    virtual void* getOutputTensorAddress(const char* tensorName) const noexcept = 0;
    /// Whether the shapes set so far agree with each other, and which are still missing.
    /// \param tensorNames gets up to nbMaxNames names of inputs whose shape is missing.
    /// \returns how many are missing, 0 when all is known, -1 on an error.
    virtual int32_t inferShapes(int32_t nbMaxNames, const char** tensorNames) noexcept = 0;
    /// Activation memory in bytes for the shapes set; 0 when some are missing. For kUSER_MANAGED.
    virtual size_t updateDeviceMemorySizeForShapes() noexcept = 0;

    /// An event that every later run records, on the GPU, once the last layer that reads inputs has
    /// read them, so that they may be overwritten while the run goes on; nullptr (the default) for
    /// none. Where a graph is replayed (CudaGraphStrategy), or sizes depend on data, that is the
    /// end of the run. A run that is captured captures the record too. On the CPU backend the event
    /// is kept and not recorded: inputs are free when the call returns.
    virtual bool setInputConsumedEvent(cudaEvent_t event) noexcept = 0;
    virtual cudaEvent_t getInputConsumedEvent() const noexcept = 0;
    /// Sets the allocator of an output; nullptr for setTensorAddress() alone. For an output with a
    /// data-dependent size it receives that size; it is required where getMaxOutputSize() is -1.
    /// Else an address with memory for getMaxOutputSize() bytes suffices, where the application
    /// learns the used part from other outputs.
    virtual bool setOutputAllocator(const char* tensorName,
                                    IOutputAllocator* outputAllocator) noexcept = 0;
    virtual IOutputAllocator* getOutputAllocator(const char* tensorName) const noexcept = 0;
    /// The most bytes that an output can take under the shapes set, with what its format pads; also
    /// where its size depends on data, as that of a NonZero does. -1 where a shape is missing or
    /// nothing bounds the size.
    virtual int64_t getMaxOutputSize(const char* tensorName) const noexcept = 0;
    /// Sets the allocator of memory that the context requests from here on, such as for results
    /// with data-dependent sizes; nullptr for the engine's allocator. It outlives the context.
    virtual bool setTemporaryStorageAllocator(IGpuAllocator* allocator) noexcept = 0;
    virtual IGpuAllocator* getTemporaryStorageAllocator() const noexcept = 0;

    /// Queues a run on `stream`. Buffers must stay until the stream has passed it. Returns false
    /// when it could not be queued, and, outside of captures, for values that the profile rules
    /// out (IOptimizationProfile::setShapeValuesV2()). Errors on the device show in the stream.
    /// While `stream` is being captured into a CUDA graph, the run becomes part of the graph, and
    /// nothing of it runs; isStreamCapturable() says whether it can. The graph uses memory of this
    /// context: keep the context as long as the graph, launch one at a time, and capture anew after
    /// other shapes, addresses or memory were set.
    virtual bool enqueueV3(cudaStream_t stream) noexcept = 0;

    /// Bytes of the GPU's L2 cache that activations are kept in, with preference over what else
    /// passes through it. Default 0. That much of the cache is set aside for this context as long
    /// as it lives, and is missing for everything else on the GPU. An error is reported, and the
    /// limit stays, for more than the GPU can set aside (cudaDeviceProp::persistingL2CacheMaxSize:
    /// 0 where it has no such cache, or is divided by MIG); all contexts together should stay below
    /// that. The CPU backend warns, and the limit stays 0.
    virtual void setPersistentCacheLimit(size_t size) noexcept = 0;
    virtual size_t getPersistentCacheLimit() const noexcept = 0;
    /// Sets the detail of later runs' NVTX ranges on a GPU: kNONE nothing, kLAYER_NAMES_ONLY runs
    /// and the names of layers, kDETAILED also their kernels and shapes. At most the verbosity of
    /// the build, else false. Default: that. Where a graph is replayed there is one range for the
    /// run.
    virtual bool setNvtxVerbosity(ProfilingVerbosity verbosity) noexcept = 0;
    virtual ProfilingVerbosity getNvtxVerbosity() const noexcept = 0;
    /// Streams for work beside the main stream, of which getNbAuxStreams() are used: none. Given
    /// ones get a warning and are not used.
    virtual void setAuxStreams(cudaStream_t* auxStreams, int32_t nbStreams) noexcept = 0;

    /// Sets the listener of enabled debug tensors; nullptr (the default) for none.
    virtual bool setDebugListener(IDebugListener* listener) noexcept = 0;
    virtual IDebugListener* getDebugListener() noexcept = 0;
    /// Switches a debug tensor on or off. Default off. Returns false when it is not marked.
    virtual bool setTensorDebugState(const char* name, bool flag) noexcept = 0;
    virtual bool getDebugState(const char* name) const noexcept = 0;
    /// Switches all tensors that markDebug() marked.
    virtual bool setAllTensorsDebugState(bool flag) noexcept = 0;
    /// Switches the tensors that fusion left. While they are on, a run waits for each of them, and
    /// cannot be captured. Default off. Returns false for true where the build did not mark them.
    virtual bool setUnfusedTensorsDebugState(bool flag) noexcept = 0;
    virtual bool getUnfusedTensorsDebugState() const noexcept = 0;

    /// The configuration that it was made with. Do not delete the result.
    virtual IRuntimeConfig* getRuntimeConfig() const noexcept = 0;
    /// Whether enqueueV3() with the present settings can be captured on `stream`: on a GPU, not on
    /// the default stream; all input shapes are set and a run of these was enqueued before, which
    /// loads kernels and weights; no size depends on data; and nothing makes the run wait: a
    /// profiler with setEnqueueEmitsProfile(true), setDebugSync(true), unfused debug tensors.
    virtual bool isStreamCapturable(cudaStream_t stream) const noexcept = 0;
    /// The ncclComm_t for collective layers, which stays the application's and is valid as long as
    /// it is set; nullptr for none. Each rank runs in a thread or process of its own, the same
    /// layers in the same order. Runs are launched step by step; in a capture of the application's,
    /// all ranks are captured, after a run outside of it, and graphs with groups of ranks in them
    /// are gone before the context is. Needs libnccl.so.2, the one that made the
    /// communicator: INGOT_NCCL names it where the loader does not find it. Returns false where
    /// there are no such layers, on the CPU, and for a communicator of another GPU or number of
    /// ranks than the layers'.
    virtual bool setCommunicator(void* communicator) noexcept = 0;

    // Older generations.

    TRT_DEPRECATED bool allInputShapesSpecified() const noexcept {
        return allInputDimensionsSpecified();
    }
};

} // namespace nvinfer1
