// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot {

/// The checkout's folder. It stands in one object file: all others are the same wherever the
/// checkout lies, so that a compiler cache serves several.
std::string source_dir();

} // namespace ingot
