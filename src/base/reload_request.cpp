// SPDX-License-Identifier: Apache-2.0
#include "base/reload_request.h"

#include <atomic>
#include <csignal>

namespace ingot {

namespace {

// A signal reaches the whole process, so this state is global.
std::atomic<bool> requested{false}; // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

extern "C" void on_request(int) {
    requested.store(true, std::memory_order_relaxed);
}

} // namespace

void watch_reload_requests() {
    std::signal(SIGUSR1, on_request);
}

bool take_reload_request() noexcept {
    return requested.exchange(false, std::memory_order_relaxed);
}

} // namespace ingot
