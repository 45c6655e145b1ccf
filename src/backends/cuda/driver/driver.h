// SPDX-License-Identifier: Apache-2.0
// The CUDA driver, opened at run time: the types and functions that the backend uses, with the
// driver API's names and numbers. The build needs no headers of NVIDIA's.
#pragma once

#include "backends/backends.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace ingot::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;

struct alignas(64) CUtensorMap {
    uint64_t opaque[16];
};

/// CUlaunchAttribute: an id, four bytes of padding, and 64 bytes of value.
struct CUlaunchAttribute {
    int id;
    int pad;
    union {
        unsigned int dims[3]; // cluster dimension
        int flag;
        char bytes[64];
    };
};

struct CUlaunchConfig {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared;
    CUstream stream;
    CUlaunchAttribute* attributes;
    unsigned int attribute_count;
};

inline constexpr int launch_cluster_dimension = 4;
inline constexpr int launch_programmatic_serialization = 6;
inline constexpr int capture_thread_local = 1;
inline constexpr int capture_relaxed = 2;
inline constexpr unsigned int event_record_external = 1;
inline constexpr int stream_access_policy_window = 1;
inline constexpr int limit_persisting_l2 = 6;
inline constexpr int stream_non_blocking = 1;
inline constexpr unsigned int event_without_timing = 2;
inline constexpr int function_max_dynamic_shared = 8;
inline constexpr CUresult out_of_memory = 2;

/// CUstreamAttrValue with an access policy window: 64 bytes.
struct CUaccessPolicyWindow {
    void* base;
    size_t bytes;
    float hit_ratio; // the share of accesses to the window that count as hits
    int hit;         // 0 normal, 1 streaming, 2 persisting
    int miss;
    unsigned char rest[36];
};
static_assert(sizeof(CUaccessPolicyWindow) == 64);

/// Device attributes by their numbers.
enum class DeviceAttribute {
    MultiprocessorCount = 16,
    ClockRate = 13,
    L2CacheSize = 38,
    MaxThreadsPerMultiprocessor = 39,
    ComputeCapabilityMajor = 75,
    ComputeCapabilityMinor = 76,
    MaxSharedPerMultiprocessor = 81,
    MaxSharedPerBlockOptin = 97,
    MaxPersistingL2CacheSize = 108,
    MaxAccessPolicyWindowSize = 109,
};

/// One pointer per function; the comment gives the symbol where it is versioned.
struct Driver {
    CUresult (*init)(unsigned int);
    CUresult (*driver_version)(int*);
    CUresult (*device_count)(int*);
    CUresult (*device_get)(CUdevice*, int);
    CUresult (*device_name)(char*, int, CUdevice);
    CUresult (*device_attribute)(int*, int, CUdevice);
    CUresult (*primary_retain)(CUcontext*, CUdevice);
    CUresult (*set_current)(CUcontext);
    CUresult (*get_current)(CUcontext*);
    CUresult (*current_device)(CUdevice*);
    CUresult (*set_limit)(int, size_t);
    CUresult (*mem_info)(size_t*, size_t*);
    CUresult (*mem_alloc)(CUdeviceptr*, size_t);
    CUresult (*mem_free)(CUdeviceptr);
    CUresult (*mem_alloc_host)(void**, size_t);
    CUresult (*mem_free_host)(void*);
    CUresult (*copy_to_device)(CUdeviceptr, const void*, size_t, CUstream);
    CUresult (*copy_to_host)(void*, CUdeviceptr, size_t, CUstream);
    CUresult (*copy_on_device)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
    CUresult (*fill)(CUdeviceptr, unsigned char, size_t, CUstream);
    CUresult (*module_load)(CUmodule*, const void*);
    CUresult (*module_unload)(CUmodule);
    CUresult (*module_function)(CUfunction*, CUmodule, const char*);
    CUresult (*function_set)(CUfunction, int, int);
    CUresult (*launch)(const CUlaunchConfig*, CUfunction, void**, void**);
    CUresult (*launch_host)(CUstream, void (*)(void*), void*);
    CUresult (*stream_create)(CUstream*, unsigned int, int priority);
    CUresult (*stream_priorities)(int* least, int* greatest);
    CUresult (*stream_priority)(CUstream, int*);
    CUresult (*stream_destroy)(CUstream);
    CUresult (*stream_synchronize)(CUstream);
    CUresult (*stream_wait_event)(CUstream, CUevent, unsigned int);
    CUresult (*stream_set_attribute)(CUstream, int, const CUaccessPolicyWindow*);
    CUresult (*stream_capturing)(CUstream, int* status);
    CUresult (*exchange_capture_mode)(int* mode); // of the calling thread
    CUresult (*begin_capture)(CUstream, int);
    CUresult (*end_capture)(CUstream, CUgraph*);
    CUresult (*graph_instantiate)(CUgraphExec*, CUgraph, unsigned long long);
    CUresult (*graph_launch)(CUgraphExec, CUstream);
    CUresult (*graph_destroy)(CUgraph);
    CUresult (*graph_exec_destroy)(CUgraphExec);
    CUresult (*event_create)(CUevent*, unsigned int);
    CUresult (*event_destroy)(CUevent);
    CUresult (*event_record)(CUevent, CUstream);
    CUresult (*event_record_with_flags)(CUevent, CUstream, unsigned int);
    CUresult (*event_synchronize)(CUevent);
    CUresult (*event_elapsed)(float*, CUevent, CUevent);
    CUresult (*error_name)(CUresult, const char**);
    CUresult (*error_string)(CUresult, const char**);
    CUresult (*encode_tiled)(CUtensorMap*, int, unsigned int, void*, const uint64_t*,
                             const uint64_t*, const uint32_t*, const uint32_t*, int, int, int, int);
};

/// The driver, opened and initialised once; null without one, and `why` gives the reason.
const Driver* find_driver(std::string& why);
/// The driver's problem, or None.
CudaProblem driver_problem();
/// The driver's number of a device.
int number_of(const Driver& d, CUdevice device);
/// The device that is current for the calling thread; 0 without one.
int current_device(const Driver& d);

/// Whether a device is usable. Some errors leave its context unusable until the process ends; the
/// first of them is kept, and later calls fail with it. Thread safe.
class DeviceHealth {
public:
    /// Throws unless r is 0: OutOfMemory or Device, with the attempted call and the driver's
    /// message.
    void check(const Driver& d, CUresult r, const char* what);
    /// Errors: Device with the first fatal error, if there was one.
    void require_alive() const {
        if (dead_.load(std::memory_order_acquire)) [[unlikely]] {
            fail_dead();
        }
    }
    bool dead() const { return dead_.load(std::memory_order_acquire); }
    /// The first fatal error; null without one. It never changes.
    const char* cause() const { return dead() ? cause_.c_str() : nullptr; }

private:
    [[noreturn]] void fail_dead() const;
    std::atomic<bool> dead_{false};
    mutable std::mutex mutex_;
    std::string cause_;
};

} // namespace ingot::cuda
