// SPDX-License-Identifier: Apache-2.0
// DeviceAllocator: memory of a GPU for an engine, a context or buffers, counted to the byte.
#pragma once

#include "NvInferRuntime.h"
#include "plugins/common/device_memory.h"
#include "plugins/triton/metrics.h"

#include <map>
#include <memory>
#include <mutex>

namespace ingot::triton {

/// Thread safe. Outlives all that it allocates for.
class DeviceAllocator final : public nvinfer1::IGpuAsyncAllocator {
public:
    DeviceAllocator(std::shared_ptr<DeviceMemory> gpu, ModelMetrics& metrics)
        : gpu_(std::move(gpu)), metrics_(metrics) {}
    DeviceMemory& gpu() const { return *gpu_; }
    /// The bytes that it holds now.
    int64_t bytes() const;
    /// Errors: those of the GPU.
    void* allocate_or_throw(size_t bytes);
    /// nullptr where the GPU has no more memory.
    void* allocateAsync(uint64_t bytes, uint64_t alignment, nvinfer1::AllocatorFlags flags,
                        cudaStream_t stream) noexcept override;
    bool deallocateAsync(void* memory, cudaStream_t stream) noexcept override;

private:
    std::shared_ptr<DeviceMemory> gpu_;
    ModelMetrics& metrics_;
    mutable std::mutex mutex_;
    std::map<void*, int64_t> held_;
    int64_t bytes_ = 0;
};

} // namespace ingot::triton
