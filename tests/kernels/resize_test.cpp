// SPDX-License-Identifier: Apache-2.0
// Family resize against the op's expansion: modes, coordinates, axes, layouts, dtypes.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

ops::Resize resize_of(const std::string& mode, const std::string& coordinates, Dims sizes) {
    ops::Resize a;
    a.mode = mode;
    a.coordinates = coordinates;
    a.axes = {2, 3};
    a.sizes = std::move(sizes);
    return a;
}

Graph graph_of(const std::string& type, const ops::Resize& a) {
    Graph g;
    Value x = g.add_input("x", parse_type(type));
    g.add_output("y", ops::resize(g, a, x));
    return g;
}

TEST(Resize, ModesAndCoordinates) {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
        for (const char* c : {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                              "half_pixel_symmetric", "tf_half_pixel_for_nn"}) {
            for (Dims sizes : {Dims{19, 30}, Dims{5, 3}, Dims{1, 1}}) {
                SCOPED_TRACE(str(mode, ' ', c));
                expect_family(graph_of("f32[1,2,7,11]", resize_of(mode, c, sizes)));
            }
        }
    }
}

TEST(Resize, ChannelsLastTakesVectors) {
    for (const char* mode : {"nearest", "linear"}) {
        FamilyOptions o;
        o.orders = {{0, 2, 3, 1}};
        Graph g = graph_of("f16[2,16,5,6]", resize_of(mode, "half_pixel", {11, 13}));
        FamilyRun r = expect_family(g, o);
        EXPECT_EQ(r.entries.size(), 2U);
        o.strided = true;
        expect_family(g, o);
        expect_family(graph_of("f32[2,5,5,6]", resize_of(mode, "half_pixel", {11, 13})), o);
    }
}

TEST(Resize, RepeatedElementsAreABroadcast) {
    for (const char* coordinates : {"half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"}) {
        Graph g = graph_of("f16[2,3,5,6]", resize_of("nearest", coordinates, {10, 18}));
        EXPECT_NE(refusal(g).value_or("").find("elements are repeated"), std::string::npos);
        expect_backend(g);
    }
    ops::Resize a = resize_of("nearest", "asymmetric", {10, 6});
    a.nearest = "floor";
    a.scales = {2, 1};
    expect_backend(graph_of("u8[2,3,5,6]", a));
    a.nearest = "ceil"; // moves by one
    EXPECT_FALSE(refusal(graph_of("u8[2,3,5,6]", a)).has_value());
}

TEST(Resize, NearestRounding) {
    for (const char* nearest : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}) {
        ops::Resize a = resize_of("nearest", "asymmetric", {21, 5});
        a.nearest = nearest;
        expect_family(graph_of("i64[1,2,6,10]", a), {.tolerance = 0});
    }
}

TEST(Resize, ScalesWeightsAndAntialias) {
    ops::Resize a = resize_of("cubic", "half_pixel", {54, 4});
    a.scales = {1.36, 0.5};
    a.exclude_outside = true;
    a.cubic = -0.5;
    FamilyRun run = expect_family(graph_of("f32[1,2,40,9]", a));
    EXPECT_EQ(run.entries.size(), 2U);
    for (const char* mode : {"linear", "cubic"}) {
        ops::Resize b = resize_of(mode, "half_pixel", {7, 33});
        b.antialias = true;
        expect_family(graph_of("f32[2,3,20,50]", b));
        b.sizes = {5, 9}; // so many neighbours that axes go one after another
        FamilyRun r = expect_family(graph_of("f32[1,2,40,41]", b));
        EXPECT_EQ(r.entries.size(), 3U);
    }
}

TEST(Resize, DTypes) {
    for (const char* t : {"f64", "bf16", "u8", "i8", "i32", "f8e4m3"}) {
        SCOPED_TRACE(t);
        ops::Resize a = resize_of("linear", "half_pixel", {9, 8});
        FamilyOptions o;
        o.low = -100;
        o.high = 100;
        // Sums in f32 may round the other way where a result lies between two whole numbers.
        o.tolerance = is_float(parse_type(std::string(t) + "[1]").dtype) ? -1 : 1;
        expect_family(graph_of(std::string(t) + "[1,3,6,5]", a), o);
        a.mode = "nearest";
        expect_family(graph_of(std::string(t) + "[1,3,6,5]", a), {.tolerance = 0});
    }
}

// Cubic weights reach beyond both ends of the type.
TEST(Resize, WholeNumbersSaturate) {
    for (const char* t : {"u8[1,2,6,5]", "i8[1,2,6,5]", "u16[1,2,6,5]"}) {
        bool is_small = parse_type(t).dtype == DType::I8;
        FamilyOptions o;
        o.low = is_small ? -128 : 0;
        o.high = is_small ? 127 : 255;
        o.tolerance = 1;
        expect_family(graph_of(t, resize_of("cubic", "half_pixel", {9, 8})), o);
    }
}

TEST(Resize, CropAndOtherAxes) {
    ops::Resize a = resize_of("linear", "tf_crop_and_resize", {9, 7});
    a.roi = {0.2, -0.3, 0.9, 1.4};
    a.extrapolation = 2.5;
    expect_family(graph_of("f32[1,2,8,6]", a));
    a.mode = "nearest";
    expect_family(graph_of("f32[1,2,8,6]", a));
    ops::Resize b = resize_of("linear", "align_corners", {3, 7, 6});
    b.axes = {3, 1, 2};
    expect_family(graph_of("f32[2,4,5,6]", b));
    ops::Resize c = resize_of("cubic", "half_pixel", {13});
    c.axes = {0};
    expect_family(graph_of("f32[6]", c));
}

TEST(Resize, ThroughTheBackend) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {Dim::symbol("N"), 4, Dim::symbol("H"), 10}});
    g.add_output("y", ops::resize(g, resize_of("linear", "half_pixel", {12, 15}), x));
    expect_backend(g, {.symbols = {{"N", 2}, {"H", 6}}});
    EXPECT_FALSE(refusal(graph_of("f16[1,2,3,4]", resize_of("cubic", "half_pixel", {5, 6}))));
    EXPECT_TRUE(refusal(graph_of("i4[1,2,3,4]", resize_of("nearest", "half_pixel", {5, 6}))));
}

} // namespace
} // namespace ingot::test
