// SPDX-License-Identifier: Apache-2.0
// Goldens: texts that lie beside the tests. INGOT_WRITE_GOLDENS=1 writes all that a run compares;
// the difference is then to be read as any other change.
#pragma once

#include <string>

namespace ingot {

bool writes_goldens();
/// "" where the file (its path below the checkout) holds the text, or was just written; else the
/// first line that differs.
std::string golden_difference(const std::string& path, const std::string& text);

} // namespace ingot
