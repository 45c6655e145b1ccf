// SPDX-License-Identifier: Apache-2.0
#include "base/fork.h"

#include <pthread.h>

#include <atomic>

namespace ingot {

namespace {

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): facts of the process
std::atomic<uint64_t> forks{0};
std::mutex forking;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

// The child has its lock from the thread that forked, which is the one it has.
void before() {
    forking.lock();
}
void in_parent() {
    forking.unlock();
}
void in_child() {
    forks.fetch_add(1);
    forking.unlock();
}

void watch_forks() {
    // Where there is no memory for it, forks are not seen. Undone when a library is closed.
    static const int watching = ::pthread_atfork(before, in_parent, in_child);
    static_cast<void>(watching);
}

} // namespace

uint64_t process_number() noexcept {
    watch_forks();
    return forks.load(std::memory_order_relaxed);
}

std::mutex& fork_mutex() {
    watch_forks();
    return forking;
}

} // namespace ingot
