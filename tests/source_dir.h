// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot {

/// The checkout's folder. One object file holds it: all others are equal in every checkout, so that
/// a compiler cache serves several.
std::string source_dir();

} // namespace ingot
