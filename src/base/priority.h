// SPDX-License-Identifier: Apache-2.0
// Priorities of threads and of device work.
#pragma once

namespace ingot {

/// Priority of device work among all programs on the device. Low: yields to other work where the
/// device can. Normal: the default of other programs.
enum class RunPriority { Low, Normal, High };

/// Runs this thread only when no other wants the CPU. Does nothing where the system refuses.
void lower_this_threads_priority() noexcept;

} // namespace ingot
