// SPDX-License-Identifier: Apache-2.0
// A forked child has one thread, whatever its memory says.
#pragma once

#include <cstdint>
#include <mutex>

namespace ingot {

/// 0 at first, and one more in each forked child: threads that were started under another number
/// are not there. Only forks after the first call count.
uint64_t process_number() noexcept;

/// No fork happens while it is locked: hold it shortly, and start nothing that forks.
std::mutex& fork_mutex();

} // namespace ingot
