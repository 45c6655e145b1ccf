// SPDX-License-Identifier: Apache-2.0
// OptionValue: an option's value on its way from the table of options to the backend that defines
// it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ingot {

/// The value of a flag, a whole number, a number, a text, or a list.
using OptionValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;

} // namespace ingot
