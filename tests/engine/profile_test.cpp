// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "error_of.h"
#include "ir/profile.h"
#include "workflow/build.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

using test::error_of;

Graph two_inputs() {
    Graph g;
    g.add_output("y", g.add_input("image", parse_type("f32[N,3,H,W]")));
    g.add_input("tokens", parse_type("i64[N,77]"));
    return g;
}

TEST(Profile, SpecsFillWhatIsMissing) {
    auto p = profile_from_specs("image:1x3x64x64", "", "image:8x3x512x512,tokens:8x77");
    ASSERT_EQ(p.size(), 1U);
    EXPECT_EQ(p[0].find("image")->opt, (Shape{8, 3, 512, 512}));
    EXPECT_EQ(p[0].find("tokens")->min, (Shape{8, 77}));
    EXPECT_TRUE(profile_from_specs("", "", "").empty());
    EXPECT_EQ(parse_shapes("a:b:1x2")[0].first, "a:b");
    EXPECT_EQ(parse_shapes("s:scalar")[0].second, Shape{});
}

TEST(Profile, SpecErrors) {
    EXPECT_EQ(error_of([] { parse_shapes("image"); }),
              "shapes 'image': 'image' is not name:sizes, such as image:1x3x224x224");
    EXPECT_EQ(error_of([] { parse_shapes("a:1,a:2"); }),
              "shapes 'a:1,a:2': input 'a' is named twice");
    EXPECT_EQ(error_of([] { parse_shapes("a:1x-3"); }),
              "shape '1x-3': expected sizes joined by x, such as 1x3x224x224");
    EXPECT_EQ(error_of([] { parse_shapes("a:1x"); }),
              "shape '1x': expected sizes joined by x, such as 1x3x224x224");
}

TEST(Profile, ChecksInputsRanksAndOrder) {
    Graph g = two_inputs();
    EXPECT_EQ(error_of([&] {
                  check_profile(g, {{{"imag", {1}, {1}, {1}}}});
              }),
              "profile: there is no input 'imag', did you mean 'image'? Inputs: image, tokens");
    EXPECT_EQ(error_of([&] {
                  check_profile(g, {{{"tokens", {1}, {1}, {1}}}});
              }),
              "profile: input 'tokens' has rank 2 [N,77], got 1");
    EXPECT_EQ(
        error_of([&] {
            check_profile(g, {{{"tokens", {2, 77}, {1, 77}, {4, 77}}}});
        }),
        "profile: input 'tokens' dimension 0: min 2, opt 1, max 4, expected min <= opt <= max");
    EXPECT_EQ(error_of([&] {
                  check_profile(g, {{{"tokens", {1, 7}, {1, 7}, {1, 7}}}});
              }),
              "profile: input 'tokens' dimension 1 is fixed to 77, got 7 to 7");
}

TEST(Profile, RunTimeShapes) {
    Graph g = two_inputs();
    std::vector<Profile> p = {{{{"image", {1, 3, 8, 8}, {1, 3, 8, 8}, {4, 3, 16, 16}}}}};
    EXPECT_EQ(error_of([&] { check_shape(g, 0, {4, 3, 16, 8}, p); }), "");
    EXPECT_EQ(error_of([&] {
                  check_shape(g, 0, {5, 3, 16, 8}, p);
              }),
              "input 'image' with shape 5x3x16x8 is outside the engine's profile: dimension 0 is "
              "5, allowed 1 to 4");
    EXPECT_EQ(error_of([&] {
                  check_shape(g, 0, {1, 4, 8, 8}, p);
              }),
              "input 'image' dimension 1 is 4, expected 3");
    EXPECT_EQ(error_of([&] {
                  check_shape(g, 0, {3, 8, 8}, p);
              }),
              "input 'image' has rank 3 (3x8x8), expected rank 4 [N,3,H,W]");
    EXPECT_EQ(error_of([&] { check_shape(g, 1, {99, 77}, p); }), "");
    p.push_back({{{"image", {8, 3, 8, 8}, {8, 3, 8, 8}, {8, 3, 8, 8}}}});
    EXPECT_EQ(error_of([&] { check_shape(g, 0, {8, 3, 8, 8}, p); }), "");
    EXPECT_EQ(error_of([&] {
                  check_shape(g, 0, {6, 3, 8, 8}, p);
              }),
              "input 'image' with shape 6x3x8x8 is outside the engine's profile: profile 0: "
              "dimension 0 is 6, allowed 1 to "
              "4; profile 1: dimension 0 is 6, allowed 8 to 8");
    Bounds b = symbol_bounds(g, p);
    EXPECT_EQ(b.at("N"), (Interval{1, 8}));
    EXPECT_EQ(b.at("H"), (Interval{8, 16}));
    EXPECT_EQ(default_shape(g, 0, p), (Shape{1, 3, 8, 8}));
    EXPECT_EQ(default_shape(g, 1, p), (Shape{1, 77}));
}

} // namespace
} // namespace ingot
