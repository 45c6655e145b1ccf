// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

namespace ingot {
namespace {

template <class T>
T parse(const std::string& text) {
    T v{};
    auto r = std::from_chars(text.data(), text.data() + text.size(), v);
    EXPECT_EQ(r.ec, std::errc()) << text;
    EXPECT_EQ(r.ptr, text.data() + text.size()) << text;
    return v;
}

TEST(text, floats_round_trip) {
    std::mt19937_64 random(20240607);
    for (int i = 0; i < 100000; ++i) {
        auto f = std::bit_cast<float>(static_cast<uint32_t>(random()));
        auto d = std::bit_cast<double>(random());
        if (std::isfinite(f)) {
            ASSERT_EQ(std::bit_cast<uint32_t>(parse<float>(str(f))), std::bit_cast<uint32_t>(f));
        }
        if (std::isfinite(d)) {
            ASSERT_EQ(std::bit_cast<uint64_t>(parse<double>(str(d))), std::bit_cast<uint64_t>(d));
        }
    }
}

TEST(text, floats_print_shortest) {
    EXPECT_EQ(str(0.1F), "0.1");
    EXPECT_EQ(str(0.1), "0.1");
    EXPECT_EQ(str(1.0F), "1");
    EXPECT_EQ(str(-0.0F), "-0");
    EXPECT_EQ(str(std::numeric_limits<float>::infinity()), "inf");
    EXPECT_EQ(str(16777216.0F), "16777216");
}

TEST(text, joins_values_of_many_types) {
    std::vector<int64_t> shape{1, -3, 224};
    EXPECT_EQ(
        str("got ", shape, ' ', true, ' ', DType::F16, ' ', std::string("x"), ' ', uint8_t{200}),
        "got [1,-3,224] true f16 x 200");
    EXPECT_EQ(str(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
    EXPECT_EQ(str(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
    EXPECT_EQ(str(), "");
    EXPECT_EQ(str(std::vector<std::string>{}), "[]");
}

TEST(text, join) {
    EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
    EXPECT_EQ(join(std::vector<std::string>{"a"}, ", "), "a");
    EXPECT_EQ(join(std::vector<std::string>{"a", "", "c"}, ", "), "a, , c");
}

TEST(text, nearest_finds_misspellings) {
    std::vector<std::string> words{"shapes", "min-shapes", "opt-shapes", "verbose", "help"};
    EXPECT_EQ(nearest("shape", words), "shapes");
    EXPECT_EQ(nearest("vrebose", words), "verbose");
    EXPECT_EQ(nearest("min_shapes", words), "min-shapes");
    EXPECT_EQ(nearest("help", words), "help");
    EXPECT_EQ(nearest("quantisation", words), "");
    EXPECT_EQ(nearest("xyz", words), "");
    EXPECT_EQ(nearest("a", std::vector<std::string>{}), "");
}

TEST(text, quote_and_back_for_every_byte) {
    std::string all;
    for (int i = 0; i < 256; ++i) {
        all += static_cast<char>(i);
    }
    EXPECT_EQ(unquote(quote(all)), all);
    EXPECT_EQ(quote("a\"b\\c\nd\x01\x7f"), R"("a\"b\\c\nd\x01\x7f")");
    EXPECT_EQ(quote(""), "\"\"");
    EXPECT_EQ(unquote("\"\""), "");
    EXPECT_EQ(unquote(R"("\x41\x00z")"), std::string("A\0z", 3));
}

TEST(text, unquote_refuses_what_quote_never_writes) {
    for (const char* bad : {"", "\"", "a", "\"a", "a\"", R"("\")", R"("a"b")", R"("\q")",
                            R"("\x4")", R"("\xzz")", R"("\x4G")"}) {
        try {
            unquote(bad);
            ADD_FAILURE() << "accepted " << bad;
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::InvalidArgument) << bad;
            EXPECT_FALSE(e.message().empty());
        }
    }
}

TEST(text, printable_text_obeys_no_terminal) {
    EXPECT_EQ(printable("plain \t text\n, \xc3\xbc \xe2\x82\xac \xc2\xa0"),
              "plain \t text\n, \xc3\xbc \xe2\x82\xac \xc2\xa0");
    EXPECT_EQ(printable("a\x1b[31m\x07\r\x7f"), "a\\x1b[31m\\x07\\x0d\\x7f");
    EXPECT_EQ(printable("\xc2\x9b"
                        "1m"),
              "\\xc2\\x9b"
              "1m"); // CSI as one character
    EXPECT_EQ(printable("\xc2"), "\xc2");
    EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
    EXPECT_EQ(printable(""), "");
    // Errors and log lines are printable.
    Error e(ErrorCode::Io, "cannot open 'a\x1b'");
    e.at("in \x1b[2J");
    EXPECT_EQ(std::string(e.what()), "in \\x1b[2J: cannot open 'a\\x1b'");
}

} // namespace
} // namespace ingot
