// SPDX-License-Identifier: Apache-2.0
// Constants lie as kernels read them best, since another order costs nothing; other operands are
// read as they lie where that is cheaper than a copy.
#include "kernels/harness.h"
#include "ops/ops.h"
#include "ops/primitives.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

/// A matrix for each of two heads, [heads, depth, columns], by which x is multiplied.
BackendRun products_of_heads(bool constant) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[2,40,64]"));
    Value w = constant ? ops::constant(g, random_elements(DType::F16, {2, 64, 72}, 3))
                       : g.add_input("w", parse_type("f16[2,64,72]"));
    Dot d;
    d.a_batch = d.b_batch = {0};
    d.a_contract = {2};
    d.b_contract = {1};
    d.dtype = DType::F16;
    g.add_output("y", g.add1(dot_def, d, {x, w}));
    return expect_backend(g, {.tolerance = 4e-3});
}

TEST(ConstantOrder, WeightsOfHeadsHaveTheDepthInside) {
    auto by_wgmma = [](const BackendRun& r) {
        return std::any_of(r.implementations.begin(), r.implementations.end(),
                           [](const auto& s) { return s.find("wgmma") != std::string::npos; });
    };
    EXPECT_TRUE(by_wgmma(products_of_heads(true)));
    BackendRun other = products_of_heads(false);
    EXPECT_FALSE(by_wgmma(other));
    EXPECT_FALSE(ran(other.kernels, "copy"));
}

} // namespace
} // namespace ingot::test
