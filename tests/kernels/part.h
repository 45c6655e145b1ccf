// SPDX-License-Identifier: Apache-2.0
// The part of the families' tests that this process runs (main.cpp).
#pragma once

#include <string>

namespace ingot::test {

/// NAME of --part=NAME; "" for all tests, or some by their names.
const std::string& running_part();

} // namespace ingot::test
