// SPDX-License-Identifier: Apache-2.0
// The part of the process's addresses that belongs to emulated devices. Nothing of the host lies
// within 64 GiB of their memory: an index of 32 bits that leads a kernel out of its memory faults,
// or meets other device memory. It never reaches the program that runs the kernel.
#pragma once

#include <cstddef>

namespace ingot::emulator {

constexpr size_t page = 4096;

/// Inaccessible memory of `bytes`, a multiple of `page`, behind and in front of a page that stays
/// inaccessible; give_back frees it. Null where there is no room. Thread safe.
std::byte* take_addresses(size_t bytes);
/// `from` and `bytes` as in take_addresses; null does nothing. Thread safe.
void give_back(std::byte* from, size_t bytes) noexcept;

} // namespace ingot::emulator
