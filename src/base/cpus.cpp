// SPDX-License-Identifier: Apache-2.0
#include "base/cpus.h"

#include <sched.h>
#include <unistd.h>

namespace ingot {

namespace {

/// None where the system does not say.
std::vector<int> cpus_of(pid_t thread) {
    std::vector<int> out;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(thread, sizeof set, &set) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(static_cast<size_t>(cpu), &set)) {
                out.push_back(cpu);
            }
        }
    }
    return out;
}

} // namespace

std::vector<int> usable_cpus() {
    return cpus_of(0);
}

bool is_confined() {
    return usable_cpus().size() < cpus_of(getpid()).size();
}

} // namespace ingot
