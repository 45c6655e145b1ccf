// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/nvidia_gpu.h"

#include "backends/cuda/driver/device_context.h"
#include "backends/cuda/driver/nvrtc.h"
#include "base/error.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace ingot::cuda {

namespace {

class NvidiaGpu : public Gpu {
public:
    NvidiaGpu(const Driver& d, CUdevice device)
        : device_(d, device), number_(number_of(d, device)) {
        device_.check(d.primary_retain(&device_.context, device), "cuDevicePrimaryCtxRetain");
        Entered entered = device_.enter();
        int cc = attribute(DeviceAttribute::ComputeCapabilityMajor) * 10 +
                 attribute(DeviceAttribute::ComputeCapabilityMinor);
        arch_ = kernels::arch_of(cc);
        arch_.cc = cc;
        arch_.sms = attribute(DeviceAttribute::MultiprocessorCount);
        arch_.shared_per_block = attribute(DeviceAttribute::MaxSharedPerBlockOptin);
        arch_.shared_per_sm = attribute(DeviceAttribute::MaxSharedPerMultiprocessor);
        arch_.threads_per_sm = attribute(DeviceAttribute::MaxThreadsPerMultiprocessor);
        arch_.l2_bytes = attribute(DeviceAttribute::L2CacheSize);
        most_cache_ = attribute(DeviceAttribute::MaxPersistingL2CacheSize);
        char text[256] = {};
        d.device_name(text, sizeof text - 1, device);
        int version = 0;
        d.driver_version(&version);
        identity_ = str(static_cast<const char*>(text), ", compute capability ", cc / 10, '.',
                        cc % 10, ", ", arch_.sms, " SMs, ", arch_.shared_per_sm, " and ",
                        arch_.l2_bytes, " bytes of shared memory and L2 cache");
        description_ = str(static_cast<const char*>(text), ", compute capability ", cc / 10, '.',
                           cc % 10, ", ", arch_.sms, " SMs, driver for CUDA ", version / 1000, '.',
                           version % 1000 / 10);
    }

    const kernels::Arch& arch() const override { return arch_; }
    int number() const override { return number_; }
    std::string description() const override { return description_; }
    std::string identity() const override { return identity_; }
    const char* error() const override { return device_.health.cause(); }
    std::string compiler() const override { return str("cubin ", arch_.nvrtc); }

    std::string compile(const std::string& text) const override {
        return nvrtc_compile(text, std::string(arch_.nvrtc)).cubin;
    }

    void start_compiler() const override {
        nvrtc_compile("extern \"C\" __global__ void nothing() {}", std::string(arch_.nvrtc));
    }

    std::shared_ptr<const Function> load(std::string_view binary, const std::string& entry,
                                         int64_t shared) override {
        Entered entered = device_.enter();
        Relaxed relaxed(device_.d);
        auto f = std::make_shared<NvidiaFunction>(device_);
        device_.check(device_.d.module_load(&f->module, binary.data()), "cuModuleLoadData");
        device_.check(device_.d.module_function(&f->function, f->module, entry.c_str()),
                      "cuModuleGetFunction");
        raise_shared(*f, shared);
        return f;
    }

    void raise_shared(const Function& f, int64_t shared) override {
        constexpr int64_t default_limit = 48 << 10;
        if (shared <= default_limit) {
            return;
        }
        Entered entered = device_.enter();
        device_.check(device_.d.function_set(static_cast<const NvidiaFunction&>(f).function,
                                             function_max_dynamic_shared,
                                             static_cast<int>(arch_.shared_per_block)),
                      "raising the limit of shared memory");
    }

    std::unique_ptr<Stream> create_stream() override {
        return make_nvidia_stream(device_, RunPriority::Normal);
    }

    std::unique_ptr<Stream> create_stream_of(RunPriority priority) override {
        return make_nvidia_stream(device_, priority);
    }

    std::byte* allocate(int64_t bytes) override {
        Entered entered = device_.enter();
        Relaxed relaxed(device_.d);
        CUdeviceptr p = 0;
        CUresult r = device_.d.mem_alloc(&p, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
        if (r == out_of_memory) {
            size_t free = 0;
            size_t total = 0;
            device_.d.mem_info(&free, &total);
            fail(ErrorCode::OutOfMemory, "the GPU has no ", bytes, " bytes left: ", free, " of ",
                 total, " are free; use smaller shapes or close other programs that use it");
        }
        device_.check(r, "cuMemAlloc");
        return reinterpret_cast<std::byte*>(p);
    }

    void release(std::byte* memory) noexcept override {
        if (device_.health.dead()) {
            return; // the context is gone, with its memory
        }
        Entered entered = device_.enter_quietly();
        Relaxed relaxed(device_.d);
        device_.d.mem_free(address(memory));
    }

    std::byte* allocate_shared(int64_t bytes) override {
        auto size = static_cast<size_t>(bytes);
        void* p = device_.lock_memory(size);
        try {
            std::scoped_lock lock(mutex_);
            shared_.emplace(p, size);
        } catch (...) {
            device_.unlock_memory(p, size);
            throw;
        }
        std::memset(p, 0, size);
        return static_cast<std::byte*>(p);
    }

    void release_shared(std::byte* memory) noexcept override {
        size_t size = 0;
        {
            std::scoped_lock lock(mutex_);
            auto found = shared_.find(memory);
            if (found == shared_.end()) {
                return;
            }
            size = found->second;
            shared_.erase(found);
        }
        device_.unlock_memory(memory, size);
    }

    int64_t free_bytes() const override { return memory().first; }
    int64_t total_bytes() const override { return memory().second; }

    int64_t most_cache_bytes() const override { return most_cache_; }

    void encode(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) const override;

private:
    /// Free and total bytes.
    std::pair<int64_t, int64_t> memory() const {
        Entered entered = device_.enter();
        size_t free = 0;
        size_t total = 0;
        device_.check(device_.d.mem_info(&free, &total), "cuMemGetInfo");
        return {static_cast<int64_t>(free), static_cast<int64_t>(total)};
    }
    int attribute(DeviceAttribute a) const { return device_.attribute(a); }

    DeviceContext device_;
    int number_;
    kernels::Arch arch_;
    int64_t most_cache_ = 0;
    std::mutex mutex_;
    std::map<void*, size_t> shared_;
    std::string description_;
    std::string identity_;
};

} // namespace

DeviceContext::~DeviceContext() {
    Entered entered = enter_quietly();
    while (std::optional<KeptBlocks::Block> block = locked_.take_any()) {
        d.mem_free_host(block->memory);
    }
}

void* DeviceContext::lock_memory(size_t bytes) const {
    Entered entered = enter();
    {
        std::scoped_lock lock(mutex_);
        if (void* memory = locked_.take(bytes, bytes).memory) {
            return memory;
        }
    }
    Relaxed relaxed(d);
    void* memory = nullptr;
    CUresult r = d.mem_alloc_host(&memory, bytes);
    if (r == out_of_memory) {
        fail(ErrorCode::OutOfMemory, "the system has no ", bytes,
             " bytes of page-locked memory left; close other programs that use GPUs");
    }
    check(r, "cuMemAllocHost");
    return memory;
}

void DeviceContext::unlock_memory(void* memory, size_t bytes) const noexcept {
    auto too_much = [&]() -> std::optional<KeptBlocks::Block> {
        std::scoped_lock lock(mutex_);
        if (memory != nullptr && !locked_.keep({memory, bytes})) {
            return KeptBlocks::Block{std::exchange(memory, nullptr), bytes};
        }
        memory = nullptr;
        return locked_.evict();
    };
    while (std::optional<KeptBlocks::Block> block = too_much()) {
        Entered entered = enter_quietly();
        Relaxed relaxed(d);
        d.mem_free_host(block->memory);
    }
}

void DeviceContext::set_aside(int64_t more) const {
    Entered entered = enter();
    std::scoped_lock lock(mutex_);
    int64_t most = attribute(DeviceAttribute::MaxPersistingL2CacheSize);
    int64_t all = set_aside_ + more;
    check(d.set_limit(limit_persisting_l2, static_cast<size_t>(std::clamp<int64_t>(all, 0, most))),
          "setting cache aside");
    set_aside_ = all;
}

namespace {

/// CUtensorMapDataType.
int map_type(DType t) {
    switch (bit_width(t)) {
    case 8:
        return 0;
    case 16:
        return t == DType::F16 ? 6 : t == DType::BF16 ? 9 : 1;
    case 32:
        return t == DType::F32 ? 7 : 2;
    default:
        return 4;
    }
}

void NvidiaGpu::encode(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) const {
    require(device_.d.encode_tiled != nullptr, ErrorCode::Unsupported,
            "the CUDA driver has no tensor maps: it is older than CUDA 12.0, update it");
    const uint32_t steps[5] = {1, 1, 1, 1, 1};
    CUtensorMap m;
    constexpr int swizzle_128b = 3;
    constexpr int promote_256b = 3;
    constexpr int tfloat32 = 11; // CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
    device_.check(device_.d.encode_tiled(&m, map.tf32 ? tfloat32 : map_type(map.dtype),
                                         static_cast<unsigned int>(map.rank), base,
                                         map.sizes.data(), map.strides.data(), map.box.data(),
                                         steps, 0, map.swizzle128 ? swizzle_128b : 0, promote_256b,
                                         0),
                  "cuTensorMapEncodeTiled");
    std::memcpy(encoded, &m, sizeof m);
}

} // namespace

std::unique_ptr<Gpu> make_nvidia_gpu(const Driver& driver, CUdevice device) {
    return std::make_unique<NvidiaGpu>(driver, device);
}

Gpu* find_gpu(int index, std::string& why) {
    static std::mutex mutex;
    // Never destroyed: kernels that others keep until the process ends refer to it.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
    static auto& open = *new std::map<int, std::unique_ptr<Gpu>>;
    const Driver* d = find_driver(why);
    if (d == nullptr) {
        return nullptr;
    }
    std::scoped_lock lock(mutex);
    if (auto it = open.find(index); it != open.end()) {
        return it->second.get();
    }
    int count = 0;
    d->device_count(&count);
    if (index < 0 || index >= count) {
        why = str("there is no CUDA device ", index, ": the driver has ", count);
        return nullptr;
    }
    CUdevice device = 0;
    DeviceHealth().check(*d, d->device_get(&device, index), "cuDeviceGet");
    return open.emplace(index, make_nvidia_gpu(*d, device)).first->second.get();
}

} // namespace ingot::cuda
