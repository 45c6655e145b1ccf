// SPDX-License-Identifier: Apache-2.0
#include "base/allocation_count.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): operator new has no object.
std::atomic<int64_t> allocations{0};
std::atomic<int64_t> live{0};
std::atomic<int64_t> bytes{0};
std::atomic<int64_t> most_bytes{0};
std::atomic<int64_t> until_failure{0}; // 0 and below: none
std::atomic<bool> fails_forever{false};
std::atomic<bool> has_failed{false};
thread_local int spared = 0; // lives of AllocationsSucceed
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)
} // namespace

namespace ingot {

int64_t allocation_count() {
    return allocations.load();
}

int64_t live_allocations() {
    return live.load();
}

int64_t live_bytes() {
    return bytes.load();
}

int64_t most_live_bytes() {
    return most_bytes.load();
}

void forget_most_bytes() {
    most_bytes = bytes.load();
}

void fail_allocation(int64_t n, bool forever) {
    until_failure = 0;
    fails_forever = forever;
    has_failed = false;
    until_failure = n;
}

AllocationsSucceed::AllocationsSucceed() {
    ++spared;
}

AllocationsSucceed::~AllocationsSucceed() {
    --spared;
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

bool fails_now() {
    int64_t left = until_failure.load(std::memory_order_relaxed);
    if (left <= 0 || spared > 0) {
        return false;
    }
    if (left > 1 || !fails_forever) {
        left = until_failure.fetch_sub(1);
    }
    if (left == 1) {
        has_failed = true;
    }
    return left == 1;
}

void* give(size_t size, size_t alignment) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (fails_now()) {
        return nullptr;
    }
    size = (size == 0 ? 1 : size);
    void* p = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                  ? std::malloc(size)
                  : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (p != nullptr) {
        live.fetch_add(1, std::memory_order_relaxed);
        auto size_given = static_cast<int64_t>(malloc_usable_size(p));
        int64_t now = bytes.fetch_add(size_given, std::memory_order_relaxed) + size_given;
        int64_t most = most_bytes.load(std::memory_order_relaxed);
        while (now > most && !most_bytes.compare_exchange_weak(most, now)) {
        }
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
        bytes.fetch_sub(static_cast<int64_t>(malloc_usable_size(p)), std::memory_order_relaxed);
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
