// SPDX-License-Identifier: Apache-2.0
// The emulated device's memory: every allocation ends at a page that faults, has red zones where
// pages do not reach, and is poisoned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace ingot::emulator {

/// The content of unwritten memory: NaN in every float type, -1 in every signed integer.
constexpr int poison = 0xFF;

/// Thread safe.
class Memory {
public:
    /// Addresses are multiples of `alignment`, a power of two up to 256.
    explicit Memory(int64_t total, size_t alignment = 256) : total_(total), alignment_(alignment) {}
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    /// Errors: OutOfMemory with needed, free and total bytes.
    std::byte* allocate(int64_t bytes);
    /// Returns the fault: damaged red zones, or no allocation of that address; else "".
    std::string release(std::byte* memory);
    /// Describes the first damaged red zone; "" when there is none.
    std::string check() const;
    /// Errors: Device unless the range is inside one allocation.
    void require_inside(const std::byte* from, size_t bytes, const char* what) const;
    /// Bytes from the address to its allocation's end; 0 outside of all.
    int64_t left(const void* address) const;
    /// A description of the address.
    std::string describe(const void* address) const;
    /// Kernels may not touch this allocation before grid_wait: it holds activations.
    void hold_until_wait(std::byte* memory);
    bool any_held() const;
    /// Makes the held allocations inaccessible, or accessible again.
    void protect_held(bool closed);
    int64_t used() const;

private:
    struct Block {
        int64_t bytes = 0;
        std::byte* pages = nullptr; // accessible ones
        size_t page_bytes = 0;
        bool held = false;
    };
    static std::string damage(std::byte* base, const Block& b);

    mutable std::mutex mutex_;
    std::map<std::byte*, Block> blocks_;
    int64_t total_;
    size_t alignment_;
    int64_t used_ = 0;
};

} // namespace ingot::emulator
