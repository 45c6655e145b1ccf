// SPDX-License-Identifier: Apache-2.0
// Every claim of spec_004.def has its test, and that test asserts it.
#include "base/file.h"
#include "base/text.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

namespace ingot::test {
namespace {

struct Claim {
    const char* text;
    const char* file;
    const char* suite;
    const char* test;
    std::string_view assertion; // words of it, or "helper: words" of a function that the test calls
};

const Claim claims[] = {
#define CLAIM(text, file, suite, test, assertion) {text, file, #suite, #test, assertion},
#include "api/spec_004.def"
#undef CLAIM
};

/// The text of a test; "" for an unknown name.
std::string body_of(const Claim& c, const std::string& source) {
    for (const char* macro : {"TEST", "TEST_F", "TEST_P"}) {
        size_t at = source.find(str("\n", macro, "(", c.suite, ", ", c.test, ") {"));
        if (at != std::string::npos) {
            return source.substr(at, source.find("\n}\n", at) - at);
        }
    }
    return "";
}

/// Whether an EXPECT_... or ASSERT_... statement of the text contains the words, with any line
/// breaks.
bool asserts(std::string_view text, std::string_view words) {
    std::string plain;
    for (char c : text) {
        bool space = c == ' ' || c == '\n';
        if (!space || plain.empty() || plain.back() != ' ') {
            plain += space ? ' ' : c;
        }
    }
    for (size_t at = 0; (at = plain.find_first_of("EA", at)) != std::string::npos; ++at) {
        std::string_view rest = std::string_view(plain).substr(at);
        if (rest.starts_with("EXPECT_") || rest.starts_with("ASSERT_")) {
            if (rest.substr(0, rest.find("; ")).find(words) != std::string_view::npos) {
                return true;
            }
        }
    }
    return false;
}

/// The file and the headers beside it.
std::string with_headers(const std::string& file, std::string source) {
    namespace fs = std::filesystem;
    for (const auto& e : fs::directory_iterator(fs::path(file).parent_path())) {
        source += e.path().extension() == ".h" ? read_text_file(e.path().string()) : "";
    }
    return source;
}

TEST(Spec004, EveryClaimHasATest) {
    constexpr std::string_view lower = "abcdefghijklmnopqrstuvwxyz_";
    std::set<std::string> texts;
    for (const Claim& c : claims) {
        EXPECT_TRUE(texts.insert(c.text).second) << "twice: " << c.text;
        std::string file = str(source_dir(), "/tests/", c.file);
        std::string source = read_text_file(file);
        std::string body = body_of(c, source);
        EXPECT_FALSE(body.empty())
            << c.file << " has no test " << c.suite << '.' << c.test << " for \"" << c.text << '"';
        std::string_view words = c.assertion;
        if (size_t colon = words.find(": "); words.find_first_not_of(lower) == colon) {
            std::string call = str(words.substr(0, colon), '(');
            EXPECT_NE(body.find(call), std::string::npos) << c.test << " does not call " << call;
            body = with_headers(file, source);
            words.remove_prefix(colon + 2);
        }
        EXPECT_TRUE(!words.empty() && asserts(body, words))
            << c.suite << '.' << c.test << " asserts nothing of " << words << ", for \"" << c.text
            << '"';
    }
    EXPECT_GT(texts.size(), 40U);
}

} // namespace
} // namespace ingot::test
