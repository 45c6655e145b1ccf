// SPDX-License-Identifier: Apache-2.0
// The base of all other headers: macros, CUDA's handle types, data types, shapes, and the
// interfaces that an application implements to log, record errors, allocate and stream.
#pragma once

#include "NvInferVersion.h"

#include <cstddef>
#include <cstdint>

// As in CUDA's own headers, which may be included before or after; none is included here.
struct CUstream_st;
struct CUevent_st;
typedef struct CUstream_st* cudaStream_t; // NOLINT(modernize-use-using)
typedef struct CUevent_st* cudaEvent_t;   // NOLINT(modernize-use-using)

extern "C" {
struct cublasContext;
struct cudnnContext;
}

// INGOT_NO_DEPRECATION_WARNINGS silences the marks on names of older generations.
#if defined(INGOT_NO_DEPRECATION_WARNINGS) || defined(TENSORRT_BUILD_LIB)
#define TRT_DEPRECATED
#define TRT_DEPRECATED_ENUM
#else
#define TRT_DEPRECATED [[deprecated]]
#define TRT_DEPRECATED_ENUM [[deprecated]]
#endif
#define TRT_NODISCARD [[nodiscard]]

#if defined(TENSORRT_BUILD_LIB) && defined(_MSC_VER)
#define TENSORRTAPI __declspec(dllexport)
#elif defined(TENSORRT_BUILD_LIB)
#define TENSORRTAPI __attribute__((visibility("default")))
#else
#define TENSORRTAPI
#endif
#define TRT_DEPRECATED_API TRT_DEPRECATED TENSORRTAPI
#define TRTNOEXCEPT

/// TensorRT's API, implemented by Ingot.
///
/// Three kinds of classes:
/// - Made by the library and handed out by a `create...` or `build...` method: the caller deletes
///   them. Ingot keeps alive what such an object needs (its parents, except logger, recorder and
///   allocators, which the application owns), so the order of deletion does not matter.
/// - Parts of another object (tensors and layers of a network, profiles of a builder): they live
///   as long as it does and cannot be deleted.
/// - Interfaces (those that derive from IVersionedInterface): the application implements them, and
///   its objects outlive whatever they were given to.
///
/// Methods never throw. A method that returns nullptr or false has reported why: to the error
/// recorder of the object, or of the object that made it; where there is none, to the logger.
///
/// Strings given to the library are copied; strings it returns live as long as the object, unless
/// said otherwise. Sizes are bytes, times milliseconds, unless said otherwise.
namespace nvinfer1 {

using char_t = char;
using AsciiChar = char_t;

namespace impl {
template <typename T>
struct EnumMaxImpl;
} // namespace impl

/// One more than the largest number among an enumeration's current names (names kept from older
/// generations do not count).
template <typename T>
constexpr int32_t EnumMax() noexcept {
    return impl::EnumMaxImpl<T>::kVALUE;
}

// Stands at the scope of nvinfer1, after the enumeration.
#define INGOT_ENUM_MAX(type, value)                                                                \
    namespace impl {                                                                               \
    template <>                                                                                    \
    struct EnumMaxImpl<type> {                                                                     \
        static constexpr int32_t kVALUE = value;                                                   \
    };                                                                                             \
    }

/// Element type of a tensor or of weights.
enum class DataType : int32_t {
    kFLOAT = 0, ///< IEEE binary32
    kHALF = 1,  ///< IEEE binary16
    kINT8 = 2,  ///< Quantised where a scale belongs to it
    kINT32 = 3,
    kBOOL = 4, ///< A byte, 0 or 1
    kUINT8 = 5,
    kFP8 = 6,  ///< E4M3: 4 exponent, 3 mantissa bits, no infinities, largest 448
    kBF16 = 7, ///< The upper half of binary32
    kINT64 = 8,
    kINT4 = 9,  ///< Two per byte, the first in the low bits
    kFP4 = 10,  ///< E2M1, two per byte, the first in the low bits
    kE8M0 = 11, ///< A power of two, for scales
};
INGOT_ENUM_MAX(DataType, 12)

/// A shape: nbDims sizes in d. In a network and an engine -1 is a size that is known only at run
/// time. nbDims == -1 says that there is no shape (an error, or a rank that is not known).
class Dims64 {
public:
    static constexpr int32_t MAX_DIMS{8};

    int32_t nbDims;
    int64_t d[MAX_DIMS];
};
using Dims = Dims64;

/// How elements lie in memory. In the vectorised ones the channel dimension (third from last;
/// fourth from last in the D ones) is grouped: CHWx keeps groups of x channels as an innermost axis
/// of length x, HWCx puts channels, padded to a multiple of x, innermost. Padding beyond the
/// channels of an input is not read; in an output it is zero.
enum class TensorFormat : int32_t {
    kLINEAR = 0,     ///< Row-major, the last dimension contiguous; all types
    kCHW2 = 1,       ///< kHALF, kBF16
    kHWC8 = 2,       ///< kHALF, kBF16
    kCHW4 = 3,       ///< kHALF, kINT8
    kCHW16 = 4,      ///< kHALF
    kCHW32 = 5,      ///< kFLOAT, kHALF, kINT8
    kDHWC8 = 6,      ///< kHALF, kBF16
    kCDHW32 = 7,     ///< kHALF, kINT8
    kHWC = 8,        ///< Channels innermost, not padded; kFLOAT, kUINT8
    kDLA_LINEAR = 9, ///< For DLA: builds refuse it
    kDLA_HWC4 = 10,  ///< For DLA: builds refuse it
    kHWC16 = 11,     ///< kHALF, kINT8, kFP8
    kDHWC = 12,      ///< Channels innermost, not padded; kFLOAT
};
INGOT_ENUM_MAX(TensorFormat, 13)

/// Set of TensorFormat: bit i stands for format i.
using TensorFormats = uint32_t;

using InterfaceKind = const char*;

/// Which interface, of which version, an object implements.
class InterfaceInfo {
public:
    InterfaceKind kind;
    int32_t major;
    int32_t minor;
};

enum class APILanguage : int32_t {
    kCPP = 0,
    kPYTHON = 1,
};
INGOT_ENUM_MAX(APILanguage, 2)

/// Base of the interfaces that applications implement. They do not override its methods. The
/// following holds unless an interface says otherwise.
///
/// Lifetime: the implementation outlives what it is given to; the library never deletes it.
/// Thread safety: calls come one at a time, on the thread of the call that causes them.
/// Errors: results report them; an exception ends the program. A failure fails the call that caused
/// it.
class IVersionedInterface {
public:
    /// Language of the implementation.
    virtual APILanguage getAPILanguage() const noexcept { return APILanguage::kCPP; }
    /// Which interface this is.
    virtual InterfaceInfo getInterfaceInfo() const noexcept = 0;

    virtual ~IVersionedInterface() noexcept = default;

protected:
    IVersionedInterface() = default;
    IVersionedInterface(const IVersionedInterface&) = default;
    IVersionedInterface(IVersionedInterface&&) = default;
    IVersionedInterface& operator=(const IVersionedInterface&) & = default;
    IVersionedInterface& operator=(IVersionedInterface&&) & = default;
};

enum class AllocatorFlag : int32_t {
    kRESIZABLE = 0, ///< reallocate() may be called for the memory
};
INGOT_ENUM_MAX(AllocatorFlag, 1)

/// Set of AllocatorFlag: bit i stands for flag i.
using AllocatorFlags = uint32_t;

/// Gives the library device memory (host memory on the CPU backend). Override allocateAsync() and
/// deallocateAsync(), which is what the library calls, or, as older programs do, allocate() and
/// deallocate(), to which they fall back.
///
/// Lifetime: outlives every object that it was given to and what these made.
/// Thread safety: the implementation's task; calls come from several threads at once.
class IGpuAllocator : public IVersionedInterface {
public:
    IGpuAllocator() = default;
    ~IGpuAllocator() override = default;

    /// Memory that is ready at once. \see allocateAsync
    virtual void* allocate(const uint64_t size, const uint64_t alignment,
                           const AllocatorFlags flags) noexcept {
        static_cast<void>(size), static_cast<void>(alignment), static_cast<void>(flags);
        return nullptr;
    }
    /// Grows or shrinks memory of a kRESIZABLE allocation, keeping the smaller of both sizes'
    /// content. Returns its new address, or nullptr, and then baseAddr stays valid as it was.
    virtual void* reallocate(void* const baseAddr, uint64_t alignment, uint64_t newSize) noexcept {
        static_cast<void>(baseAddr), static_cast<void>(alignment), static_cast<void>(newSize);
        return nullptr;
    }
    /// Frees memory, also nullptr. Returns false when it could not. \see deallocateAsync
    virtual bool deallocate(void* const memory) noexcept {
        static_cast<void>(memory);
        return false;
    }
    /// `size` bytes that may be used on `stream` from here on.
    /// \param alignment a power of two, or 0 for any; never more than cudaMalloc guarantees.
    /// \returns nullptr for size 0 and when there is no memory.
    virtual void* allocateAsync(const uint64_t size, const uint64_t alignment,
                                const AllocatorFlags flags, cudaStream_t stream) noexcept {
        static_cast<void>(stream);
        return allocate(size, alignment, flags);
    }
    /// Frees memory once `stream` has passed this point. Returns false when it could not.
    virtual bool deallocateAsync(void* const memory, cudaStream_t stream) noexcept {
        static_cast<void>(stream);
        return deallocate(memory);
    }
    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IGpuAllocator", 1, 0}; }

protected:
    IGpuAllocator(const IGpuAllocator&) = default;
    IGpuAllocator(IGpuAllocator&&) = default;
    IGpuAllocator& operator=(const IGpuAllocator&) & = default;
    IGpuAllocator& operator=(IGpuAllocator&&) & = default;
};

/// Receives messages. Given to createInferBuilder(), createInferRuntime() and their like; all
/// objects that come of them use it.
///
/// Lifetime: outlives them all. Thread safety: the implementation's task; messages come from
/// several threads at once, and at any time.
class ILogger : public IVersionedInterface {
public:
    enum class Severity : int32_t {
        kINTERNAL_ERROR = 0, ///< A bug in Ingot
        kERROR = 1,          ///< A call failed
        kWARNING = 2,        ///< Something was adapted that the caller may want to know of
        kINFO = 3,
        kVERBOSE = 4,
    };

    /// \param msg one message without a line end, valid during the call.
    virtual void log(Severity severity, const AsciiChar* msg) noexcept = 0;

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"ILogger", 1, 0}; }

    ILogger() = default;
    ~ILogger() override = default;

protected:
    ILogger(const ILogger&) = default;
    ILogger(ILogger&&) = default;
    ILogger& operator=(const ILogger&) & = default;
    ILogger& operator=(ILogger&&) & = default;
};
INGOT_ENUM_MAX(ILogger::Severity, 5)

/// The kind of an error, for an IErrorRecorder.
enum class ErrorCode : int32_t {
    kSUCCESS = 0,
    kUNSPECIFIED_ERROR = 1,
    kINTERNAL_ERROR = 2,        ///< A bug in Ingot
    kINVALID_ARGUMENT = 3,      ///< An argument is wrong in itself
    kINVALID_CONFIG = 4,        ///< An argument does not fit others or the object's settings
    kFAILED_ALLOCATION = 5,     ///< Host or device memory ran out, or an allocator refused
    kFAILED_INITIALIZATION = 6, ///< Driver, compiler or another library is not usable
    kFAILED_EXECUTION = 7,      ///< A run failed or was cancelled
    kFAILED_COMPUTATION = 8,    ///< A run ended with wrong values
    kINVALID_STATE = 9,         ///< The call does not fit what was called before
    kUNSUPPORTED_STATE = 10,    ///< Right, but not possible on this device or in this build
};
INGOT_ENUM_MAX(ErrorCode, 11)

/// Collects the errors of the objects it is given to and of those that they create afterwards.
///
/// Lifetime: counted. An object that takes it calls incRefCount(), and decRefCount() when it lets
/// go; it must live until then. Thread safety: the implementation's task.
class IErrorRecorder : public IVersionedInterface {
public:
    using ErrorDesc = const char*;
    using RefCount = int32_t;
    /// Longer descriptions may be cut to this many characters by a recorder.
    static constexpr size_t kMAX_DESC_LENGTH{127U};

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IErrorRecorder", 1, 0}; }

    virtual int32_t getNbErrors() const noexcept = 0;
    virtual ErrorCode getErrorCode(int32_t errorIdx) const noexcept = 0;
    virtual ErrorDesc getErrorDesc(int32_t errorIdx) const noexcept = 0;
    /// Whether errors were dropped for lack of room.
    virtual bool hasOverflowed() const noexcept = 0;
    virtual void clear() noexcept = 0;
    /// \param desc valid during the call.
    /// \returns whether the error is fatal.
    virtual bool reportError(ErrorCode val, ErrorDesc desc) noexcept = 0;
    virtual RefCount incRefCount() noexcept = 0;
    virtual RefCount decRefCount() noexcept = 0;

    IErrorRecorder() = default;
    ~IErrorRecorder() noexcept override = default;

protected:
    IErrorRecorder(const IErrorRecorder&) = default;
    IErrorRecorder(IErrorRecorder&&) = default;
    IErrorRecorder& operator=(const IErrorRecorder&) & = default;
    IErrorRecorder& operator=(IErrorRecorder&&) & = default;
};

enum class TensorIOMode : int32_t {
    kNONE = 0, ///< Not an input or output
    kINPUT = 1,
    kOUTPUT = 2,
};
INGOT_ENUM_MAX(TensorIOMode, 3)

/// From where IStreamReaderV2::seek() counts.
enum class SeekPosition : int32_t {
    kSET = 0,
    kCUR = 1,
    kEND = 2,
};
INGOT_ENUM_MAX(SeekPosition, 3)

/// Source of an engine's bytes, read once from front to back. Superseded by IStreamReaderV2.
class IStreamReader : public IVersionedInterface {
public:
    IStreamReader() = default;
    ~IStreamReader() override = default;

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IStreamReader", 1, 0}; }
    /// Copies up to nbBytes to host memory. Returns how many; 0 at the end, -1 on an error.
    virtual int64_t read(void* destination, int64_t nbBytes) = 0;

protected:
    IStreamReader(const IStreamReader&) = default;
    IStreamReader(IStreamReader&&) = default;
    IStreamReader& operator=(const IStreamReader&) & = default;
    IStreamReader& operator=(IStreamReader&&) & = default;
};

/// Source of an engine's bytes. Used by one thread at a time, during the call it is given to.
class IStreamReaderV2 : public IVersionedInterface {
public:
    IStreamReaderV2() = default;
    ~IStreamReaderV2() override = default;

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IStreamReaderV2", 1, 0}; }
    /// Copies up to nbBytes to host or device memory, in the order of `stream`. Returns how many;
    /// 0 at the end, -1 on an error.
    virtual int64_t read(void* destination, int64_t nbBytes, cudaStream_t stream) noexcept = 0;
    /// Moves the place of the next read. Returns false when it cannot.
    virtual bool seek(int64_t offset, SeekPosition where) noexcept = 0;

protected:
    IStreamReaderV2(const IStreamReaderV2&) = default;
    IStreamReaderV2(IStreamReaderV2&&) = default;
    IStreamReaderV2& operator=(const IStreamReaderV2&) & = default;
    IStreamReaderV2& operator=(IStreamReaderV2&&) & = default;
};

/// Sink for an engine's bytes. Used by one thread at a time, during the call it is given to.
class IStreamWriter : public IVersionedInterface {
public:
    IStreamWriter() = default;
    ~IStreamWriter() override = default;

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IStreamWriter", 1, 0}; }
    /// Takes nbBytes of host memory. Returns how many were written; fewer end the build with an
    /// error.
    virtual int64_t write(const void* data, int64_t nbBytes) = 0;

protected:
    IStreamWriter(const IStreamWriter&) = default;
    IStreamWriter(IStreamWriter&&) = default;
    IStreamWriter& operator=(const IStreamWriter&) & = default;
    IStreamWriter& operator=(IStreamWriter&&) & = default;
};

// Names by which some programs spell versioned interfaces.
namespace v_1_0 {
using nvinfer1::IErrorRecorder;
using nvinfer1::IGpuAllocator;
using nvinfer1::ILogger;
using nvinfer1::IStreamReader;
using nvinfer1::IStreamReaderV2;
using nvinfer1::IStreamWriter;
} // namespace v_1_0

} // namespace nvinfer1

/// Version that the library was built as, as NV_TENSORRT_VERSION counts it, and its parts.
extern "C" TENSORRTAPI int32_t getInferLibVersion() noexcept;
extern "C" TENSORRTAPI int32_t getInferLibMajorVersion() noexcept;
extern "C" TENSORRTAPI int32_t getInferLibMinorVersion() noexcept;
extern "C" TENSORRTAPI int32_t getInferLibPatchVersion() noexcept;
extern "C" TENSORRTAPI int32_t getInferLibBuildVersion() noexcept;
