// SPDX-License-Identifier: Apache-2.0
// Products along an axis that is not the innermost one, through the backend: nothing is copied.
#include "kernels/harness.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

/// MLP-Mixer's products: x[images, tokens, channels] along its tokens, twice, then along channels.
BackendRun products_of_tokens(int64_t images, int64_t tokens, int64_t channels, int cc) {
    Graph g;
    Value x = g.add_input("x", Type{DType::F16, {images, tokens, channels}});
    auto layer = [&g](Value v, int64_t axis, int64_t depth, int64_t columns) {
        Dot d;
        d.a_contract = {axis};
        d.b_contract = {1};
        d.dtype = DType::F16;
        Value w = ops::constant(g, random_elements(DType::F16, {columns, depth}, 5, -0.2, 0.2));
        Value bias = ops::constant(g, random_elements(DType::F16, {columns}, 6));
        return ops::add(g, g.add1(dot_def, d, {v, w}), bias);
    };
    Value hidden = ops::maximum(g, layer(x, 1, tokens, 24), 0.0);
    Value y = layer(hidden, 2, 24, tokens);
    Value sum = ops::add(g, ops::permute(g, y, {0, 2, 1}), x);
    g.add_output("y", layer(sum, 2, channels, 16));
    return expect_backend(g, {.cc = cc, .tolerance = 6e-3});
}

TEST(TurnedProducts, CopyNothing) {
    for (int cc : {80, 90}) {
        SCOPED_TRACE(cc);
        for (int64_t images : {1, 3}) {
            BackendRun run = products_of_tokens(images, 49, 40, cc);
            EXPECT_FALSE(ran(run.kernels, "copy"));
            EXPECT_EQ(run.kernels.size(), 3u);
        }
    }
    // Rows of channels that no vector reads: weights stay on the right.
    EXPECT_TRUE(ran(products_of_tokens(1, 49, 41, 90).kernels, "copy"));
}

} // namespace
} // namespace ingot::test
