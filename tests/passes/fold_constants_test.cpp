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

/// Weights in f16 that are normalised in f32: w / sum(w), in f16 again.
Graph shares_of_halves(bool wide_is_read) {
    Graph g;
    std::array<double, 4> numbers = {1, 2, 3, 2};
    Value w = ops::constant(g, Tensor::of(DType::F16, {2, 2}, std::span<const double>(numbers)));
    Value wide = ops::cast(g, w, DType::F32);
    Value sum = ops::reduce_sum(g, wide, {0, 1}, true);
    Value share = ops::cast(g, ops::div(g, wide, sum), DType::F16);
    Value x = g.add_input("x", {DType::F16, {2, 2}});
    g.add_output("y", ops::mul(g, x, share));
    if (wide_is_read) {
        g.add_output("wide", wide);
    }
    return g;
}

TEST(FoldConstants, OnlyResultsThatStayCountAsGrowth) {
    PassOptions limits;
    limits.fold_growth = 0;
    Graph folded = run_pass(passes::fold_constants, shares_of_halves(false), limits);
    const Node* product = folded.producer(folded.outputs()[0]);
    ASSERT_NE(product, nullptr);
    const Tensor* share = folded.constant(product->inputs[1]);
    ASSERT_NE(share, nullptr);
    EXPECT_EQ(share->dtype(), DType::F16);
    EXPECT_EQ(share->get_f64(1), 0.25);
    EXPECT_EQ(folded.nodes().size(), 2U); // the constant and the product

    // The wide weights would stay, so that what is made of them stays as it is, but for their sum.
    folded = run_pass(passes::fold_constants, shares_of_halves(true), limits);
    EXPECT_FALSE(folded.constant(folded.outputs()[1]) != nullptr);
    for (const Node& n : folded.nodes()) {
        EXPECT_FALSE(n.is(reduce_def));
    }
}

TEST(FoldConstants, MoreWorkThanTheLimitStays) {
    PassOptions limits;
    limits.fold_operations = 4; // the cast alone
    Graph folded = run_pass(passes::fold_constants, shares_of_halves(false), limits);
    EXPECT_TRUE(std::any_of(folded.nodes().begin(), folded.nodes().end(),
                            [](const Node& n) { return n.is(reduce_def); }));
    EXPECT_EQ(folded.producer(folded.outputs()[0])->inputs.size(), 2U);
}

} // namespace

} // namespace ingot
