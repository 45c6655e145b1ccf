// SPDX-License-Identifier: Apache-2.0
#include "base/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): operator new has no object.
std::atomic<int64_t> allocations{0};
std::atomic<int64_t> live{0};
thread_local int64_t until_failure = 0; // 0: none
thread_local size_t least_bytes = 0;
thread_local bool has_failed = false;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)
} // namespace

namespace ingot {

int64_t allocation_count() {
    return allocations.load();
}

int64_t live_allocations() {
    return live.load();
}

void fail_allocation(int64_t n, size_t least) {
    until_failure = n;
    least_bytes = least;
    has_failed = false;
}

bool allocation_failed() {
    return has_failed;
}

} // namespace ingot

#if defined(__SANITIZE_THREAD__)
#define INGOT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define INGOT_TSAN 1
#endif
#endif

#ifndef INGOT_TSAN
namespace {

void* give(size_t size, size_t alignment) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (size >= least_bytes && until_failure > 0 && --until_failure == 0) {
        has_failed = true;
        return nullptr;
    }
    size = (size == 0 ? 1 : size);
    void* p = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                  ? std::malloc(size)
                  : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (p != nullptr) {
        live.fetch_add(1, std::memory_order_relaxed);
    }
    return p;
}

void* give_or_throw(size_t size, size_t alignment) {
    if (void* p = give(size, alignment)) {
        return p;
    }
    throw std::bad_alloc();
}

void take(void* p) {
    if (p != nullptr) {
        live.fetch_sub(1, std::memory_order_relaxed);
        std::free(p);
    }
}

} // namespace

void* operator new(size_t size) {
    return give_or_throw(size, 0);
}

void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return give(size, 0);
}

void* operator new(size_t size, std::align_val_t alignment) {
    return give_or_throw(size, static_cast<size_t>(alignment));
}

void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    return give(size, static_cast<size_t>(alignment));
}

void operator delete(void* p) noexcept {
    take(p);
}

void operator delete(void* p, size_t) noexcept {
    take(p);
}

void operator delete(void* p, std::align_val_t) noexcept {
    take(p);
}

void operator delete(void* p, size_t, std::align_val_t) noexcept {
    take(p);
}
#endif
