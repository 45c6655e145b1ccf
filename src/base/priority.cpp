// SPDX-License-Identifier: Apache-2.0
#include "base/priority.h"

#include <sys/resource.h>

namespace ingot {

void lower_this_threads_priority() noexcept {
    constexpr int lowest = 19;
    // On Linux, 0 is the calling thread, not its process.
    (void)::setpriority(PRIO_PROCESS, 0, lowest);
}

} // namespace ingot
