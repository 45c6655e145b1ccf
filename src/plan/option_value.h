// SPDX-License-Identifier: Apache-2.0
// OptionValue: an option as it travels from the table of options to the backend that knows it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ingot {

/// Of a flag, a whole number, a number, a text, or a list.
using OptionValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;

} // namespace ingot
