// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 of two emulated GPUs of compute capability 8.0, which run the kernels that
// emulated_nvrtc.cpp compiles. Everything runs at once, in the call that queues it. Thread safe.
// ingot_emulated_lose() lets a GPU fail as a real one does after an illegal access. Functions that
// always answer the same are in emulated_cuda_fixed.cpp, those that tests ask in
// emulated_cuda_counts.cpp.
#include "backends/cuda/driver/driver.h"
#include "base/error.h"
#include "emulator/programs/emulated_device.h"

#include <algorithm>
#include <cstring>
#include <iterator>

using namespace ingot;       // NOLINT(google-build-using-namespace): a program of its own
using namespace ingot::cuda; // NOLINT(google-build-using-namespace)
using namespace ingot::emulated_driver; // NOLINT(google-build-using-namespace)

namespace ingot::emulated_driver {

// Neither is ever destroyed: other libraries call at the end of threads and of the process.

std::recursive_mutex& mutex() {
    static auto* m = new std::recursive_mutex;
    return *m;
}

Device& device(int i) {
    static auto* all = new Device[device_count];
    return all[i];
}

} // namespace ingot::emulated_driver

namespace {

constexpr CUresult bad_value = 1;
constexpr CUresult no_context = 201;
constexpr CUresult failed = 719; // CUDA_ERROR_LAUNCH_FAILED: the emulator says why on stderr

struct LoadedText {
    std::string binary;
};
struct StreamOf {
    int device = 0;
    std::unique_ptr<Stream> stream;
    bool capturing = false;
    int priority = 0;
};
struct WorkGraph {
    int device = 0;
    std::unique_ptr<Recording> recording;
};

/// A thread's stack of current contexts; a context is a device's address.
std::vector<Device*>& contexts() {
    thread_local auto* stack = new std::vector<Device*>;
    return *stack;
}

Device* current() {
    return contexts().empty() ? nullptr : contexts().back();
}

/// Runs f(device) on the current one, unless it is lost, and counts the call.
template <class F>
CUresult on_device(F&& f, const char* call = __builtin_FUNCTION()) {
    std::scoped_lock lock(mutex());
    Device* d = current();
    if (d == nullptr) {
        return no_context;
    }
    ++d->counted[call];
    if (d->lost != 0) {
        ++d->calls_after;
        return d->lost;
    }
    try {
        return f(*d);
    } catch (const Error& e) {
        std::fprintf(stderr, "emulated CUDA: %s\n", e.what());
        return e.code() == ErrorCode::OutOfMemory ? out_of_memory : failed;
    }
}

/// The stream of a handle; each thread's default stream for null.
Stream& stream_of(Device& d, CUstream handle) {
    thread_local Stream* own[device_count];
    if (handle != nullptr) {
        return *reinterpret_cast<StreamOf*>(handle)->stream;
    }
    Stream*& s = own[&d == &device(0) ? 0 : 1];
    if (s == nullptr) {
        s = d.gpu.create_stream().release();
    }
    return *s;
}

std::byte* at(CUdeviceptr p) {
    return reinterpret_cast<std::byte*>(p);
}

template <class T>
CUresult answer(T* out, T value) {
    *out = value;
    return 0;
}

/// `counted`: the bytes of the device's own memory.
CUresult allocate(size_t bytes, void** out, size_t counted = 0,
                  const char* call = __builtin_FUNCTION()) {
    auto take = [&](Device& d) {
        std::byte* memory = d.gpu.allocate_shared(static_cast<int64_t>(bytes));
        d.memory.emplace(memory, counted);
        d.used += static_cast<int64_t>(counted);
        return answer(out, static_cast<void*>(memory));
    };
    return on_device(take, call);
}

CUresult release(void* memory, const char* call = __builtin_FUNCTION()) {
    auto give_back = [&](Device& d) -> CUresult {
        auto it = d.memory.find(static_cast<std::byte*>(memory));
        if (it == d.memory.end()) {
            return bad_value;
        }
        d.used -= static_cast<int64_t>(it->second);
        d.memory.erase(it);
        d.gpu.release(static_cast<std::byte*>(memory));
        return 0;
    };
    return on_device(give_back, call);
}

} // namespace

// --- devices and contexts ------------------------------------------------------------------------

EXPORT CUresult cuDeviceGetCount(int* count) {
    return answer(count, device_count);
}
EXPORT CUresult cuDeviceGet(CUdevice* out, int i) {
    return i >= 0 && i < device_count ? answer(out, i) : bad_value;
}
EXPORT CUresult cuDeviceGetAttribute(int* value, int which, CUdevice i) {
    constexpr int has_memory_pools = 115; // CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
    if (which == has_memory_pools) {
        return answer(value, 1);
    }
    const kernels::Arch& arch = device(i).gpu.arch();
    switch (static_cast<DeviceAttribute>(which)) {
    case DeviceAttribute::ComputeCapabilityMajor:
        return answer(value, arch.cc / 10);
    case DeviceAttribute::ComputeCapabilityMinor:
        return answer(value, arch.cc % 10);
    case DeviceAttribute::MultiprocessorCount:
        return answer(value, static_cast<int>(arch.sms));
    case DeviceAttribute::MaxThreadsPerMultiprocessor:
        return answer(value, static_cast<int>(arch.threads_per_sm));
    case DeviceAttribute::MaxSharedPerBlockOptin:
        return answer(value, static_cast<int>(arch.shared_per_block));
    case DeviceAttribute::MaxSharedPerMultiprocessor:
        return answer(value, static_cast<int>(arch.shared_per_sm));
    case DeviceAttribute::L2CacheSize:
        return answer(value, static_cast<int>(arch.l2_bytes));
    case DeviceAttribute::ClockRate:
        return answer(value, 1410000);
    default:
        return answer(value, 0);
    }
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice i) {
    return answer(out, reinterpret_cast<CUcontext>(&device(i)));
}
EXPORT CUresult cuCtxSetCurrent(CUcontext c) {
    if (!contexts().empty()) {
        contexts().pop_back();
    }
    if (c != nullptr) {
        contexts().push_back(reinterpret_cast<Device*>(c));
    }
    return 0;
}
EXPORT CUresult cuCtxGetCurrent(CUcontext* out) {
    return answer(out, reinterpret_cast<CUcontext>(current()));
}
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext c) {
    contexts().push_back(reinterpret_cast<Device*>(c));
    return 0;
}
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* out) {
    *out = reinterpret_cast<CUcontext>(current());
    if (*out == nullptr) {
        return no_context;
    }
    contexts().pop_back();
    return 0;
}
EXPORT CUresult cuCtxGetDevice(CUdevice* out) {
    return current() == nullptr ? no_context : answer(out, current() == &device(0) ? 0 : 1);
}
EXPORT CUresult cuCtxSetLimit(int, size_t) {
    return on_device([](Device&) { return 0; });
}
EXPORT CUresult cuCtxSynchronize() {
    return on_device([](Device&) { return 0; });
}

// --- memory --------------------------------------------------------------------------------------

EXPORT CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream) {
    void* memory = nullptr;
    CUresult r = allocate(bytes, &memory, bytes);
    *out = reinterpret_cast<CUdeviceptr>(memory);
    return r;
}
static void count_stopping() {
    std::scoped_lock lock(mutex());
    if (Device* d = current()) {
        ++d->stopping;
    }
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
    count_stopping();
    return cuMemAllocAsync(out, bytes, nullptr);
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr p) {
    count_stopping();
    return release(at(p));
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr p, CUstream) {
    return release(at(p));
}
static void count_locking() {
    std::scoped_lock lock(mutex());
    if (Device* d = current()) {
        ++d->locking;
    }
}
EXPORT CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned) {
    count_locking();
    return allocate(bytes, out);
}
EXPORT CUresult cuMemAllocHost_v2(void** out, size_t bytes) {
    return cuMemHostAlloc(out, bytes, 0);
}
EXPORT CUresult cuMemFreeHost(void* p) {
    count_locking();
    return release(p);
}
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream s) {
    return on_device([&](Device& d) {
        stream_of(d, s).upload(at(to), static_cast<const std::byte*>(from), bytes);
        return 0;
    });
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream s) {
    return on_device([&](Device& d) {
        stream_of(d, s).read(to, at(from), bytes);
        return 0;
    });
}
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
    return on_device([&](Device& d) {
        stream_of(d, s).copy(at(to), at(from), bytes);
        return 0;
    });
}
EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
    return on_device([&](Device&) {
        std::memmove(at(to), at(from), bytes);
        return 0;
    });
}
EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream s) {
    return on_device([&](Device& d) {
        stream_of(d, s).fill(at(to), byte, bytes);
        return 0;
    });
}

// --- kernels -------------------------------------------------------------------------------------

EXPORT CUresult cuModuleLoadData(CUmodule* out, const void* image) {
    return on_device([&](Device&) {
        uint64_t bytes = 0; // before what emulated_nvrtc.cpp gives
        std::memcpy(&bytes, image, sizeof bytes);
        auto made = std::make_unique<LoadedText>();
        made->binary.assign(static_cast<const char*>(image) + sizeof bytes, bytes);
        return answer(out, reinterpret_cast<CUmodule>(made.release()));
    });
}
EXPORT CUresult cuModuleUnload(CUmodule m) {
    std::unique_ptr<LoadedText>(reinterpret_cast<LoadedText*>(m)).reset();
    return 0;
}
EXPORT CUresult cuModuleGetFunction(CUfunction* out, CUmodule m, const char* name) {
    return on_device([&](Device& d) {
        const auto& binary = reinterpret_cast<LoadedText*>(m)->binary;
        d.loaded.push_back(d.gpu.load(binary, name, d.gpu.arch().shared_per_block));
        auto* function = const_cast<Function*>(d.loaded.back().get());
        return answer(out, reinterpret_cast<CUfunction>(function));
    });
}
static void count_launch(Device& d, CUstream s) {
    const auto* stream = reinterpret_cast<const StreamOf*>(s);
    if (stream == nullptr || !stream->capturing) {
        ++d.calls[stream != nullptr && stream->priority < 0 ? 1 : 0];
    }
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** parameters, void**) {
    return on_device([&](Device& d) {
        const auto* function = reinterpret_cast<const Function*>(f);
        auto it = std::find_if(d.loaded.begin(), d.loaded.end(),
                               [&](const auto& l) { return l.get() == function; });
        d.last = it - d.loaded.begin() + 1;
        d.newest = std::max(d.newest, d.last);
        LaunchShape shape;
        std::copy(std::begin(c->grid), std::end(c->grid), shape.grid.begin());
        shape.block = c->block[0];
        shape.block_y = c->block[1];
        shape.block_z = c->block[2];
        shape.shared = c->shared;
        count_launch(d, c->stream);
        stream_of(d, c->stream).launch(*function, shape, parameters);
        return 0;
    });
}
EXPORT CUresult cuLaunchHostFunc(CUstream, void (*f)(void*), void* data) {
    return on_device([&](Device&) {
        f(data);
        return 0;
    });
}

// --- streams and graphs --------------------------------------------------------------------------

EXPORT CUresult cuStreamCreateWithPriority(CUstream* out, unsigned, int priority) {
    return on_device([&](Device& d) {
        auto made = std::make_unique<StreamOf>();
        made->device = &d == &device(0) ? 0 : 1;
        made->stream = d.gpu.create_stream();
        made->priority = priority;
        ++d.streams;
        return answer(out, reinterpret_cast<CUstream>(made.release()));
    });
}
EXPORT CUresult cuStreamDestroy_v2(CUstream s) {
    std::scoped_lock lock(mutex());
    std::unique_ptr<StreamOf>(reinterpret_cast<StreamOf*>(s)).reset();
    return 0;
}
EXPORT CUresult cuStreamGetPriority(CUstream s, int* out) {
    return on_device([&](Device&) {
        return answer(out, s == nullptr ? 0 : reinterpret_cast<StreamOf*>(s)->priority);
    });
}
EXPORT CUresult cuStreamSynchronize(CUstream) {
    return on_device([](Device&) { return 0; });
}
EXPORT CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
    return on_device([&](Device& d) {
        auto at = d.recorded.find(e);
        d.hops += at == d.recorded.end() || at->second == s ? 0 : 1;
        return 0;
    });
}
EXPORT CUresult cuStreamGetCtx(CUstream s, CUcontext* out) {
    int i = s == nullptr ? 0 : reinterpret_cast<StreamOf*>(s)->device;
    return answer(out, reinterpret_cast<CUcontext>(&device(i)));
}
EXPORT CUresult cuStreamIsCapturing(CUstream s, int* out) {
    return on_device([&](Device&) {
        return answer(out, s != nullptr && reinterpret_cast<StreamOf*>(s)->capturing ? 1 : 0);
    });
}
EXPORT CUresult cuStreamBeginCapture_v2(CUstream s, int) {
    return on_device([&](Device&) {
        auto& stream = *reinterpret_cast<StreamOf*>(s);
        stream.stream->parts().recorder->begin_recording();
        stream.capturing = true;
        return 0;
    });
}
EXPORT CUresult cuStreamEndCapture(CUstream s, CUgraph* out) {
    return on_device([&](Device&) {
        auto& stream = *reinterpret_cast<StreamOf*>(s);
        stream.capturing = false;
        auto made = std::make_unique<WorkGraph>();
        made->device = stream.device;
        made->recording = stream.stream->parts().recorder->end_recording();
        return answer(out, reinterpret_cast<CUgraph>(made.release()));
    });
}
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph g, unsigned long long) {
    return on_device([&](Device& d) {
        auto& graph = *reinterpret_cast<WorkGraph*>(g);
        auto made = std::make_unique<WorkGraph>();
        made->device = graph.device;
        made->recording = std::move(graph.recording);
        ++d.graphs;
        return answer(out, reinterpret_cast<CUgraphExec>(made.release()));
    });
}
EXPORT CUresult cuGraphLaunch(CUgraphExec g, CUstream s) {
    return on_device([&](Device& d) {
        ++d.replays;
        auto& exec = *reinterpret_cast<WorkGraph*>(g);
        count_launch(d, s);
        stream_of(d, s).parts().recorder->launch(*exec.recording);
        return 0;
    });
}
EXPORT CUresult cuGraphDestroy(CUgraph g) {
    std::unique_ptr<WorkGraph>(reinterpret_cast<WorkGraph*>(g)).reset();
    return 0;
}
EXPORT CUresult cuGraphExecDestroy(CUgraphExec g) {
    std::scoped_lock lock(mutex());
    std::unique_ptr<WorkGraph> gone(reinterpret_cast<WorkGraph*>(g));
    --device(gone->device).graphs;
    return 0;
}

// --- events, which have always passed ------------------------------------------------------------

EXPORT CUresult cuEventRecord(CUevent e, CUstream s) {
    return on_device([&](Device& d) {
        d.recorded[e] = s;
        return 0;
    });
}
EXPORT CUresult cuEventRecordWithFlags(CUevent, CUstream, unsigned) {
    return on_device([](Device&) { return 0; });
}
EXPORT CUresult cuEventSynchronize(CUevent) {
    return on_device([](Device&) { return 0; });
}
EXPORT CUresult cuEventQuery(CUevent) {
    return on_device([](Device&) { return 0; });
}
