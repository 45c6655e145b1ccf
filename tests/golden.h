// SPDX-License-Identifier: Apache-2.0
// Goldens: texts that lie beside the tests. INGOT_WRITE_GOLDENS=1 writes all that a run compares;
// the difference is then to be read as any other change.
#pragma once

#include <string>

namespace ingot {

bool writes_goldens();
/// "" for equal texts, else the lines between the first and the last that differ, the first ones of
/// many.
std::string line_difference(const std::string& expected, const std::string& got);
/// "" where the file (its path below the checkout) holds the text, or was just written; else what
/// writes it, and the lines that differ.
std::string golden_difference(const std::string& path, const std::string& text);

} // namespace ingot
