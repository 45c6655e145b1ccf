// SPDX-License-Identifier: Apache-2.0
// A GPU behind CUDA's driver, which is opened at the first use. Each call makes the GPU's primary
// context current only for itself.
#include "base/cuda_errors.h"
#include "base/device_files.h"
#include "base/kept_blocks.h"
#include "base/shared_library.h"
#include "plugins/common/device_memory.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

namespace ingot {

namespace {

using Result = int;
using Device = int;
using Address = unsigned long long;

constexpr Result out_of_memory = 2;
constexpr Result not_ready = 600;
constexpr int capability_major = 75; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int capability_minor = 76;
constexpr int has_memory_pools = 115; // CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
constexpr unsigned non_blocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr unsigned no_timing = 2;     // CU_EVENT_DISABLE_TIMING

struct Driver {
    Result (*init)(unsigned) = nullptr;
    Result (*device_count)(int*) = nullptr;
    Result (*device_name)(char*, int, Device) = nullptr;
    Result (*device_attribute)(int*, int, Device) = nullptr;
    Result (*device_pci_bus)(char*, int, Device) = nullptr;
    Result (*retain_context)(void**, Device) = nullptr;
    Result (*release_context)(Device) = nullptr;
    Result (*push_context)(void*) = nullptr;
    Result (*pop_context)(void**) = nullptr;
    Result (*synchronize)() = nullptr;
    Result (*mem_alloc)(Address*, size_t) = nullptr;
    Result (*mem_free)(Address) = nullptr;
    Result (*mem_alloc_async)(Address*, size_t, void*) = nullptr;
    Result (*mem_free_async)(Address, void*) = nullptr;
    Result (*host_alloc)(void**, size_t, unsigned) = nullptr;
    Result (*host_free)(void*) = nullptr;
    Result (*memcpy_async)(Address, Address, size_t, void*) = nullptr;
    Result (*memset_async)(Address, unsigned char, size_t, void*) = nullptr;
    Result (*stream_create)(void**, unsigned, int) = nullptr;
    Result (*stream_priorities)(int*, int*) = nullptr;
    Result (*stream_destroy)(void*) = nullptr;
    Result (*stream_synchronize)(void*) = nullptr;
    Result (*stream_context)(void*, void**) = nullptr;
    Result (*stream_capturing)(void*, int*) = nullptr;
    Result (*stream_wait)(void*, void*, unsigned) = nullptr;
    Result (*event_create)(void**, unsigned) = nullptr;
    Result (*event_destroy)(void*) = nullptr;
    Result (*event_record)(void*, void*) = nullptr;
    Result (*event_synchronize)(void*) = nullptr;
    Result (*event_query)(void*) = nullptr;
    Result (*error_text)(Result, const char**) = nullptr;
    std::string problem;

    Driver() {
        SharedLibrary library = SharedLibrary::open("libcuda.so.1", problem);
        if (!library) {
            problem = "NVIDIA's driver is not installed: " + problem;
            return;
        }
        auto find = [&](auto& function, const char* name) {
            function =
                reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.symbol(name));
            if (function == nullptr) {
                problem = str("NVIDIA's driver is too old: it has no ", name);
            }
        };
        find(init, "cuInit");
        find(device_count, "cuDeviceGetCount");
        find(device_name, "cuDeviceGetName");
        find(device_attribute, "cuDeviceGetAttribute");
        find(device_pci_bus, "cuDeviceGetPCIBusId");
        find(retain_context, "cuDevicePrimaryCtxRetain");
        find(release_context, "cuDevicePrimaryCtxRelease_v2");
        find(push_context, "cuCtxPushCurrent_v2");
        find(pop_context, "cuCtxPopCurrent_v2");
        find(synchronize, "cuCtxSynchronize");
        find(mem_alloc, "cuMemAlloc_v2");
        find(mem_free, "cuMemFree_v2");
        find(mem_alloc_async, "cuMemAllocAsync");
        find(mem_free_async, "cuMemFreeAsync");
        find(host_alloc, "cuMemHostAlloc");
        find(host_free, "cuMemFreeHost");
        find(memcpy_async, "cuMemcpyAsync");
        find(memset_async, "cuMemsetD8Async");
        find(stream_create, "cuStreamCreateWithPriority");
        find(stream_priorities, "cuCtxGetStreamPriorityRange");
        find(stream_destroy, "cuStreamDestroy_v2");
        find(stream_synchronize, "cuStreamSynchronize");
        find(stream_context, "cuStreamGetCtx");
        find(stream_capturing, "cuStreamIsCapturing");
        find(stream_wait, "cuStreamWaitEvent");
        find(event_create, "cuEventCreate");
        find(event_destroy, "cuEventDestroy_v2");
        find(event_record, "cuEventRecord");
        find(event_synchronize, "cuEventSynchronize");
        find(event_query, "cuEventQuery");
        find(error_text, "cuGetErrorString");
        if (problem.empty()) {
            Result r = init(0);
            problem =
                r == 0 ? ""
                       : str("NVIDIA's driver does not start: ", text(r), forbidden_device_text());
        }
    }
    std::string text(Result r) const {
        const char* words = nullptr;
        error_text(r, &words);
        return str(words == nullptr ? "unknown error" : words, " (", r, ")");
    }
    void check(Result r, const char* what) const {
        require(r == 0, r == out_of_memory ? ErrorCode::OutOfMemory : ErrorCode::Device, what, ": ",
                r == 0 ? std::string() : text(r));
    }
};

/// Whether a GPU is usable to this process, and why not. Thread safe.
class Health {
public:
    void require_alive() const {
        if (lost_.load(std::memory_order_acquire)) {
            std::scoped_lock lock(mutex_);
            fail(ErrorCode::Device,
                 "the GPU is unusable in this process since an earlier failure: ", cause_,
                 "; start a new process");
        }
    }
    bool is_lost() const { return lost_.load(std::memory_order_acquire); }
    void lose(const std::string& cause) {
        std::scoped_lock lock(mutex_);
        if (!lost_) {
            cause_ = cause;
            lost_.store(true, std::memory_order_release);
        }
    }

private:
    std::atomic<bool> lost_{false};
    mutable std::mutex mutex_;
    std::string cause_;
};

/// A GPU's health, shared by all its users; lives as long as the process.
Health& health_of(Device device) {
    static std::mutex mutex;
    // Never destroyed: memory may be given back at the very end.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
    static auto& all = *new std::map<Device, Health>;
    std::scoped_lock lock(mutex);
    return all[device];
}

const Driver& driver() {
    static const Driver opened;
    return opened;
}

class CudaMemory final : public DeviceMemory {
public:
    explicit CudaMemory(Device device) : device_(device), health_(health_of(device)) {
        check(driver().retain_context(&context_, device), "the GPU cannot be used");
        int answer = 0;
        driver().device_attribute(&answer, has_memory_pools, device);
        has_pool_ = answer != 0;
    }
    ~CudaMemory() override {
        while (std::optional<KeptBlocks::Block> block = kept_.take_any()) {
            release_pinned(block->memory);
        }
        if (pool_stream_ != nullptr) {
            release_stream(pool_stream_);
        }
        driver().release_context(device_);
    }

    void* allocate(size_t bytes) override {
        Current current = enter();
        Address out = 0;
        check(driver().mem_alloc(&out, bytes == 0 ? 1 : bytes), "device memory");
        return reinterpret_cast<void*>(out);
    }
    void release(void* memory) noexcept override {
        if (health_.is_lost()) {
            return; // it is gone with the GPU
        }
        Current current(*this);
        driver().mem_free(reinterpret_cast<Address>(memory));
    }
    /// The driver's cuMemFree waits for all work of the context, and lets nobody queue more
    /// meanwhile. That of its pool does not.
    void* allocate_unshared(size_t bytes) override {
        if (!has_pool_) {
            return allocate(bytes);
        }
        Current current = enter();
        Address out = 0;
        check(driver().mem_alloc_async(&out, bytes == 0 ? 1 : bytes, pool_stream()),
              "device memory");
        check(driver().stream_synchronize(pool_stream_), "device memory");
        return reinterpret_cast<void*>(out);
    }
    void release_unused(void* memory) noexcept override {
        if (!has_pool_) {
            release(memory);
            return;
        }
        if (health_.is_lost()) {
            return; // it is gone with the GPU
        }
        Current current(*this);
        driver().mem_free_async(reinterpret_cast<Address>(memory), pool_stream_);
        driver().stream_synchronize(pool_stream_); // the pool gives it back
    }
    void* allocate_pinned(size_t bytes) override {
        Current current = enter();
        void* out = nullptr;
        check(driver().host_alloc(&out, bytes == 0 ? 1 : bytes, 1), "pinned memory");
        return out;
    }
    void release_pinned(void* memory) noexcept override {
        if (health_.is_lost()) {
            return; // it is gone with the GPU
        }
        Current current(*this);
        driver().host_free(memory);
    }
    void* allocate_staging(size_t bytes) override {
        size_t wanted =
            (std::max<size_t>(bytes, 1) + staging_step - 1) / staging_step * staging_step;
        {
            std::scoped_lock lock(mutex_);
            KeptBlocks::Block block = kept_.take(wanted, 2 * wanted);
            if (block.memory != nullptr) {
                lend(block);
                return block.memory;
            }
        }
        void* memory = allocate_pinned(wanted);
        std::scoped_lock lock(mutex_);
        lend({memory, wanted});
        return memory;
    }
    void release_staging(void* memory) noexcept override {
        if (memory != nullptr && !keep(memory)) {
            release_pinned(memory);
        }
        while (std::optional<KeptBlocks::Block> block = too_much()) {
            release_pinned(block->memory);
        }
    }
    void copy(void* target, const void* source, size_t bytes, void* stream) override {
        Current current = enter();
        if (stream == nullptr) { // streams that do not wait for the default one may still use it
            check(driver().synchronize(), "copy");
        }
        check(driver().memcpy_async(reinterpret_cast<Address>(target),
                                    reinterpret_cast<Address>(source), bytes, stream),
              "copy");
        if (stream == nullptr) {
            check(driver().stream_synchronize(nullptr), "copy");
        }
    }
    void set_zero(void* target, size_t bytes, void* stream) override {
        Current current = enter();
        check(driver().memset_async(reinterpret_cast<Address>(target), 0, bytes, stream), "fill");
    }
    void* create_stream(RunPriority priority) override {
        Current current = enter();
        int lowest = 0;
        int highest = 0;
        check(driver().stream_priorities(&lowest, &highest), "stream");
        void* out = nullptr;
        int number = priority == RunPriority::Low    ? lowest
                     : priority == RunPriority::High ? highest
                                                     : 0;
        check(driver().stream_create(&out, non_blocking, number), "stream");
        return out;
    }
    void release_stream(void* stream) noexcept override {
        if (health_.is_lost()) {
            return; // it is gone with the GPU
        }
        Current current(*this);
        driver().stream_destroy(stream);
    }
    void wait_for_stream(void* stream) override {
        Current current = enter();
        check(driver().stream_synchronize(stream), "a run on the GPU failed");
    }
    void wait() override {
        Current current = enter();
        check(driver().synchronize(), "a run on the GPU failed");
    }
    void* create_event() override {
        Current current = enter();
        void* out = nullptr;
        check(driver().event_create(&out, no_timing), "event");
        return out;
    }
    void release_event(void* event) noexcept override {
        if (health_.is_lost()) {
            return; // it is gone with the GPU
        }
        Current current(*this);
        driver().event_destroy(event);
    }
    void record(void* event, void* stream) override {
        Current current = enter();
        check(driver().event_record(event, stream), "event");
    }
    void make_wait(void* stream, void* event) override {
        Current current = enter();
        check(driver().stream_wait(stream, event, 0), "event");
    }
    void wait_for_event(void* event) override {
        Current current = enter();
        check(driver().event_synchronize(event), "event");
    }
    bool has_passed(void* event) override {
        Current current = enter();
        Result r = driver().event_query(event);
        if (r != not_ready) {
            check(r, "event");
        }
        return r == 0;
    }
    bool is_lost() noexcept override {
        if (health_.is_lost()) {
            return true;
        }
        Current current(*this);
        return driver().synchronize() != 0; // an error that can be survived does not come twice
    }
    void require_alive() const override { health_.require_alive(); }
    void note_lost(const std::string& cause) noexcept override {
        try {
            health_.lose(cause);
        } catch (...) { // without memory: the next call gets the driver's error
        }
    }
    void check_stream(void* stream) override {
        Current current = enter();
        void* owner = nullptr;
        check(driver().stream_context(stream, &owner), "user_compute_stream");
        require(owner == context_, ErrorCode::InvalidArgument,
                "user_compute_stream belongs to another context than GPU ", device_,
                "'s primary one: make the stream there (the runtime API does)");
    }

    bool is_captured(void* stream) override {
        Current current = enter();
        int status = 0;
        check(driver().stream_capturing(stream, &status), "stream");
        return status != 0;
    }

private:
    void check(Result r, const char* what) const {
        try {
            driver().check(r, what);
        } catch (Error& e) {
            if (loses_gpu(r)) {
                health_.lose(e.what());
            }
            throw;
        }
    }

    /// Makes the context current; the destructor restores the previous one.
    class Current {
    public:
        explicit Current(const CudaMemory& m) noexcept { driver().push_context(m.context_); }
        ~Current() {
            void* mine = nullptr;
            driver().pop_context(&mine);
        }
        Current(const Current&) = delete;
        Current& operator=(const Current&) = delete;
    };
    /// Errors: Device for a lost GPU.
    Current enter() const {
        require_alive();
        return Current(*this);
    }
    /// Notes staging memory as in use; the mutex is held. Without memory for the note it is freed.
    void lend(KeptBlocks::Block block) {
        try {
            lent_.emplace(block.memory, block.bytes);
        } catch (...) {
            release_pinned(block.memory);
            throw;
        }
    }
    /// Whether that staging memory is kept for others.
    bool keep(void* memory) noexcept {
        std::scoped_lock lock(mutex_);
        auto found = lent_.find(memory);
        if (found == lent_.end()) {
            return false;
        }
        size_t bytes = found->second;
        lent_.erase(found);
        return kept_.keep({memory, bytes});
    }
    std::optional<KeptBlocks::Block> too_much() noexcept {
        std::scoped_lock lock(mutex_);
        return kept_.evict();
    }
    /// Nothing but allocations is queued on it.
    void* pool_stream() {
        std::scoped_lock lock(mutex_);
        if (pool_stream_ == nullptr) {
            pool_stream_ = create_stream(RunPriority::Normal);
        }
        return pool_stream_;
    }

    Device device_;
    Health& health_;
    void* context_ = nullptr;
    bool has_pool_ = false;
    std::mutex mutex_;
    void* pool_stream_ = nullptr;
    static constexpr size_t staging_step = 64 << 10;
    std::map<void*, size_t> lent_; // staging memory in use, with its size
    KeptBlocks kept_{64 << 20};
};

} // namespace

std::vector<GpuInfo> find_gpus(std::string& problem) {
    const Driver& d = driver();
    problem = d.problem;
    std::vector<GpuInfo> out;
    int count = 0;
    if (!problem.empty() || d.device_count(&count) != 0) {
        return out;
    }
    for (int i = 0; i < count; ++i) {
        GpuInfo gpu;
        gpu.ordinal = i;
        char text[256] = {};
        int major = 0;
        int minor = 0;
        d.check(d.device_attribute(&major, capability_major, i), "compute capability");
        d.check(d.device_attribute(&minor, capability_minor, i), "compute capability");
        gpu.capability = 10 * major + minor;
        d.check(d.device_name(text, sizeof(text), i), "name of a GPU");
        gpu.name = text;
        d.check(d.device_pci_bus(text, sizeof(text), i), "PCI address of a GPU");
        gpu.pci_bus = text;
        out.push_back(std::move(gpu));
    }
    return out;
}

std::shared_ptr<DeviceMemory> open_gpu(int32_t ordinal) {
    return std::make_shared<CudaMemory>(ordinal);
}

} // namespace ingot
