// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/status.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

TEST(error, what_reads_from_outside_in) {
    Error e(ErrorCode::InvalidModel, "weights must be rank >= 3, got [64]");
    EXPECT_STREQ(e.what(), "weights must be rank >= 3, got [64]");
    e.at("node 'conv3' (Conv, opset 13)").at("model 'a.onnx'");
    EXPECT_STREQ(e.what(), "model 'a.onnx': node 'conv3' (Conv, opset 13): "
                           "weights must be rank >= 3, got [64]");
    EXPECT_EQ(e.message(), "weights must be rank >= 3, got [64]");
    EXPECT_EQ(e.trail(),
              (std::vector<std::string>{"node 'conv3' (Conv, opset 13)", "model 'a.onnx'"}));
}

TEST(error, copies_keep_their_text) {
    Error e(ErrorCode::Io, "a");
    Error copy = e;
    e.at("outer");
    EXPECT_STREQ(copy.what(), "a");
    EXPECT_STREQ(e.what(), "outer: a");
}

TEST(error, require_throws_only_when_false) {
    EXPECT_NO_THROW(require(true, ErrorCode::Io, "never"));
    try {
        require(false, ErrorCode::InvalidEngine, "expected ", 3, ", got ", 4);
        ADD_FAILURE() << "did not throw";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidEngine);
        EXPECT_EQ(e.message(), "expected 3, got 4");
    }
}

TEST(error, with_place_adds_to_the_trail_and_passes_results) {
    EXPECT_EQ(with_place([] { return std::string("unused"); }, [] { return 7; }), 7);
    bool asked = false;
    auto place = [&] {
        asked = true;
        return std::string("here");
    };
    EXPECT_EQ(with_place(place, [] { return 1; }), 1);
    EXPECT_FALSE(asked) << "places are built on failure only";
    try {
        with_place(place, [] { fail(ErrorCode::Unsupported, "no"); });
        ADD_FAILURE() << "did not throw";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "here: no");
        EXPECT_EQ(e.code(), ErrorCode::Unsupported);
    }
    EXPECT_THROW(with_place(place, [] { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST(error, codes_have_different_names) {
    std::vector<std::string> names;
    for (ErrorCode c : {ErrorCode::InvalidArgument, ErrorCode::InvalidModel,
                        ErrorCode::InvalidEngine, ErrorCode::Unsupported, ErrorCode::Io,
                        ErrorCode::OutOfMemory, ErrorCode::Interrupted, ErrorCode::Internal}) {
        for (const std::string& other : names) {
            EXPECT_NE(other, name(c));
        }
        names.emplace_back(name(c));
        EXPECT_NE(names.back(), "unknown");
    }
}

TEST(error, status_is_ok_without_text) {
    constexpr Status fine;
    static_assert(fine.ok());
    EXPECT_STREQ(fine.text(), "");
    constexpr Status bad(ErrorCode::OutOfMemory, "no memory left");
    static_assert(!bad.ok());
    EXPECT_EQ(bad.code(), ErrorCode::OutOfMemory);
    EXPECT_STREQ(bad.text(), "no memory left");
}

TEST(error_death, check_aborts_with_condition_and_message) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    int two = 2;
    CHECK(two == 2, "not reached");
    EXPECT_DEATH(CHECK(two == 3, "two is ", two),
                 "internal error: two is 2.*check 'two == 3' failed");
}

} // namespace
} // namespace ingot
