// SPDX-License-Identifier: Apache-2.0
// Opens a file strictly inside a folder, in two ways; both are declared so that both can be tested.
#pragma once

#include <string>

namespace ingot {

/// How open_beneath ended: an open descriptor, or the reason why not.
struct BeneathResult {
    int descriptor = -1;
    int error = 0;       // an errno value when descriptor is -1
    bool escape = false; // the path leaves the folder or passes a symbolic link
};

/// One system call (openat2, Linux 5.6); error ENOSYS or EPERM where the kernel or a sandbox
/// refuses it. `relative` has been checked: relative, no "..", no NUL.
BeneathResult open_beneath_by_kernel(int folder, const std::string& relative);
/// The same, component by component, for kernels without that call.
BeneathResult open_beneath_by_component(int folder, const std::string& relative);

} // namespace ingot
