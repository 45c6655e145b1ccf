// SPDX-License-Identifier: Apache-2.0
// Counts for docs/reliability.md: tools/reliability.py reads them from the report of the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace ingot::test {

/// `whole` in a run for the page, where INGOT_RELIABILITY is set; else `part`.
inline int64_t as_many(int64_t part, int64_t whole) {
    return std::getenv("INGOT_RELIABILITY") == nullptr ? part : whole;
}

/// `refused`: how many of the injections ended in an error that says so.
inline void record_injections(int64_t injections, int64_t refused) {
    testing::Test::RecordProperty("injections", std::to_string(injections));
    testing::Test::RecordProperty("refused", std::to_string(refused));
}

} // namespace ingot::test
