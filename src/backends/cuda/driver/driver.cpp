// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/driver.h"

#include "base/cuda_errors.h"
#include "base/device_files.h"
#include "base/error.h"
#include "base/shared_library.h"

namespace ingot::cuda {

namespace {

struct Symbol {
    void* target; // the address of a member of Driver
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
        symbol(d.get_current, "cuCtxGetCurrent"),
        symbol(d.current_device, "cuCtxGetDevice"),
        symbol(d.set_limit, "cuCtxSetLimit"),
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
        symbol(d.module_unload, "cuModuleUnload"),
        symbol(d.module_function, "cuModuleGetFunction"),
        symbol(d.function_set, "cuFuncSetAttribute"),
        symbol(d.launch, "cuLaunchKernelEx"),
        symbol(d.launch_host, "cuLaunchHostFunc"),
        symbol(d.stream_create, "cuStreamCreateWithPriority"),
        symbol(d.stream_priorities, "cuCtxGetStreamPriorityRange"),
        symbol(d.stream_priority, "cuStreamGetPriority"),
        symbol(d.stream_destroy, "cuStreamDestroy_v2"),
        symbol(d.stream_synchronize, "cuStreamSynchronize"),
        symbol(d.stream_wait_event, "cuStreamWaitEvent"),
        symbol(d.stream_set_attribute, "cuStreamSetAttribute"),
        symbol(d.stream_capturing, "cuStreamIsCapturing"),
        symbol(d.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode"),
        symbol(d.begin_capture, "cuStreamBeginCapture_v2"),
        symbol(d.end_capture, "cuStreamEndCapture"),
        symbol(d.graph_instantiate, "cuGraphInstantiateWithFlags"),
        symbol(d.graph_launch, "cuGraphLaunch"),
        symbol(d.graph_destroy, "cuGraphDestroy"),
        symbol(d.graph_exec_destroy, "cuGraphExecDestroy"),
        symbol(d.event_create, "cuEventCreate"),
        symbol(d.event_destroy, "cuEventDestroy_v2"),
        symbol(d.event_record, "cuEventRecord"),
        symbol(d.event_record_with_flags, "cuEventRecordWithFlags"),
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
    CudaProblem problem = CudaProblem::None;
};

Found open_driver() {
    Found f;
    std::string problem;
    static SharedLibrary library = SharedLibrary::open("libcuda.so.1", problem);
    if (!library) {
        f.why = str("there is no CUDA driver (", problem, ")");
        f.problem = CudaProblem::NoDriver;
        return f;
    }
    if (!resolve(library, f.driver, f.why)) {
        f.problem = CudaProblem::OldDriver;
        return f;
    }
    if (CUresult r = f.driver.init(0); r != 0) {
        const char* text = "unknown error";
        f.driver.error_string(r, &text);
        f.why = str("cuInit failed: ", text, forbidden_device_text());
        constexpr CUresult no_device = 100;
        constexpr CUresult driver_mismatch = 803; // the kernel module is older than the library
        f.problem = r == no_device         ? CudaProblem::NoDriver
                    : r == driver_mismatch ? CudaProblem::OldDriver
                                           : CudaProblem::Failed;
    }
    return f;
}

} // namespace

static const Found& found_driver() {
    static const Found found = open_driver();
    return found;
}

const Driver* find_driver(std::string& why) {
    const Found& found = found_driver();
    why = found.why;
    return found.problem == CudaProblem::None ? &found.driver : nullptr;
}

CudaProblem driver_problem() {
    return found_driver().problem;
}

int number_of(const Driver& d, CUdevice device) {
    int count = 0;
    d.device_count(&count);
    for (int i = 0; i < count; ++i) {
        CUdevice other = 0;
        if (d.device_get(&other, i) == 0 && other == device) {
            return i;
        }
    }
    return 0;
}

int current_device(const Driver& d) {
    CUcontext context = nullptr;
    CUdevice device = 0;
    if (d.get_current(&context) != 0 || context == nullptr || d.current_device(&device) != 0) {
        return 0;
    }
    return number_of(d, device);
}

void DeviceHealth::check(const Driver& d, CUresult r, const char* what) {
    if (r == 0) [[likely]] {
        return;
    }
    require_alive();
    const char* error_name = "unknown";
    const char* text = "";
    d.error_name(r, &error_name);
    d.error_string(r, &text);
    std::string message = str(what, ": ", text, " (", error_name, ", ", r, ")");
    if (loses_gpu(r)) {
        std::scoped_lock lock(mutex_);
        if (cause_.empty()) {
            cause_ = message;
            dead_.store(true, std::memory_order_release);
        }
        message += "; the GPU is unusable in this process from now on";
    }
    fail(r == out_of_memory ? ErrorCode::OutOfMemory : ErrorCode::Device, message);
}

void DeviceHealth::fail_dead() const {
    std::scoped_lock lock(mutex_);
    fail(ErrorCode::Device,
         "the GPU is unusable in this process since an earlier failure: ", cause_,
         "; start a new process");
}

} // namespace ingot::cuda
