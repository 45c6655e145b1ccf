// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/place.h"

#include "backends/backends.h"
#include "base/error.h"
#include "plan/memory_source.h"

#include <atomic>

namespace ingot::api {

namespace {

std::atomic<const Backend*>& stand_in() {
    static std::atomic<const Backend*> backend{nullptr};
    return backend;
}

class AllocatorSource : public MemorySource {
public:
    explicit AllocatorSource(nvinfer1::IGpuAllocator& allocator) : allocator_(allocator) {}
    std::byte* allocate(int64_t bytes) noexcept override {
        constexpr uint64_t alignment = 256;
        return static_cast<std::byte*>(
            allocator_.allocateAsync(static_cast<uint64_t>(bytes), alignment, 0, nullptr));
    }
    void release(std::byte* memory) noexcept override {
        allocator_.deallocateAsync(memory, nullptr);
    }

private:
    nvinfer1::IGpuAllocator& allocator_;
};

} // namespace

void set_gpu(const Backend* backend) {
    stand_in() = backend;
}

Place find_place(Device device, int32_t ordinal) {
    require(device == Device::kAUTO || device == Device::kGPU || device == Device::kCPU,
            ErrorCode::InvalidArgument, "device is ", static_cast<int32_t>(device),
            ", expected 0 (auto), 1 (GPU) or 2 (CPU)");
    if (device == Device::kCPU) {
        require(ordinal == 0, ErrorCode::InvalidArgument, "the CPU is number 0, got ", ordinal);
        return {&cpu_backend(), false};
    }
    if (const Backend* gpu = stand_in()) {
        return {gpu, true};
    }
    std::string why;
    bool current = device == Device::kAUTO && ordinal == 0;
    if (const Backend* gpu = cuda_backend(current ? current_cuda_device() : ordinal, why)) {
        return {gpu, true};
    }
    require(device == Device::kAUTO && ordinal == 0, ErrorCode::Device,
            "there is no GPU to run on: ", why);
    return {&cpu_backend(), false};
}

std::shared_ptr<MemorySource> memory_source(nvinfer1::IGpuAllocator* allocator) {
    return allocator == nullptr ? nullptr : std::make_shared<AllocatorSource>(*allocator);
}

} // namespace ingot::api
