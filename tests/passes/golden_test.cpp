// SPDX-License-Identifier: Apache-2.0
// Goldens themselves: what a test says about a text that differs.
#include "golden.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

TEST(Golden, ShowsTheLinesBetween) {
    EXPECT_EQ(line_difference("a\nb\nc\n", "a\nb\nc\n"), "");
    EXPECT_EQ(line_difference("a\nb\nc\n", "a\nx\ny\nc\n"),
              "from line 2, '-' expected, '+' got:\n-b\n+x\n+y\n");
    EXPECT_EQ(line_difference("a\n", ""), "from line 1, '-' expected, '+' got:\n-a\n");
    std::string many;
    for (int i = 0; i < 30; ++i) {
        many += "line\n";
    }
    EXPECT_TRUE(line_difference("", many).ends_with("+line\n+... 10 more lines\n"));
}

TEST(Golden, SaysFirstHowItIsWritten) {
    if (writes_goldens()) {
        GTEST_SKIP() << "goldens are being written";
    }
    EXPECT_EQ(golden_difference("tests/no such file.txt", "a\n"),
              "tests/no such file.txt is not there: INGOT_WRITE_GOLDENS=1 writes it");
    EXPECT_TRUE(golden_difference("tests/golden.h", "a\n")
                    .starts_with("tests/golden.h holds another text; where the new one is right, "
                                 "INGOT_WRITE_GOLDENS=1 writes it\nfrom line 1,"));
}

} // namespace
} // namespace ingot
