// SPDX-License-Identifier: Apache-2.0
// Cooperative cancellation: long loops call check_interrupt(); Ctrl-C and time limits set it off.
#pragma once

#include <chrono>

namespace ingot {

/// Throws Error(Interrupted, "interrupted by ...") once a stop was asked for or the limit has
/// passed. Cheap: one relaxed load, and a clock read only while a limit is set.
void check_interrupt();
/// Async-signal-safe.
void request_interrupt() noexcept;
void clear_interrupt() noexcept;
/// From now on; zero removes the limit.
void set_time_limit(std::chrono::milliseconds limit);
/// SIGINT, SIGTERM and SIGHUP call request_interrupt, unless they are ignored; a second one ends
/// the process. For command-line tools.
void handle_sigint();

} // namespace ingot
