// SPDX-License-Identifier: Apache-2.0
// Convolutions beside one another, through the whole backend.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

TEST(ConvThroughTheBackend, WindowsTwoApartInPartOfAConcatenation) {
    Graph g;
    unsigned seed = 1;
    auto conv = [&](Value x, const Shape& w, int64_t stride) {
        ops::Conv a;
        a.strides = {stride, stride};
        a.dilations = {1, 1};
        a.low = to_dims({w[2] / 2, w[2] / 2});
        a.high = a.low;
        a.dtype = DType::F16;
        return ops::conv(g, a, x,
                         ops::constant(g, random_elements(DType::F16, w, seed++, -0.2, 0.2)));
    };
    Value x = g.add_input("x", parse_type("f16[2,64,10,14]"));
    Value first = conv(x, {16, 64, 1, 1}, 1);
    Value second = conv(x, {64, 64, 1, 1}, 1); // behind the 16 channels of the first
    g.add_output("whole", conv(ops::concat(g, std::array{first, second}, 1), {8, 80, 1, 1}, 1));
    g.add_output("y", conv(second, {24, 64, 3, 3}, 2));
    for (std::string_view tactic : {"conv_wgmma_64x64_s1", "conv_wgmma_128x128_r2_s1"}) {
        BackendRun run = expect_backend(g, {.tactic = std::string(tactic), .tolerance = 6e-3});
        auto convs = std::count_if(
            run.implementations.begin(), run.implementations.end(),
            [&](const std::string& name) { return name.find(tactic) != std::string::npos; });
        EXPECT_EQ(convs, 4) << tactic;
        // That of x; the two of results are one.
        EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "copy"), 1);
    }
}

TEST(ConvThroughTheBackend, HalosAndResidualsInPartsOfConcatenations) {
    Graph g;
    unsigned seed = 1;
    auto weights = [&](const Shape& shape) {
        return ops::constant(g, random_elements(DType::F16, shape, seed++, -0.2, 0.2));
    };
    auto conv = [&](Value x, const Shape& w) {
        ops::Conv a;
        a.strides = {1, 1};
        a.dilations = {1, 1};
        a.low = to_dims({w[2] / 2, w[2] / 2});
        a.high = a.low;
        a.dtype = DType::F16;
        return ops::add(g, ops::conv(g, a, x, weights(w)), weights({w[0], 1, 1}));
    };
    Value x = g.add_input("x", parse_type("f16[3,16,10,14]"));
    Value first = conv(x, {16, 16, 1, 1});
    Value second = conv(x, {64, 16, 1, 1}); // behind the 16 channels of the first
    Value sum = ops::maximum(g, ops::add(g, conv(second, {64, 64, 3, 3}), second), 0.0);
    Value all = ops::concat(g, std::array{first, second, sum}, 1);
    g.add_output("y", conv(all, {8, 144, 1, 1}));
    for (std::string_view tactic : {"conv_halo_square_64", "conv_halo_strip_64"}) {
        BackendRun run = expect_backend(g, {.tactic = std::string(tactic), .tolerance = 6e-3});
        auto halos = std::count_if(
            run.implementations.begin(), run.implementations.end(),
            [&](const std::string& name) { return name.find(tactic) != std::string::npos; });
        EXPECT_EQ(halos, 1) << tactic;
    }
}

TEST(ConvThroughTheBackend, SumOfTwoProjectionsIsOneProductOfPartsInPlace) {
    Graph g;
    unsigned seed = 1;
    auto weights = [&](const Shape& shape) {
        return ops::constant(g, random_elements(DType::F16, shape, seed++, -0.2, 0.2));
    };
    auto conv = [&](Value x, const Shape& w) {
        ops::Conv a;
        a.strides = {1, 1};
        a.dilations = {1, 1};
        a.low = to_dims({w[2] / 2, w[2] / 2});
        a.high = a.low;
        a.dtype = DType::F16;
        return ops::add(g, ops::conv(g, a, x, weights(w)), weights({w[0], 1, 1}));
    };
    auto relu = [&g](Value x) { return ops::maximum(g, x, 0.0); };
    Value x = g.add_input("x", parse_type("f16[2,16,9,11]"));
    Value wide = relu(conv(x, {24, 16, 3, 3}));
    Value narrow = relu(conv(x, {8, 16, 1, 1}));
    g.add_output("y", relu(ops::add(g, conv(wide, {64, 24, 1, 1}), conv(narrow, {64, 8, 1, 1}))));
    for (int cc : {80, 90}) {
        BackendRun run = expect_backend(g, {.cc = cc, .tolerance = 6e-3});
        EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "conv"), 3);
        // Those of x and y alone.
        EXPECT_EQ(std::count(run.kernels.begin(), run.kernels.end(), "copy"), 2);
    }
}

TEST(ConvThroughTheBackend, Block) {
    for (int cc : {80, 90}) {
        SCOPED_TRACE(cc);
        Graph g;
        auto weights = [&g](const Shape& shape, unsigned seed) {
            return ops::constant(g, random_elements(DType::F16, shape, seed, -0.2, 0.2));
        };
        auto conv = [&](Value x, Shape w, int64_t stride, int64_t pad, unsigned seed) {
            ops::Conv a;
            a.strides = {stride, stride};
            a.dilations = {1, 1};
            a.low = to_dims({pad, pad});
            a.high = a.low;
            a.dtype = DType::F16;
            Value bias = weights({w[0], 1, 1}, seed + 100);
            return ops::add(g, ops::conv(g, a, x, weights(w, seed)), bias);
        };
        auto relu = [&g](Value x) { return ops::maximum(g, x, 0.0); };
        Value x = g.add_input("x", parse_type("f16[1,3,20,20]"));
        Value stem = relu(conv(x, {16, 3, 7, 7}, 2, 3, 1));
        Value inner = relu(conv(relu(conv(stem, {8, 16, 1, 1}, 1, 0, 2)), {8, 8, 3, 3}, 1, 1, 3));
        Value out = relu(ops::add(g, conv(inner, {16, 8, 1, 1}, 1, 0, 4), stem));
        g.add_output("y", conv(out, {24, 16, 1, 1}, 2, 0, 5));
        expect_backend(g, {.cc = cc, .tolerance = 6e-3});
    }
}

} // namespace
} // namespace ingot::test
