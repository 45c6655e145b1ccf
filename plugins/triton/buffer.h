// SPDX-License-Identifier: Apache-2.0
// Buffer: memory that an instance keeps between requests, for an input, an output or their way
// between host and GPU.
#pragma once

#include "plugins/triton/device_allocator.h"

#include <memory>

namespace ingot::triton {

/// Memory aligned for full speed, that only grows: of a GPU, of the host pinned for a GPU, or the
/// host's own where the allocator is null. The allocator must outlive it, and no queued work may
/// use it where it grows or ends. Not thread safe.
class Buffer {
public:
    explicit Buffer(DeviceAllocator* device, bool pinned = false)
        : memory_(nullptr, Free{device, pinned}) {}
    /// At least `bytes`; what was in it is lost. Errors: OutOfMemory, Device.
    std::byte* reserve(size_t bytes);
    std::byte* data() const { return memory_.get(); }
    /// The GPU that needs a copy to access it from the host; null: the host does not.
    DeviceMemory* gpu() const {
        const Free& kind = memory_.get_deleter();
        return kind.pinned || kind.device == nullptr ? nullptr : &kind.device->gpu();
    }
    size_t bytes() const { return bytes_; }

private:
    struct Free {
        DeviceAllocator* device;
        bool pinned;
        void operator()(std::byte* p) const;
    };
    std::unique_ptr<std::byte, Free> memory_;
    size_t bytes_ = 0;
};

} // namespace ingot::triton
