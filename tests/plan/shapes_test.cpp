// SPDX-License-Identifier: Apache-2.0
// Plans for several shapes on one device: what is kept from one does not change another.
#include "ops/ops.h"
#include "plan/planned.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

/// Two layers of products, norms and slices by a symbolic size, for n rows.
Graph model() {
    Graph g;
    Value x = g.add_input("x", {DType::F16, {Dim::symbol("n"), 256}});
    for (int64_t layer = 0; layer < 2; ++layer) {
        Value scale = ops::full(g, DType::F16, {256}, 1);
        Value h = ops::layer_norm(g, {-1, 1e-5, true}, x, scale);
        h = ops::matmul(g, h, ops::constant(g, Tensor::zeros(DType::F16, {256, 1024})));
        h = ops::gelu(g, h);
        h = ops::matmul(g, h, ops::constant(g, Tensor::zeros(DType::F16, {1024, 256})));
        x = ops::add(g, x, h);
    }
    Value first = ops::slice(g, x, 0, 0, floor_div(Dim::symbol("n") + Dim(1), 2));
    g.add_output("y", ops::softmax(g, first, 1));
    return g;
}

std::string kernels_for(Planned& p, int64_t n) {
    auto plan = plan::plan_segment(p.program(), p.device(), 0, {{"n", n}}, nullptr);
    std::string all;
    for (const plan::StepEntry& e : plan->steps) {
        append(all, str(e.kernel, ": ", e.step->implementation(), "\n"));
    }
    return all;
}

TEST(Shapes, KernelsDoNotDependOnShapesBefore) {
    const std::vector<int64_t> rows = {1, 2, 9, 64, 700, 2, 1};
    std::vector<std::string> alone;
    for (int64_t n : rows) {
        alone.push_back(kernels_for(*planned_for_gpu(model()), n));
    }
    EXPECT_NE(alone[0], alone[3]);
    auto one = planned_for_gpu(model());
    for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(kernels_for(*one, rows[i]), alone[i]) << rows[i];
    }
}

} // namespace
} // namespace ingot::test
