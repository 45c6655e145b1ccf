// SPDX-License-Identifier: Apache-2.0
// Every claim of spec_004.def has its test.
#include "base/file.h"
#include "base/text.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <set>

namespace ingot::test {
namespace {

struct Claim {
    const char* text;
    const char* file;
    const char* suite;
    const char* test;
};

const Claim claims[] = {
#define CLAIM(text, file, suite, test) {text, file, #suite, #test},
#include "api/spec_004.def"
#undef CLAIM
};

TEST(Spec004, EveryClaimHasATest) {
    std::set<std::string> texts;
    for (const Claim& c : claims) {
        EXPECT_TRUE(texts.insert(c.text).second) << "twice: " << c.text;
        std::string source = read_text_file(str(source_dir(), "/tests/", c.file));
        std::string end = str("(", c.suite, ", ", c.test, ") {");
        bool found = false;
        for (const char* macro : {"TEST", "TEST_F", "TEST_P"}) {
            found = found || source.find(macro + end) != std::string::npos;
        }
        EXPECT_TRUE(found) << c.file << " has no test " << c.suite << '.' << c.test << " for \""
                           << c.text << '"';
    }
    EXPECT_GT(texts.size(), 40U);
}

} // namespace
} // namespace ingot::test
