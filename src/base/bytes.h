// SPDX-License-Identifier: Apache-2.0
// Byte buffers aligned to a cache line.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace ingot {

template <class T, size_t Alignment>
struct AlignedAllocator {
    using value_type = T;
    template <class U>
    struct rebind { // NOLINT(readability-identifier-naming): the name that the library asks for
        using other = AlignedAllocator<U, Alignment>;
    };
    AlignedAllocator() = default;
    template <class U>
    explicit AlignedAllocator(const AlignedAllocator<U, Alignment>&) {}
    T* allocate(size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(Alignment)));
    }
    void deallocate(T* p, size_t) noexcept { ::operator delete(p, std::align_val_t(Alignment)); }
    bool operator==(const AlignedAllocator&) const = default;
};

using AlignedBytes = std::vector<std::byte, AlignedAllocator<std::byte, 64>>;

} // namespace ingot
