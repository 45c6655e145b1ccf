// SPDX-License-Identifier: Apache-2.0
// The CPUs that threads may run on.
#pragma once

#include <vector>

namespace ingot {

/// Those of the calling thread, in rising order.
std::vector<int> usable_cpus();

/// Whether the calling thread is kept to fewer CPUs than the process's first thread, and with it
/// the threads that it starts.
bool is_confined();

} // namespace ingot
