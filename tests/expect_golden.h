// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "golden.h"

#include <gtest/gtest.h>

namespace ingot {

/// Fails the test where the golden (golden.h) does not hold the text.
inline void expect_golden(const std::string& path, const std::string& text) {
    std::string difference = golden_difference(path, text);
    if (!difference.empty()) {
        ADD_FAILURE() << difference;
    }
}

} // namespace ingot
