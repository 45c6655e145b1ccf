// SPDX-License-Identifier: Apache-2.0
// Convolutions whose number of channels is an open size, as behind a transposition of the batch:
// passes that count channels leave them as they are.
#include "lower/passes.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <utility>

namespace ingot::plan {
namespace {

Graph convolution(int64_t groups, Shape weights) {
    Graph g;
    Value x = g.add_input("x", {DType::F16, {Dim(1), Dim::symbol("n"), Dim(9), Dim(9)}});
    ops::Conv a;
    a.strides = a.dilations = {1, 1};
    a.low = a.high = {Dim(0), Dim(0)};
    a.groups = groups;
    a.dtype = DType::F16;
    g.add_output(
        "y", ops::conv(g, a, x, ops::constant(g, Tensor::zeros(DType::F16, std::move(weights)))));
    return g;
}

TEST(OpenChannels, StayAsTheyAre) {
    for (MakePass make : {&route_channels, &repeat_channels, &join_groups, &pad_columns,
                          &pad_results, &merge_branches, &gather_patches}) {
        for (const Graph& g : {convolution(1, {6, 9, 3, 3}), convolution(9, {18, 1, 3, 3})}) {
            EXPECT_EQ(after(make, g).nodes().size(), g.nodes().size());
        }
    }
}

} // namespace
} // namespace ingot::plan
