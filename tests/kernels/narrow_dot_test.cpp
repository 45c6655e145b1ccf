// SPDX-License-Identifier: Apache-2.0
// Products of many rows by few columns, whose threads share rows.
#include "base/text.h"
#include "kernels/conv_graphs.h"
#include "kernels/gemm_graphs.h"
#include "kernels/harness.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

void expect_narrow(const Graph& g, FamilyOptions options = {}) {
    for (int rows : {1, 4}) {
        options.tactic = str("narrow_r", rows);
        FamilyRun run = expect_family(g, options);
        EXPECT_EQ(run.tactic, options.tactic);
    }
}

TEST(NarrowDot, Products) {
    // Shares of a row by one thread up to eight; a tile's last rows are missing; one column or 8.
    struct Row {
        Extents extents;
        DType type, result;
    };
    for (const Row& r : {Row{{1031, 1, 8}, DType::F16, DType::F16},
                         {{1100, 3, 16}, DType::BF16, DType::BF16},
                         {{1025, 8, 24}, DType::F16, DType::F32},
                         {{1500, 2, 80}, DType::F16, DType::F16},
                         {{1024, 5, 256}, DType::F16, DType::F16},
                         {{1090, 7, 20}, DType::F32, DType::F32},
                         {{1030, 4, 48}, DType::I8, DType::I32}}) {
        SCOPED_TRACE(str(r.type, ", depth ", r.extents[2]));
        expect_narrow(product(r.extents, {.type = r.type, .result = r.result}));
    }
}

TEST(NarrowDot, BatchesStridesAndEndings) {
    expect_narrow(product({1100, 3, 32}, {.batch = 3}));
    expect_narrow(product({1100, 2, 32}, {.b_columns = true}));
    Ending e{.extents = {1200, 3, 64}, .operands = {"f16[3]", "f16[1200,3]"}};
    expect_narrow(with_ending(e, ExprOp::Tanh));
    e = {.extents = {1200, 1, 64}, .operands = {"f32[1]"}, .stored = DType::F32};
    expect_narrow(with_ending(e, ExprOp::Max));
}

TEST(NarrowDot, PointwiseConvolutions) {
    auto orders = [](int rank) {
        std::vector<plan::Order> out(4, plan::channels_last(rank));
        out[2] = {0, 1, 2};
        return out;
    };
    ConvCase c{.x = "f16[2,16,23,29]", .w = "f16[3,16,1,1]", .low = {0, 0}, .high = {0, 0}};
    expect_narrow(with_residual(c), {.orders = orders(4)});
    expect_narrow(conv_graph(c)); // planes of results
    c.w = "f16[1,16,1,1]";
    c.x = "f16[1,16,80,75]";
    c.strides = {2, 2};
    expect_narrow(conv_graph(c));
    c = {.x = "bf16[1,32,13,12,9]", .w = "bf16[2,32,1,1,1]"};
    c.strides = c.dilations = {1, 1, 1};
    c.low = c.high = {0, 0, 0};
    expect_narrow(conv_graph(c));
}

TEST(NarrowDot, EveryArchitecture) {
    sweep(product({1040, 3, 40}));
    sweep(with_residual(
        {.x = "f16[1,16,40,30]", .w = "f16[2,16,1,1]", .low = {0, 0}, .high = {0, 0}}));
}

TEST(NarrowDot, TakesWhatFits) {
    auto has = [](Extents extents, DType type = DType::F16) {
        std::vector<std::string> names =
            tactic_names(product(extents, {.type = type, .result = type}), {});
        return std::find(names.begin(), names.end(), "narrow_r1") != names.end();
    };
    EXPECT_TRUE(has({8400, 2, 256}));
    EXPECT_FALSE(has({8400, 9, 256}));  // columns
    EXPECT_FALSE(has({1023, 2, 256}));  // rows
    EXPECT_FALSE(has({8400, 2, 100}));  // vectors
    EXPECT_FALSE(has({8400, 8, 2048})); // shared memory
    EXPECT_FALSE(has({8400, 2, 256}, DType::F64));
    EXPECT_TRUE(tactic_names(product({262144, 1, 16}), {})[0].starts_with("narrow"));
    EXPECT_TRUE(tactic_names(product({65536, 1, 80}), {})[0].starts_with("narrow"));
}

} // namespace
} // namespace ingot::test
