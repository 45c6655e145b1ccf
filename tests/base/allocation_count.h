// SPDX-License-Identifier: Apache-2.0
// This test program's operator new: its number of calls, live blocks, and simulated failures.
// Counts stay 0 and nothing fails under ThreadSanitizer, whose operator new cannot be replaced.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot {

/// Calls so far, from any thread.
int64_t allocation_count();
/// Live blocks of all threads.
int64_t live_allocations();
/// Their bytes, by malloc.
int64_t live_bytes();
/// The most of these since forget_most_bytes().
int64_t most_live_bytes();
void forget_most_bytes();
/// The n-th call from now on (1 is the next), of any thread, finds no memory; with `forever` those
/// after it find none either. 0: none fails.
void fail_allocation(int64_t n, bool forever = false);
/// Whether that call has happened since fail_allocation.
bool allocation_failed();

/// While one lives, the calls of this thread neither count for fail_allocation nor fail.
class AllocationsSucceed {
public:
    AllocationsSucceed();
    ~AllocationsSucceed();
    AllocationsSucceed(const AllocationsSucceed&) = delete;
    AllocationsSucceed& operator=(const AllocationsSucceed&) = delete;
};

} // namespace ingot
