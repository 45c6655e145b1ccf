// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

#include "base/error.h"

#include <algorithm>
#include <atomic>
#include <csignal>

namespace ingot {

namespace {

// A signal reaches the whole process, so this state is global.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> requested{false};
std::atomic<int64_t> deadline{0}; // steady clock, nanoseconds; 0: none
std::atomic<int64_t> limit_ms{0};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

constexpr int stops[] = {SIGINT, SIGTERM, SIGHUP};

extern "C" void on_stop(int) {
    request_interrupt();
    for (int s : stops) {
        std::signal(s, SIG_DFL);
    }
}

} // namespace

void check_interrupt() {
    require(!requested.load(std::memory_order_relaxed), ErrorCode::Interrupted, "interrupted");
    int64_t end = deadline.load(std::memory_order_relaxed);
    require(end == 0 || now() < end, ErrorCode::Interrupted, "stopped after the time limit of ",
            limit_ms.load(std::memory_order_relaxed), " ms");
}

bool is_interrupted() noexcept {
    int64_t end = deadline.load(std::memory_order_relaxed);
    return requested.load(std::memory_order_relaxed) || (end != 0 && now() >= end);
}

void request_interrupt() noexcept {
    requested.store(true, std::memory_order_relaxed);
}

void clear_interrupt() noexcept {
    requested.store(false, std::memory_order_relaxed);
}

void set_time_limit(std::chrono::milliseconds limit) {
    limit_ms = limit.count();
    // A limit above a century would overflow nanoseconds; it is never reached.
    std::chrono::milliseconds longest = std::chrono::hours(24 * 36525);
    deadline = limit.count() == 0 ? 0 : now() + std::min(limit, longest).count() * 1'000'000;
}

void handle_sigint() {
    for (int s : stops) {
        if (std::signal(s, on_stop) == SIG_IGN) { // nohup and background jobs ignore it
            std::signal(s, SIG_IGN);
        }
    }
}

} // namespace ingot
