// SPDX-License-Identifier: Apache-2.0
#include "emulator/fiber.h"

#include "base/error.h"
#include "emulator/address_space.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>

asm(R"(
.text
.globl ingot_emulator_switch
.hidden ingot_emulator_switch
.type ingot_emulator_switch,@function
ingot_emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size ingot_emulator_switch,.-ingot_emulator_switch
)");

namespace ingot::emulator {

namespace {

constexpr size_t stride = 33 * page;

} // namespace

Stacks::~Stacks() {
    if (base_ != nullptr) {
        munmap(base_, count_ * stride);
    }
}

void Stacks::reserve(size_t count) {
    if (count <= count_) {
        return;
    }
    if (base_ != nullptr) {
        munmap(base_, count_ * stride);
        base_ = nullptr;
    }
    count_ = std::max(count, size_t{256});
    void* memory = mmap(nullptr, count_ * stride, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(memory != MAP_FAILED, ErrorCode::OutOfMemory, "no memory for ", count_,
            " stacks of emulated threads");
    base_ = static_cast<std::byte*>(memory);
    for (size_t i = 0; i < count_; ++i) {
        mprotect(base_ + i * stride, page, PROT_NONE);
    }
}

std::byte* Stacks::top(size_t index) const {
    // Staggered, so that the hot ends of all stacks do not share one set of the caches.
    return base_ + (index + 1) * stride - index % 61 * 128;
}

void* Stacks::prepare(size_t index, void (*entry)()) const {
    auto* sp = reinterpret_cast<void**>(top(index));
    *--sp = nullptr; // ends the walk of a backtrace
    *--sp = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; ++i) {
        *--sp = nullptr;
    }
    return sp;
}

void Stacks::forget_frames(size_t index, const void* lowest) const {
    const std::byte* end = base_ + (index + 1) * stride;
    const auto* begin = static_cast<const std::byte*>(lowest);
    if (begin >= end - stride && begin < end) {
        ASAN_UNPOISON_MEMORY_REGION(begin, static_cast<size_t>(end - begin));
    }
}

bool Stacks::is_overflow(const void* address) const {
    auto* a = static_cast<const std::byte*>(address);
    return a >= base_ && a < base_ + count_ * stride &&
           static_cast<size_t>(a - base_) % stride < page;
}

} // namespace ingot::emulator
