// SPDX-License-Identifier: Apache-2.0
// Maps an address in compiled device text to its source line, for messages.
#pragma once

#include <string>

namespace ingot::emulator {

/// " (file.cpp:12)", or "" where the address is in no emulated text.
std::string source_line(const void* code);
/// The same for the device text that called into the runtime.
std::string source_line_of_caller();

} // namespace ingot::emulator
