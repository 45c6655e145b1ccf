// SPDX-License-Identifier: Apache-2.0
// The value types of options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

using Flag = bool;
using Int = int64_t;
using Real = double;
using Text = std::string;
using List = std::vector<std::string>;

} // namespace ingot
