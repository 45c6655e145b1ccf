// SPDX-License-Identifier: Apache-2.0
// MemorySource: memory of a device from the application.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot {

/// Allocates the memory of a device for the application, in place of the driver or the system.
/// Thread safe.
struct MemorySource {
    virtual ~MemorySource() = default;
    /// At least 256-byte aligned; null when memory is exhausted.
    virtual std::byte* allocate(int64_t bytes) noexcept = 0;
    virtual void release(std::byte* memory) noexcept = 0;
};

} // namespace ingot
