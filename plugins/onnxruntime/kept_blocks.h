// SPDX-License-Identifier: Apache-2.0
// KeptBlocks: memory of a GPU for which nobody names a stream, such as the arrays that an
// application makes for each run.
#pragma once

#include "plugins/common/device_memory.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace ingot::ort {

/// The block size for a request, so that similar sizes share kept blocks.
size_t block_size(size_t bytes);

/// The driver takes 10 to 50 us to allocate a block, and as long to free it, which waits for the
/// whole GPU. So smaller blocks are kept, and reused once the GPU has done all work that was queued
/// before they were given back. Thread safe.
class KeptBlocks {
public:
    explicit KeptBlocks(std::shared_ptr<DeviceMemory> memory) : memory_(std::move(memory)) {}
    ~KeptBlocks() { release(); }
    KeptBlocks(const KeptBlocks&) = delete;
    KeptBlocks& operator=(const KeptBlocks&) = delete;

    /// Errors: OutOfMemory; Device for a failure of the work that it waits for.
    void* take(size_t bytes);
    /// False for memory that is not of take(), or not to be kept: the caller releases it.
    bool give(void* memory);
    /// Gives what is kept back to the driver.
    void release() noexcept;

    /// Blocks that are kept have at most this many bytes, and together.
    static constexpr size_t most_block = size_t{64} << 20;
    static constexpr size_t most_bytes = size_t{512} << 20;

private:
    struct Freed {
        void* memory = nullptr;
        uint64_t number = 0; // of the call of give()
    };
    Freed take_kept(size_t size, bool& waits, uint64_t& given);

    std::shared_ptr<DeviceMemory> memory_;
    std::mutex mutex_;
    std::map<void*, size_t> used_;
    std::multimap<size_t, Freed> kept_; // by size
    size_t kept_bytes_ = 0;
    uint64_t given_ = 0;  // calls of give()
    uint64_t waited_ = 0; // up to this one, work queued before is done
};

} // namespace ingot::ort
