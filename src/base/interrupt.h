// SPDX-License-Identifier: Apache-2.0
// Cooperative cancellation by Ctrl-C or a time limit: long loops call check_interrupt().
#pragma once

#include <chrono>

namespace ingot {

/// Throws Error(Interrupted, "interrupted by ...") after a stop request or when the time limit has
/// passed. Cheap: one relaxed load, and a clock read only while a limit is set.
void check_interrupt();
/// Whether check_interrupt() would throw.
bool is_interrupted() noexcept;
/// Async-signal-safe.
void request_interrupt() noexcept;
void clear_interrupt() noexcept;
/// Holds for the whole process, from now on; zero removes it.
void set_time_limit(std::chrono::milliseconds limit);
/// SIGINT, SIGTERM and SIGHUP call request_interrupt, unless they are ignored; a second one ends
/// the process. For command-line tools.
void handle_sigint();

} // namespace ingot
