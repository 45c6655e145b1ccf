// SPDX-License-Identifier: Apache-2.0
// NVIDIA's device files, through which its driver reaches GPUs.
#pragma once

#include <string>

namespace ingot {

/// The first of them in this folder, by name, that this user may not read and write; "" for none.
std::string forbidden_device_file(const std::string& folder = "/dev");
/// The same as the end of a message, with what to do: "; this user may not read and write
/// '/dev/nvidiactl': ..."; "" for none.
std::string forbidden_device_text(const std::string& folder = "/dev");

} // namespace ingot
