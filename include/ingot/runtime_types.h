// SPDX-License-Identifier: Apache-2.0
// Shared by engine, context and builder: bases, weights, enumerations, and the interfaces that an
// application implements for runs. Included by NvInferRuntime.h.
#pragma once

#include "NvInferRuntimeBase.h"

namespace nvinfer1 {

class ICudaEngine;
class IExecutionContext;
class IPluginRegistry;
class IRuntimeConfig;

/// Base of the classes that the library implements: used through pointers only. The following holds
/// unless a class says otherwise.
///
/// Lifetime: the caller deletes the result of a create...() function, at any time and in any order:
/// objects keep their dependencies alive. Parts of an object belong to it.
/// Thread safety: one thread at a time.
/// Errors: a method that fails returns nullptr, false, -1 or the documented value, and reports the
/// problem and the remedy to the object's error recorder, else to the logger. None throws.
class INoCopy {
protected:
    INoCopy() = default;
    ~INoCopy() = default;

public:
    INoCopy(const INoCopy& other) = delete;
    INoCopy& operator=(const INoCopy& other) = delete;
    INoCopy(INoCopy&& other) = delete;
    INoCopy& operator=(INoCopy&& other) = delete;
};

/// Elements that the application owns. `count` of them; for types of 4 bits two share a byte.
/// values == nullptr with count == 0 stands for no weights.
class Weights {
public:
    DataType type;
    const void* values;
    int64_t count;
};

/// Bytes that the library owns: an engine, a cache. The caller deletes it.
///
/// Thread safety: const methods may be called from several threads.
class IHostMemory : public INoCopy {
public:
    virtual ~IHostMemory() noexcept = default;

    /// Start of the memory, aligned to 64 bytes; valid until the object is deleted.
    virtual void* data() const noexcept = 0;
    /// Bytes.
    virtual std::size_t size() const noexcept = 0;
    /// Element type; kINT8 for serialised objects.
    virtual DataType type() const noexcept = 0;
};

/// The capability class of an engine. Ingot builds kSTANDARD; the others are refused at build.
enum class EngineCapability : int32_t {
    kSTANDARD = 0,
    kSAFETY = 1,
    kDLA_STANDALONE = 2,
};
INGOT_ENUM_MAX(EngineCapability, 3)

/// The role of a layer's weights; names weights for IRefitter::setWeights().
enum class WeightsRole : int32_t {
    kKERNEL = 0,
    kBIAS = 1,
    kSHIFT = 2,
    kSCALE = 3,
    kCONSTANT = 4,
    kANY = 5,
};
INGOT_ENUM_MAX(WeightsRole, 6)

enum class DeviceType : int32_t {
    kGPU = 0,
    kDLA = 1, ///< Not supported; layers stay on the GPU, with a warning
};
INGOT_ENUM_MAX(DeviceType, 2)

/// How a DLA's modules get their workspace. There is no DLA: the value is kept and has no effect.
enum class DLAWorkspaceAllocationStrategy : int32_t {
    kDEFAULT = 0,       ///< Each module its own
    kSHARED_STATIC = 1, ///< One for all modules of a runtime and a core
};
INGOT_ENUM_MAX(DLAWorkspaceAllocationStrategy, 2)

/// How a runtime may unpack code that an engine carries. Engines carry none: the flags are kept and
/// have no effect.
enum class TempfileControlFlag : int32_t {
    kALLOW_IN_MEMORY_FILES = 0,
    kALLOW_TEMPORARY_FILES = 1,
};
INGOT_ENUM_MAX(TempfileControlFlag, 2)
/// Set of TempfileControlFlag: bit i stands for flag i.
using TempfileControlFlags = uint32_t;

enum class TensorLocation : int32_t {
    kDEVICE = 0,
    kHOST = 1,
};
INGOT_ENUM_MAX(TensorLocation, 2)

/// Which of the three shapes (or value sets) of an optimisation profile.
enum class OptProfileSelector : int32_t {
    kMIN = 0,
    kOPT = 1, ///< The shapes for which kernels are selected
    kMAX = 2,
};
INGOT_ENUM_MAX(OptProfileSelector, 3)

/// How much an engine, and NVTX ranges, tell of layers.
enum class ProfilingVerbosity : int32_t {
    kLAYER_NAMES_ONLY = 0,
    kNONE = 1,
    kDETAILED = 2, ///< Types, shapes, kernels
};
INGOT_ENUM_MAX(ProfilingVerbosity, 3)

/// Sources of kernels.
enum class TacticSource : int32_t {
    kEDGE_MASK_CONVOLUTIONS = 0,
    kJIT_CONVOLUTIONS = 1,
    // For older generations; setting them changes nothing.
    kCUBLAS TRT_DEPRECATED_ENUM = 16,
    kCUBLAS_LT TRT_DEPRECATED_ENUM = 17,
    kCUDNN TRT_DEPRECATED_ENUM = 18,
};
INGOT_ENUM_MAX(TacticSource, 2)
/// Set of TacticSource: bit i stands for source i.
using TacticSources = uint32_t;

/// On which GPUs, other than the one it was built on, an engine may run. Ingot's engines run on
/// all GPUs that it supports unless compute capabilities are listed; the level is recorded.
enum class HardwareCompatibilityLevel : int32_t {
    kNONE = 0,
    kAMPERE_PLUS = 1,
    kSAME_COMPUTE_CAPABILITY = 2,
};
INGOT_ENUM_MAX(HardwareCompatibilityLevel, 3)

/// How a context gets the memory for activations.
enum class ExecutionContextAllocationStrategy : int32_t {
    kSTATIC = 0,            ///< When it is created, enough for every profile
    kON_PROFILE_CHANGE = 1, ///< When a profile is chosen, for that profile; the other's is freed
    kUSER_MANAGED = 2,      ///< From setDeviceMemoryV2()
};
INGOT_ENUM_MAX(ExecutionContextAllocationStrategy, 3)

/// Numbers that ICudaEngine::getEngineStat() gives.
enum class EngineStat : int32_t {
    kTOTAL_WEIGHTS_SIZE = 0,    ///< Bytes of all weights
    kSTRIPPED_WEIGHTS_SIZE = 1, ///< Bytes of the weights that were left out; -1 if none were
};
INGOT_ENUM_MAX(EngineStat, 2)

/// Operating system that an engine is for. Ingot's engines run on any.
enum class RuntimePlatform : int32_t {
    kSAME_AS_BUILD = 0,
    kWINDOWS_AMD64 = 1,
};
INGOT_ENUM_MAX(RuntimePlatform, 2)

enum class LayerInformationFormat : int32_t {
    kONELINE = 0, ///< A line per layer
    kJSON = 1,
};
INGOT_ENUM_MAX(LayerInformationFormat, 2)

enum class SerializationFlag : int32_t {
    kEXCLUDE_WEIGHTS = 0,      ///< Leave out the weights that can be refitted
    kEXCLUDE_LEAN_RUNTIME = 1, ///< No effect: engines never carry a runtime
    kINCLUDE_REFIT = 2,        ///< The engine can be refitted again after loading
};
INGOT_ENUM_MAX(SerializationFlag, 3)
/// Set of SerializationFlag: bit i stands for flag i.
using SerializationFlags = uint32_t;

/// Answer of IRuntime::getEngineValidity().
enum class EngineValidity : int32_t {
    kVALID = 0,      ///< It will run, as far as its header tells
    kSUBOPTIMAL = 1, ///< It will run, but its kernels are for other GPUs: all are compiled anew
    kINVALID = 2,    ///< It will not run
};
INGOT_ENUM_MAX(EngineValidity, 3)

/// Why an engine is kINVALID: bits, of which several may be set.
enum class EngineInvalidityDiagnostics : uint64_t {
    kVERSION_MISMATCH = 1ULL << 0,        ///< Written by a release that this one cannot read
    kUNSUPPORTED_CC = 1ULL << 1,          ///< Not built for the compute capability found
    kOLD_CUDA_DRIVER = 1ULL << 2,         ///< The driver is too old
    kOLD_CUDA_RUNTIME = 1ULL << 3,        ///< The compiler of kernels is too old
    kINSUFFICIENT_GPU_MEMORY = 1ULL << 4, ///< Build with weight streaming
    kMALFORMED_ENGINE = 1ULL << 5,        ///< Not an engine, cut short, or damaged
    kCUDA_ERROR = 1ULL << 6,              ///< The driver reported an error
};

/// How kernels of dynamic shapes are fitted to the shapes that occur.
enum class DynamicShapesKernelSpecializationStrategy : int32_t {
    kLAZY = 0,  ///< In the background; runs use the general kernel until then
    kEAGER = 1, ///< Before the first run of a shape, which waits
    kNONE = 2,  ///< Never
};
INGOT_ENUM_MAX(DynamicShapesKernelSpecializationStrategy, 3)

/// Whether a context records its launches as a CUDA graph and repeats that.
enum class CudaGraphStrategy : int32_t {
    kDISABLED = 0,
    kWHOLE_GRAPH_CAPTURE = 1, ///< From the second run with the same shapes and addresses on
};
INGOT_ENUM_MAX(CudaGraphStrategy, 2)

/// A GPU generation that an engine is built for: ten times major plus minor.
enum class ComputeCapability : int32_t {
    kNONE = 0,    ///< Not set; cannot be built for
    kCURRENT = 1, ///< That of the GPU found at build; stands alone
    kSM75 = 75,
    kSM80 = 80,
    kSM86 = 86,
    kSM87 = 87,
    kSM89 = 89,
    kSM90 = 90,
    kSM100 = 100,
    kSM103 = 103,
    kSM120 = 120,
    kSM121 = 121,
};
INGOT_ENUM_MAX(ComputeCapability, 122)

/// Receives the time of every layer of a run: see IExecutionContext::setProfiler().
///
/// Lifetime: outlives its use by the context. Calls come from the thread that runs, or that calls
/// reportToProfiler().
class IProfiler : public IVersionedInterface {
public:
    IProfiler() = default;
    ~IProfiler() override = default;

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IProfiler", 1, 0}; }
    /// \param layerName valid during the call.
    /// \param ms device time in milliseconds.
    virtual void reportLayerTime(const char* layerName, float ms) noexcept = 0;

protected:
    IProfiler(const IProfiler&) = default;
    IProfiler(IProfiler&&) = default;
    IProfiler& operator=(const IProfiler&) & = default;
    IProfiler& operator=(IProfiler&&) & = default;
};

/// Gives memory for an output whose size is known only during the run. Override
/// reallocateOutputAsync(), which the library calls, or, as older programs do, reallocateOutput().
///
/// Lifetime: outlives its use by the context. Calls come from the thread that runs.
class IOutputAllocator : public IVersionedInterface {
public:
    IOutputAllocator() = default;
    ~IOutputAllocator() override = default;

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IOutputAllocator", 1, 0}; }
    /// \see reallocateOutputAsync
    virtual void* reallocateOutput(const char* tensorName, void* currentMemory, uint64_t size,
                                   uint64_t alignment) noexcept {
        static_cast<void>(tensorName), static_cast<void>(currentMemory);
        static_cast<void>(size), static_cast<void>(alignment);
        return nullptr;
    }
    /// At least `size` bytes for the output, usable on `stream`; old content is not needed.
    /// \param currentMemory the address set for the output, or nullptr; may be returned if it is
    /// large enough.
    /// \returns nullptr when there is no memory: the run fails.
    virtual void* reallocateOutputAsync(const char* tensorName, void* currentMemory, uint64_t size,
                                        uint64_t alignment, cudaStream_t stream) {
        static_cast<void>(stream);
        return reallocateOutput(tensorName, currentMemory, size, alignment);
    }
    /// The shape that the output turned out to have. Called after the memory was given.
    virtual void notifyShape(const char* tensorName, const Dims& dims) noexcept = 0;

protected:
    IOutputAllocator(const IOutputAllocator&) = default;
    IOutputAllocator(IOutputAllocator&&) = default;
    IOutputAllocator& operator=(const IOutputAllocator&) & = default;
    IOutputAllocator& operator=(IOutputAllocator&&) & = default;
};

/// Sees the values of debug tensors that are switched on in the context.
///
/// Lifetime: outlives its use by the context. Calls come from the thread that runs, inside
/// enqueueV3() or executeV2(): for tensors of markDebug() once the run has been enqueued, inputs of
/// the network first, then inner tensors in the order of its layers, then outputs; for those of
/// markUnfusedTensorsAsDebugTensors() after the layer that computes them.
class IDebugListener : public IVersionedInterface {
public:
    IDebugListener() = default;
    ~IDebugListener() override = default;

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IDebugListener", 1, 0}; }
    /// \param addr the values, dense and row-major. On a GPU those of markDebug() are in its memory
    /// (kDEVICE): enqueue what reads them on `stream`, before the next run; when the run is
    /// captured into a CUDA graph, so is that. On the CPU backend, and for unfused tensors, they
    /// are in host memory (kHOST) and complete: read them before the call returns. \param name
    /// valid until the call returns. \param stream that of the run. \returns false to fail the run:
    /// enqueueV3() returns false, which on a GPU does not take back what has been enqueued.
    virtual bool processDebugTensor(const void* addr, TensorLocation location, DataType type,
                                    const Dims& shape, const char* name, cudaStream_t stream) = 0;

protected:
    IDebugListener(const IDebugListener&) = default;
    IDebugListener(IDebugListener&&) = default;
    IDebugListener& operator=(const IDebugListener&) & = default;
    IDebugListener& operator=(IDebugListener&&) & = default;
};

/// An IGpuAllocator in the order of streams only; the two methods without a stream use the default
/// stream.
class IGpuAsyncAllocator : public IGpuAllocator {
public:
    IGpuAsyncAllocator() = default;
    ~IGpuAsyncAllocator() override = default;

    void* allocateAsync(const uint64_t size, const uint64_t alignment, const AllocatorFlags flags,
                        cudaStream_t stream) noexcept override = 0;
    bool deallocateAsync(void* const memory, cudaStream_t stream) noexcept override = 0;
    void* allocate(const uint64_t size, const uint64_t alignment,
                   const AllocatorFlags flags) noexcept override {
        return allocateAsync(size, alignment, flags, nullptr);
    }
    bool deallocate(void* const memory) noexcept override {
        return deallocateAsync(memory, nullptr);
    }
    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IGpuAllocator", 1, 0}; }
};

namespace v_1_0 {
using nvinfer1::IDebugListener;
using nvinfer1::IGpuAsyncAllocator;
using nvinfer1::IOutputAllocator;
using nvinfer1::IProfiler;
} // namespace v_1_0

} // namespace nvinfer1
