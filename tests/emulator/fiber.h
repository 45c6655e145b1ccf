// SPDX-License-Identifier: Apache-2.0
// Fibers: a stack each, and a switch between them in a few instructions (x86-64).
#pragma once

#include <cstddef>

namespace ingot::emulator {

/// Stacks that are kept for the next block. A page that faults lies below each.
class Stacks {
public:
    Stacks() = default;
    ~Stacks();
    Stacks(const Stacks&) = delete;
    Stacks& operator=(const Stacks&) = delete;

    void reserve(size_t count);
    /// A context that calls `entry` (which must not return) on stack `index` when switched to.
    void* prepare(size_t index, void (*entry)()) const;
    /// The stack pointer with which stack `index` can be used anew.
    std::byte* top(size_t index) const;
    /// Whether the address is in the page below a stack.
    bool is_overflow(const void* address) const;

    /// AddressSanitizer forgets the frames of stack `index` from `lowest` on, which nothing will
    /// return to.
    void forget_frames(size_t index, const void* lowest) const;

private:
    std::byte* base_ = nullptr;
    size_t count_ = 0;
};

} // namespace ingot::emulator

/// Saves the running context in *save and continues the context `load`.
extern "C" void ingot_emulator_switch(void** save, void* load);
