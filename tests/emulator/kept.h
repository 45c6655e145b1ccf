// SPDX-License-Identifier: Apache-2.0
// The folder in which tests keep what compilers made of device text, by content: one for all
// checkouts of a user, so that each text is compiled once.
#pragma once

#include <cstdint>
#include <string>

namespace ingot::emulator {

/// $INGOT_KEPT, else ~/.cache/ingot/emulated, else build/emulated of this checkout where there is
/// no home. Exists. The first call of a process each day removes what nobody asked for in 14 days.
/// Thread safe.
const std::string& kept_folder();

/// Whether a file of the folder is there; it counts as asked for.
bool found_kept(const std::string& path);

/// Removes the files of a folder whose last use was before `seconds` (since 1970).
void sweep(const std::string& folder, int64_t seconds);

} // namespace ingot::emulator
