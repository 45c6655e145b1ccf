// SPDX-License-Identifier: Apache-2.0
// How urgently a thread, or work on a device, runs.
#pragma once

namespace ingot {

/// Of work on a device, among that of all programs that use it. Low: gives way to whatever can be
/// given way to. Normal: like work of programs that ask for nothing.
enum class RunPriority { Low, Normal, High };

/// This thread runs when no other wants the CPU. Where the system refuses, nothing changes.
void lower_this_threads_priority() noexcept;

} // namespace ingot
