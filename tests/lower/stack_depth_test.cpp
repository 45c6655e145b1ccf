// SPDX-License-Identifier: Apache-2.0
// Which convolutions over three axes stay, by sizes and by device.
#include "backends/cuda/lower.h"
#include "base/text.h"
#include "kernels/arch.h"
#include "ops/ops.h"
#include "plan/compile_options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

struct Layer {
    int64_t channels, results;
    DType type = DType::F16;
    int64_t images = 1;
    int64_t stride = 1;
};

Graph graph_of(const Layer& l) {
    Graph g;
    ops::Conv a;
    a.strides = {1, l.stride, l.stride};
    a.dilations = {1, 1, 1};
    a.low = to_dims({2, 1, 1});
    a.high = to_dims({0, 1, 1});
    a.dtype = l.type;
    Value x = g.add_input("x", {l.type, to_dims({l.images, l.channels, 8, 64, 64})});
    Tensor w = Tensor::zeros(l.type, {l.results, l.channels, 3, 3, 3});
    g.add_output("y", ops::conv(g, a, x, ops::constant(g, std::move(w))));
    return g;
}

/// Whether the convolution still reads x, and no copies of it.
bool stays(const Layer& l, int cc = 90, const CompileOptions& options = {}) {
    Graph g = cuda::lower(graph_of(l), options, kernels::arch_of(cc));
    return std::any_of(g.nodes().begin(), g.nodes().end(), [&](const Node& n) {
        return n.is(ops::conv_def) && n.inputs[0] == g.inputs()[0];
    });
}

TEST(StackDepth, LeavesVolumesWhoseChannelsFillSlabs) {
    for (int64_t channels : {16, 32, 48, 64, 96, 128, 192, 256, 384}) {
        EXPECT_TRUE(stays({channels, 128})) << channels;
    }
    for (int64_t channels : {8, 60, 72, 80}) { // 60: rows that TMA cannot address
        EXPECT_FALSE(stays({channels, 128})) << channels;
    }
    // Copies are little beside the products of many results, with a sixth of their slabs empty.
    EXPECT_TRUE(stays({96, 192}));
    EXPECT_FALSE(stays({96, 384}));
}

TEST(StackDepth, FewResultsChangeNothing) {
    for (int64_t results : {16, 24, 32, 40}) {
        EXPECT_TRUE(stays({64, results})) << results;
        EXPECT_TRUE(stays({128, results})) << results;
        EXPECT_TRUE(stays({32, results, DType::F32})) << results;
    }
}

TEST(StackDepth, SlabsOfF32HaveHalfTheChannels) {
    EXPECT_TRUE(stays({32, 64, DType::F32}));
    EXPECT_FALSE(stays({16, 64, DType::F32}));
}

TEST(StackDepth, OneVolumeOnly) {
    EXPECT_FALSE(stays({.channels = 64, .results = 64, .images = 2}));
    EXPECT_FALSE(stays({.channels = 64, .results = 64, .stride = 2}));
}

TEST(StackDepth, DevicesThatHaveNoKernelForTwoAxesCopyNothing) {
    for (int cc : {80, 100, 120}) {
        EXPECT_TRUE(stays({16, 64}, cc)) << cc;
        EXPECT_TRUE(stays({64, 64}, cc)) << cc;
    }
    CompileOptions invariant;
    invariant.batch_invariant = true; // which leaves the kernel out
    EXPECT_FALSE(stays({64, 64}, 90, invariant));
}

} // namespace
} // namespace ingot::test
