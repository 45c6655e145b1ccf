// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/device_allocator.h"

namespace ingot::triton {

int64_t DeviceAllocator::bytes() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return bytes_;
}

void* DeviceAllocator::allocate_or_throw(size_t bytes) {
    void* memory = gpu_->allocate_unshared(bytes);
    try {
        std::lock_guard<std::mutex> lock(mutex_);
        held_.emplace(memory, static_cast<int64_t>(bytes));
        bytes_ += static_cast<int64_t>(bytes);
    } catch (...) {
        gpu_->release_unused(memory);
        throw;
    }
    metrics_.add_device_bytes(static_cast<int64_t>(bytes));
    return memory;
}

void* DeviceAllocator::allocateAsync(uint64_t bytes, uint64_t /*alignment*/,
                                     nvinfer1::AllocatorFlags /*flags*/,
                                     cudaStream_t /*stream*/) noexcept {
    try {
        return allocate_or_throw(bytes); // the driver aligns to 256 bytes
    } catch (...) {
        return nullptr;
    }
}

bool DeviceAllocator::deallocateAsync(void* memory, cudaStream_t /*stream*/) noexcept {
    if (memory == nullptr) {
        return true;
    }
    int64_t bytes = 0;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        auto found = held_.find(memory);
        if (found == held_.end()) {
            return false;
        }
        bytes = found->second;
        held_.erase(found);
        bytes_ -= bytes;
    }
    gpu_->release_unused(memory);
    metrics_.add_device_bytes(-bytes);
    return true;
}

} // namespace ingot::triton
