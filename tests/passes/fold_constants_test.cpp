// SPDX-License-Identifier: Apache-2.0
// Folding under limits, which the cases of fold_constants.case do not have.
#include "ops/ops.h"
#include "passes/passes.h"

#include <gtest/gtest.h>

#include <array>

namespace ingot {

namespace {

/// Sums of the columns of bytes, which are widened to i32 first, plus x.
Graph sums_of_bytes(bool widened_is_read) {
    Graph g;
    std::array<int64_t, 6> numbers = {-128, 1, 127, 100, -3, 127};
    Value w = ops::constant(g, Tensor::of(DType::I8, {3, 2}, std::span<const int64_t>(numbers)));
    Value wide = ops::cast(g, w, DType::I32);
    Value x = g.add_input("x", {DType::I32, {2}});
    g.add_output("y", ops::add(g, x, ops::reduce_sum(g, wide, {0}, false)));
    if (widened_is_read) {
        g.add_output("wide", wide);
    }
    return g;
}

TEST(FoldConstants, SumsOfWidenedConstantsNeedNotKeepThem) {
    PassOptions limits;
    limits.fold_growth = 6; // the widened bytes take 18 bytes more
    for (bool read : {false, true}) {
        Graph folded = dead_code(run_pass(passes::fold_constants, sums_of_bytes(read), limits));
        for (const Node& n : folded.nodes()) {
            EXPECT_FALSE(n.is(reduce_def)) << "the sums are " << folded.nodes().size() << " nodes";
        }
        const Node* sum = folded.producer(folded.outputs()[0]);
        ASSERT_NE(sum, nullptr);
        const Tensor* constant = nullptr;
        for (Value v : sum->inputs) {
            constant = folded.constant(v) == nullptr ? constant : folded.constant(v);
        }
        ASSERT_NE(constant, nullptr);
        EXPECT_EQ(constant->get_i64(0), -128 + 127 - 3);
        EXPECT_EQ(constant->get_i64(1), 1 + 100 + 127);
    }
}

TEST(FoldConstants, SumsOfMoreThanTheLimitOfBytesStay) {
    PassOptions limits;
    limits.fold_growth = 6;
    limits.fold_bytes = 20; // the widened bytes take 24
    Graph folded = run_pass(passes::fold_constants, sums_of_bytes(false), limits);
    EXPECT_TRUE(std::any_of(folded.nodes().begin(), folded.nodes().end(),
                            [](const Node& n) { return n.is(reduce_def); }));
}

} // namespace

} // namespace ingot
