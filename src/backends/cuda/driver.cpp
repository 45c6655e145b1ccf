// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver.h"

#include "base/error.h"
#include "base/shared_library.h"

#include <mutex>

namespace ingot::cuda {

namespace {

struct Symbol {
    void* target; // the address of a Driver member
    const char* name;
    bool optional = false;
};

template <class F>
Symbol symbol(F*& member, const char* name, bool optional = false) {
    return {&member, name, optional};
}

bool resolve(const SharedLibrary& library, Driver& d, std::string& why) {
    const Symbol symbols[] = {
        symbol(d.init, "cuInit"),
        symbol(d.driver_version, "cuDriverGetVersion"),
        symbol(d.device_count, "cuDeviceGetCount"),
        symbol(d.device_get, "cuDeviceGet"),
        symbol(d.device_name, "cuDeviceGetName"),
        symbol(d.device_attribute, "cuDeviceGetAttribute"),
        symbol(d.primary_retain, "cuDevicePrimaryCtxRetain"),
        symbol(d.set_current, "cuCtxSetCurrent"),
        symbol(d.mem_info, "cuMemGetInfo_v2"),
        symbol(d.mem_alloc, "cuMemAlloc_v2"),
        symbol(d.mem_free, "cuMemFree_v2"),
        symbol(d.mem_alloc_host, "cuMemAllocHost_v2"),
        symbol(d.mem_free_host, "cuMemFreeHost"),
        symbol(d.copy_to_device, "cuMemcpyHtoDAsync_v2"),
        symbol(d.copy_to_host, "cuMemcpyDtoHAsync_v2"),
        symbol(d.copy_on_device, "cuMemcpyDtoDAsync_v2"),
        symbol(d.fill, "cuMemsetD8Async"),
        symbol(d.module_load, "cuModuleLoadData"),
        symbol(d.module_function, "cuModuleGetFunction"),
        symbol(d.function_set, "cuFuncSetAttribute"),
        symbol(d.launch, "cuLaunchKernelEx"),
        symbol(d.stream_create, "cuStreamCreate"),
        symbol(d.stream_destroy, "cuStreamDestroy_v2"),
        symbol(d.stream_synchronize, "cuStreamSynchronize"),
        symbol(d.begin_capture, "cuStreamBeginCapture_v2"),
        symbol(d.end_capture, "cuStreamEndCapture"),
        symbol(d.graph_instantiate, "cuGraphInstantiateWithFlags"),
        symbol(d.graph_launch, "cuGraphLaunch"),
        symbol(d.graph_destroy, "cuGraphDestroy"),
        symbol(d.graph_exec_destroy, "cuGraphExecDestroy"),
        symbol(d.event_create, "cuEventCreate"),
        symbol(d.event_destroy, "cuEventDestroy_v2"),
        symbol(d.event_record, "cuEventRecord"),
        symbol(d.event_synchronize, "cuEventSynchronize"),
        symbol(d.event_elapsed, "cuEventElapsedTime"),
        symbol(d.error_name, "cuGetErrorName"),
        symbol(d.error_string, "cuGetErrorString"),
        symbol(d.encode_tiled, "cuTensorMapEncodeTiled", true),
    };
    for (const Symbol& s : symbols) {
        void* address = library.symbol(s.name);
        if (address == nullptr && !s.optional) {
            why = str("the CUDA driver lacks ", s.name, ": it is older than CUDA 12.0, update it");
            return false;
        }
        *static_cast<void**>(s.target) = address;
    }
    return true;
}

struct Found {
    Driver driver{};
    std::string why;
    bool ok = false;
};

Found open_driver() {
    Found f;
    std::string problem;
    static SharedLibrary library = SharedLibrary::open("libcuda.so.1", problem);
    if (!library) {
        f.why = str("there is no CUDA driver (", problem, ")");
        return f;
    }
    if (!resolve(library, f.driver, f.why)) {
        return f;
    }
    if (CUresult r = f.driver.init(0); r != 0) {
        const char* text = "unknown error";
        f.driver.error_string(r, &text);
        f.why = str("cuInit failed: ", text);
        return f;
    }
    f.ok = true;
    return f;
}

/// The error after which the context is unusable; empty until there is one.
struct FirstCause {
    std::mutex mutex;
    std::string text;
};

FirstCause& first_cause() {
    static FirstCause cause;
    return cause;
}

/// Errors that leave the context unusable, by their numbers: illegal address, launch timeout,
/// assert, hardware stack error, illegal instruction, misaligned address, invalid address space,
/// invalid program counter, launch failed, ECC.
bool poisons(CUresult r) {
    return r == 700 || r == 702 || (r >= 710 && r <= 719) || r == 214;
}

} // namespace

const Driver* find_driver(std::string& why) {
    static const Found found = open_driver();
    why = found.why;
    return found.ok ? &found.driver : nullptr;
}

void check(const Driver& d, CUresult r, const char* what) {
    if (r == 0) [[likely]] {
        return;
    }
    const char* error_name = "unknown";
    const char* text = "";
    d.error_name(r, &error_name);
    d.error_string(r, &text);
    std::string message = str(what, ": ", text, " (", error_name, ", ", r, ")");
    FirstCause& cause = first_cause();
    std::scoped_lock lock(cause.mutex);
    if (!cause.text.empty()) {
        fail(ErrorCode::Device,
             "the GPU is unusable in this process since an earlier failure: ", cause.text,
             "; start a new process");
    }
    if (poisons(r)) {
        cause.text = message;
        message += "; the GPU is unusable in this process from now on";
    }
    fail(r == 2 ? ErrorCode::OutOfMemory : ErrorCode::Device, message);
}

} // namespace ingot::cuda
