// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA runtime that Triton Inference Server 2.51 calls, on the emulated GPUs
// of tests/emulator/programs, so that the real server makes instances of KIND_GPU: preloaded, they
// stand in place of the library that the server brings. Memory that another process shares is a
// file; its handle is the file's name.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int invalid_value = 1;
constexpr int not_permitted = 800;

template <class F>
F* driver(const char* name) {
    static void* library = dlopen("libcuda.so.1", RTLD_NOW);
    void* found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) {
        std::fprintf(stderr, "server_cudart: libcuda.so.1 has no %s\n", name);
        std::abort();
    }
    return reinterpret_cast<F*>(found);
}

thread_local int current = 0;

/// The emulated driver has a current context in each thread, as the runtime has.
int use(int device) {
    void* context = nullptr;
    int error = driver<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device);
    current = error == 0 ? device : current;
    return error != 0 ? error : driver<int(void*)>("cuCtxSetCurrent")(context);
}

struct Shared {
    std::mutex mutex;
    std::map<void*, size_t> bytes; // of files that are mapped
};

Shared& shared() {
    static auto* all = new Shared; // used until the process ends
    return *all;
}

/// cuMemGetAddressRange for a pointer into memory that is shared; base or bytes may be null.
int address_range(uint64_t* base, size_t* bytes, uint64_t pointer) {
    std::lock_guard<std::mutex> lock(shared().mutex);
    for (const auto& [memory, size] : shared().bytes) {
        auto begin = reinterpret_cast<uint64_t>(memory);
        if (pointer >= begin && pointer < begin + size) {
            if (base != nullptr) {
                *base = begin;
            }
            if (bytes != nullptr) {
                *bytes = size;
            }
            return 0;
        }
    }
    return invalid_value;
}

} // namespace

EXPORT int cudaGetDeviceCount(int* count) {
    return driver<int(int*)>("cuDeviceGetCount")(count);
}
EXPORT int cudaGetDevice(int* device) {
    *device = current;
    return 0;
}
EXPORT int cudaSetDevice(int device) {
    return use(device);
}
/// The fields that the server reads of the 1032 bytes.
EXPORT int cudaGetDeviceProperties_v2(char* properties, int device) {
    constexpr size_t size = 1032;
    constexpr size_t total_memory = 288;
    constexpr size_t major = 360;
    std::memset(properties, 0, size);
    auto* attribute = driver<int(int*, int, int)>("cuDeviceGetAttribute");
    int capability[2] = {};
    attribute(&capability[0], 75, device);
    attribute(&capability[1], 76, device);
    std::memcpy(properties + major, capability, sizeof capability);
    size_t bytes[2] = {};
    driver<int(size_t*, size_t*)>("cuMemGetInfo_v2")(&bytes[0], &bytes[1]);
    std::memcpy(properties + total_memory, &bytes[1], sizeof bytes[1]);
    return driver<int(char*, int, int)>("cuDeviceGetName")(properties, 256, device);
}
EXPORT int cudaDeviceGetPCIBusId(char* text, int room, int device) {
    return driver<int(char*, int, int)>("cuDeviceGetPCIBusId")(text, room, device);
}
EXPORT int cudaDeviceCanAccessPeer(int* can, int, int) {
    *can = 0;
    return 0;
}
EXPORT int cudaDeviceEnablePeerAccess(int, unsigned) {
    return not_permitted;
}
EXPORT int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return driver<int(int*, int*)>("cuCtxGetStreamPriorityRange")(least, greatest);
}
EXPORT int cudaMemGetInfo(size_t* free, size_t* total) {
    return driver<int(size_t*, size_t*)>("cuMemGetInfo_v2")(free, total);
}
EXPORT int cudaMalloc(void** memory, size_t bytes) {
    int error = use(current);
    return error != 0 ? error : driver<int(void**, size_t)>("cuMemAlloc_v2")(memory, bytes);
}
EXPORT int cudaMallocManaged(void**, size_t, unsigned) {
    return not_permitted;
}
EXPORT int cudaFree(void* memory) {
    int error = use(current);
    return error != 0 ? error : memory == nullptr ? 0 : driver<int(void*)>("cuMemFree_v2")(memory);
}
EXPORT int cudaHostAlloc(void** memory, size_t bytes, unsigned flags) {
    int error = use(current);
    return error != 0
               ? error
               : driver<int(void**, size_t, unsigned)>("cuMemHostAlloc")(memory, bytes, flags);
}
EXPORT int cudaFreeHost(void* memory) {
    int error = use(current);
    return error != 0 ? error : driver<int(void*)>("cuMemFreeHost")(memory);
}
EXPORT int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int, void* stream) {
    int error = use(current);
    return error != 0 ? error
                      : driver<int(void*, const void*, size_t, void*)>("cuMemcpyAsync")(
                            to, from, bytes, stream);
}
EXPORT int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
EXPORT int cudaMemset(void* memory, int byte, size_t bytes) {
    int error = use(current);
    auto* set = driver<int(void*, unsigned char, size_t, void*)>("cuMemsetD8Async");
    return error != 0 ? error : set(memory, static_cast<unsigned char>(byte), bytes, nullptr);
}
EXPORT int cudaMemPrefetchAsync(const void*, size_t, int, void*) {
    return 0;
}
EXPORT int cudaLaunchHostFunc(void* stream, void (*f)(void*), void* data) {
    int error = use(current);
    auto* launch = driver<int(void*, void (*)(void*), void*)>("cuLaunchHostFunc");
    return error != 0 ? error : launch(stream, f, data);
}
EXPORT int cudaStreamCreate(void** stream) {
    int error = use(current);
    auto* create = driver<int(void**, unsigned, int)>("cuStreamCreateWithPriority");
    return error != 0 ? error : create(stream, 0, 0);
}
EXPORT int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
    int error = use(current);
    auto* create = driver<int(void**, unsigned, int)>("cuStreamCreateWithPriority");
    return error != 0 ? error : create(stream, flags, priority);
}
EXPORT int cudaStreamDestroy(void* stream) {
    return driver<int(void*)>("cuStreamDestroy_v2")(stream);
}
EXPORT int cudaStreamGetFlags(void*, unsigned* flags) {
    *flags = 0;
    return 0;
}
EXPORT int cudaStreamSynchronize(void* stream) {
    int error = use(current);
    return error != 0 ? error : driver<int(void*)>("cuStreamSynchronize")(stream);
}
EXPORT const char* cudaGetErrorString(int error) {
    const char* text = "";
    driver<int(int, const char**)>("cuGetErrorString")(error, &text);
    return text;
}
EXPORT int cudaGetLastError() {
    return 0;
}

// --- memory that processes share -----------------------------------------------------------------

struct Handle {
    char path[64]; // NOLINT(*-avoid-c-arrays): the runtime's layout
};

EXPORT int cudaIpcOpenMemHandle(void** memory, Handle handle, unsigned) {
    handle.path[sizeof handle.path - 1] = 0;
    int file = open(handle.path, O_RDWR | O_CLOEXEC);
    struct stat found {};
    if (file < 0 || fstat(file, &found) != 0) {
        return invalid_value;
    }
    auto bytes = static_cast<size_t>(found.st_size);
    *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (*memory == MAP_FAILED) {
        return invalid_value;
    }
    std::lock_guard<std::mutex> lock(shared().mutex);
    shared().bytes[*memory] = bytes;
    return 0;
}
EXPORT int cudaIpcCloseMemHandle(void* memory) {
    std::lock_guard<std::mutex> lock(shared().mutex);
    auto found = shared().bytes.find(memory);
    if (found == shared().bytes.end()) {
        return invalid_value;
    }
    munmap(found->first, found->second);
    shared().bytes.erase(found);
    return 0;
}
EXPORT int cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                   int* status) {
    bool found = std::strncmp(name, "cuMemGetAddressRange", 20) == 0;
    *function = found ? reinterpret_cast<void*>(&address_range) : nullptr;
    if (status != nullptr) {
        *status = found ? 0 : 1;
    }
    return 0;
}
