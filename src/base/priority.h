// SPDX-License-Identifier: Apache-2.0
// How urgently a thread runs.
#pragma once

namespace ingot {

/// This thread runs when no other wants the CPU. Where the system refuses, nothing changes.
void lower_this_threads_priority() noexcept;

} // namespace ingot
