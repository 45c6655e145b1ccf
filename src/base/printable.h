// SPDX-License-Identifier: Apache-2.0
// Text from files, for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace ingot {

/// `text` with \xNN in the place of control characters, which a terminal would obey; line ends and
/// tabs stay.
std::string printable(std::string_view text);

} // namespace ingot
