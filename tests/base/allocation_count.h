// SPDX-License-Identifier: Apache-2.0
// Operator new of this test program: how often it was called, what is still held, and how it fails.
// Counts stay 0 and nothing fails under ThreadSanitizer, whose operator new cannot be replaced.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot {

/// Calls so far, from any thread.
int64_t allocation_count();
/// Blocks that were given and not taken back, of all threads.
int64_t live_allocations();
/// The n-th call from now on (1 is the next) of this thread for `least` bytes or more finds no
/// memory, once; 0: none does.
void fail_allocation(int64_t n, size_t least = 0);
/// Whether it has come to that since fail_allocation.
bool allocation_failed();

} // namespace ingot
