// SPDX-License-Identifier: Apache-2.0
// Json's output, input, and messages for malformed text.
#include "base/allocation_count.h"
#include "base/json.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

std::string refusal(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
        return e.message();
    }
    return "nothing was thrown";
}

TEST(Json, PrintsWhatItHolds) {
    Json j;
    j.set("name", "a \"quoted\"\n\x01 \xc3\xa9");
    j.set("sizes", std::vector<int64_t>{1, -2, INT64_MAX, INT64_MIN});
    j.set("flags", Json::list()).add(true);
    j.set("map", std::map<std::string, std::array<int, 2>>{{"b", {3, 4}}, {"a", {1, 2}}});
    j.set("none", Json());
    j.set("empty", Json::object());
    EXPECT_EQ(j.dump(),
              "{\"name\":\"a \\\"quoted\\\"\\n\\u0001 \xc3\xa9\",\"sizes\":[1,-2,"
              "9223372036854775807,-9223372036854775808],\"flags\":[true],\"map\":{\"a\":[1,2],"
              "\"b\":[3,4]},\"none\":null,\"empty\":{}}");
    EXPECT_EQ(Json::parse("{\"a\": [1, {\"b\" : \"c\"}], \"d\": []}").dump(1),
              "{\n \"a\": [\n  1,\n  {\n   \"b\": \"c\"\n  }\n ],\n \"d\": []\n}");
    EXPECT_EQ(refusal([] { Json("\xff").dump(); }), "a text is not UTF-8: '\xff'");
    EXPECT_EQ(refusal([] { Json j2(UINT64_MAX); }),
              "an integer of at most 9223372036854775807 is expected, got 18446744073709551615");
}

TEST(Json, ReadsWhatItPrints) {
    Json j = Json::parse(" {\"i\": -5, \"s\": \"\\u00e9\", \"b\": false, \"l\": [1, 2],"
                         " \"m\": {\"x\": [3]}, \"n\": null} ");
    EXPECT_EQ(j.at("i").get<int32_t>(), -5);
    EXPECT_EQ(j.at("s").get<std::string>(), "\xc3\xa9");
    EXPECT_FALSE(j.at("b").get<bool>());
    EXPECT_EQ(j.at("l").get<std::vector<uint8_t>>(), (std::vector<uint8_t>{1, 2}));
    EXPECT_EQ((j.at("l").get<std::array<int64_t, 2>>()), (std::array<int64_t, 2>{1, 2}));
    EXPECT_EQ((j.at("m").get<std::map<std::string, std::vector<int>>>().at("x").at(0)), 3);
    EXPECT_EQ(j.value("missing", 7), 7);
    EXPECT_EQ(j.value("i", 7), -5);
    EXPECT_EQ(Json::parse(j.dump()).dump(), j.dump());
}

TEST(Json, RefusesTextThatIsWrong) {
    auto parse = [](const char* text) { return refusal([&] { Json::parse(text); }); };
    EXPECT_EQ(parse("[1, 2"), "parse error at line 1, column 6: syntax error while parsing array - "
                              "unexpected end of input; expected ']'");
    EXPECT_EQ(parse("[] 1"), "parse error at line 1, column 4: syntax error while parsing value - "
                             "unexpected number literal; expected end of input");
    EXPECT_EQ(parse("[1.5]"), "an integer is expected, got 1.5");
    EXPECT_EQ(parse("9223372036854775808"),
              "an integer of at most 9223372036854775807 is expected, got 9223372036854775808");
    EXPECT_EQ(parse("{\"a\": 1, \"b\": 2, \"a\": 3}"), "an object has 'a' twice");
    EXPECT_EQ(parse("[[[[[[[[1]]]]]]]]"), "nothing was thrown");
    EXPECT_EQ(parse("[[[[[[[[[1]]]]]]]]]"), "it is nested deeper than 8 levels");
}

TEST(Json, CopiesUnwindWhenMemoryRunsOut) {
    const Json from = Json::parse(R"({"list":[1,["a text that is long enough for the heap",{}]],
        "object":{"x":[true,null,"another text for the heap"]}})");
    for (bool assigned : {false, true}) {
        int64_t n = 0;
        bool reached = true;
        while (reached) {
            int64_t live = live_allocations();
            {
                Json to;
                fail_allocation(++n);
                try {
                    if (assigned) {
                        to = from;
                    } else {
                        to = Json(from);
                    }
                } catch (const std::bad_alloc&) {
                    EXPECT_TRUE(allocation_failed()) << n;
                }
                reached = allocation_failed();
                fail_allocation(0);
                EXPECT_TRUE(reached || to.dump() == from.dump()) << n;
            }
            EXPECT_EQ(live_allocations(), live) << n;
        }
        EXPECT_GT(n, 5);
    }
}

TEST(Json, RefusesWhatIsSomethingElse) {
    Json j = Json::parse("{\"i\": 300, \"s\": \"t\", \"l\": [1]}");
    auto get = [&](auto f) { return refusal([&] { f(); }); };
    EXPECT_EQ(get([&] { j.at("i").get<std::string>(); }), "a text is expected, got an integer");
    EXPECT_EQ(get([&] { j.at("i").get<int8_t>(); }), "300 is too large here");
    EXPECT_EQ(get([&] { j.at("s").get<int>(); }), "an integer is expected, got a text");
    EXPECT_EQ(get([&] { j.at("s").get<bool>(); }), "a truth value is expected, got a text");
    EXPECT_EQ(get([&] { j.at("s").items(); }), "a list is expected, got a text");
    EXPECT_EQ(get([&] { j.items(); }), "a list is expected, got an object");
    EXPECT_EQ(get([&] { j.at("l").at("x"); }), "an object is expected, got a list");
    EXPECT_EQ(get([&] { j.at("l").at(1); }), "a list of 1 elements has none at 1");
    EXPECT_EQ(get([&] { j.at("x"); }), "an object has no 'x'");
    EXPECT_EQ((get([&] { j.at("l").get<std::array<int, 2>>(); })),
              "a list of 2 elements is expected, got 1");
}

} // namespace
} // namespace ingot::test
