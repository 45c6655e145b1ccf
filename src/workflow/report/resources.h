// SPDX-License-Identifier: Apache-2.0
// The files of the page, in resources/, as they are in the program.
#pragma once

#include <string_view>

namespace ingot {

/// By name ("page.css"). Aborts on an unknown one.
std::string_view report_resource(std::string_view file);

} // namespace ingot
