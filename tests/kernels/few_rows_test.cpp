// SPDX-License-Identifier: Apache-2.0
// Products of few rows of a short depth by many adjoining columns.
#include "base/text.h"
#include "kernels/gemm_graphs.h"
#include "kernels/harness.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

void expect_few_rows(const Graph& g, FamilyOptions options = {}) {
    options.tactic = "few_rows";
    EXPECT_EQ(expect_family(g, options).tactic, "few_rows");
}

TEST(FewRows, Products) {
    // One row or 8; a depth of one batch, of several, and with a rest; a block's last threads have
    // no columns.
    struct Row {
        Extents extents;
        DType type, result;
    };
    for (const Row& r : {Row{{5, 8192, 5}, DType::F32, DType::F32},
                         {{1, 1032, 1}, DType::F16, DType::F16},
                         {{8, 264, 64}, DType::BF16, DType::BF16},
                         {{3, 1024, 19}, DType::F16, DType::F32},
                         {{7, 2000, 10}, DType::F32, DType::F32}}) {
        SCOPED_TRACE(str(r.type, ", depth ", r.extents[2]));
        expect_few_rows(product(
            r.extents, {.type = r.type, .result = r.result, .b_columns = true, .batch = 3}));
    }
}

/// Axes of a batch that lie between those of the depth and of the columns, as between the chunks of
/// a state-space model.
TEST(FewRows, BatchesBetweenDepthAndColumns) {
    Graph g;
    Dot d;
    d.dtype = DType::F32;
    d.a_batch = {0, 1};
    d.b_batch = {0, 2};
    d.a_contract = {3};
    d.b_contract = {1};
    Value a = g.add_input("a", parse_type("f16[2,6,5,5]"));
    Value b = g.add_input("b", parse_type("f16[2,5,6,16,32]"));
    g.add_output("y", ops::dot(g, d, a, b));
    expect_few_rows(g);
}

TEST(FewRows, Endings) {
    Graph g;
    Value y = add_product(g, {4, 520, 12}, {.b_columns = true, .batch = 2});
    Value row = g.add_input("row", parse_type("f16[4,1]"));
    Value x = g.add_input("x", parse_type("f16[2,4,520]"));
    Expr e;
    int sum = e.op(ExprOp::Add, e.in(0, DType::F32), e.in(1, DType::F32));
    e.op(ExprOp::Tanh, e.op(ExprOp::Mul, sum, e.in(2, DType::F32)));
    g.add_output("y", ops::map(g, e, DType::F16, std::vector<Value>{y, row, x}));
    expect_few_rows(g);
}

TEST(FewRows, EveryArchitecture) {
    sweep(product({6, 1024, 9}, {.b_columns = true, .batch = 4}));
}

TEST(FewRows, TakesWhatFits) {
    auto names = [](Extents extents, Product p = {.b_columns = true, .batch = 24}) {
        return tactic_names(product(extents, p), {});
    };
    auto has = [&](Extents extents, Product p = {.b_columns = true, .batch = 24}) {
        std::vector<std::string> all = names(extents, p);
        return std::find(all.begin(), all.end(), "few_rows") != all.end();
    };
    EXPECT_TRUE(has({5, 8192, 5}));
    EXPECT_FALSE(has({9, 8192, 5}));  // rows
    EXPECT_FALSE(has({5, 8192, 65})); // depth
    EXPECT_FALSE(has({5, 8196, 5}));  // vectors
    EXPECT_FALSE(has({5, 128, 5}));   // columns
    EXPECT_FALSE(has({5, 8192, 5}, {.type = DType::F64, .result = DType::F64, .b_columns = true}));
    EXPECT_EQ(names({5, 8192, 5})[0], "few_rows");
}

} // namespace
} // namespace ingot::test
