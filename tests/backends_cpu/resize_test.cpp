// SPDX-License-Identifier: Apache-2.0
// Resize of f32 against the evaluator: modes, coordinates, axes and layouts.
#include "backends/backends.h"
#include "backends_cpu/compare.h"
#include "ir/rewrite.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <gtest/gtest.h>

namespace ingot {

namespace {

ops::Resize resize_of(const std::string& mode, const std::string& coordinates, Dims sizes) {
    ops::Resize a;
    a.mode = mode;
    a.coordinates = coordinates;
    a.axes = {2, 3};
    a.sizes = std::move(sizes);
    return a;
}

void expect_claimed(const Graph& g) {
    auto executable = cpu_backend().compile(std::make_shared<const Graph>(g), {});
    EXPECT_EQ(executable->lowered().nodes().back().def->name, "resize");
}

void expect_expanded(const Graph& g) {
    auto executable = cpu_backend().compile(std::make_shared<const Graph>(g), {});
    visit_nodes(executable->lowered(), [](const Graph&, const Node& n) {
        EXPECT_FALSE(n.def->name == "resize" ||
                     (n.is(fused_def) && n.as<Fused>().kernel == "resize"));
    });
}

TEST(CpuResize, ModesAndCoordinates) {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
        for (const char* c : {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                              "half_pixel_symmetric", "tf_half_pixel_for_nn"}) {
            for (Dims sizes : {Dims{19, 30}, Dims{5, 3}, Dims{1, 1}, Dims{7, 64}}) {
                SCOPED_TRACE(testing::Message() << mode << ' ' << c);
                Graph g;
                Value x = g.add_input("x", {DType::F32, {2, 3, 7, 11}});
                g.add_output("y", ops::resize(g, resize_of(mode, c, sizes), x));
                expect_claimed(g);
                test::expect_same_as_evaluator(g);
            }
        }
    }
}

TEST(CpuResize, ScalesWeightsAndRounding) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {1, 2, 40, 9}});
    ops::Resize a = resize_of("cubic", "half_pixel", {54, 4});
    a.scales = {1.36, 0.5};
    a.exclude_outside = true;
    a.cubic = -0.5;
    g.add_output("y", ops::resize(g, a, x));
    for (const char* nearest : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}) {
        ops::Resize n = resize_of("nearest", "asymmetric", {100, 5});
        n.nearest = nearest;
        g.add_output(nearest, ops::resize(g, n, x));
    }
    test::expect_same_as_evaluator(g);
}

TEST(CpuResize, LayoutsAndOtherAxes) {
    // After a convolution channels lie last; the axes need not be in order, nor the last ones.
    Graph g;
    std::mt19937 random(3);
    Value x = g.add_input("x", {DType::F32, {Dim::symbol("N"), 4, Dim::symbol("H"), 10}});
    Value w = ops::constant(g, test::random_tensor(DType::F32, {20, 4, 1, 1}, random));
    Value y = ops::conv(g, {{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, DType::F32}, x, w);
    g.add_output("y", ops::resize(g, resize_of("linear", "half_pixel", {33, 17}), y));
    ops::Resize a = resize_of("linear", "align_corners", {3, 7, 6});
    a.axes = {3, 1, 2};
    g.add_output("z", ops::resize(g, a, x));
    test::expect_same_as_evaluator(g, {{"N", 2}, {"H", 6}});
    test::expect_same_as_evaluator(g, {{"N", 1}, {"H", 1}});
    test::expect_same_as_evaluator(g, {{"N", 0}, {"H", 3}});
}

TEST(CpuResize, OthersAreLeftToTheExpansion) {
    ops::Resize wide = resize_of("linear", "half_pixel", {3, 4});
    wide.antialias = true;
    ops::Resize region = resize_of("linear", "tf_crop_and_resize", {6, 5});
    region.roi = {0.1, 0.2, 0.8, 1.3};
    region.extrapolation = 7;
    for (const ops::Resize& a : {wide, region}) {
        Graph g;
        Value x = g.add_input("x", {DType::F32, {1, 2, 9, 13}});
        g.add_output("y", ops::resize(g, a, x));
        expect_expanded(g);
        test::expect_same_as_evaluator(g);
    }
    Graph whole;
    Value x = whole.add_input("x", {DType::U8, {1, 2, 9, 13}});
    whole.add_output("y", ops::resize(whole, resize_of("linear", "half_pixel", {20, 4}), x));
    expect_expanded(whole);
    test::expect_same_as_evaluator(whole);
}

} // namespace

} // namespace ingot
