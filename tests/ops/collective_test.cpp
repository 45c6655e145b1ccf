// SPDX-License-Identifier: Apache-2.0
// Collectives as ops: their result types, contradictory attributes, and executions that refuse
// them.
#include "base/error.h"
#include "ops/collective.h"
#include "ops/evaluator.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

/// The result's type, or the error.
std::string infer(const Collective& c, const char* x) {
    Graph g;
    try {
        return str(g.type(g.add1(collective_def, c, {g.add_input("x", parse_type(x))})));
    } catch (const Error& e) {
        return e.what();
    }
}

TEST(CollectiveOp, TypesOfResults) {
    EXPECT_EQ(infer({"all_reduce", "sum", 4, {}, -1}, "f16[N,3]"), "f16[N,3]");
    EXPECT_EQ(infer({"reduce", "max", 4, {}, 3}, "i32[]"), "i32[]");
    EXPECT_EQ(infer({"reduce", "min", 2, {}, 0}, "bool[4]"), "bool[4]");
    EXPECT_EQ(infer({"reduce_scatter", "avg", 4, {}, -1}, "bf16[8,3]"), "bf16[2,3]");
    EXPECT_EQ(infer({"reduce_scatter", "prod", 2, {}, -1}, "f32[2*N,3]"), "f32[N,3]");
    EXPECT_EQ(infer({"broadcast", "", 4, {}, 0}, "f8e4m3[5]"), "f8e4m3[5]");
    EXPECT_EQ(infer({"all_gather", "", 4, {}, -1}, "u4[N,2]"), "u4[4*N,2]");
    EXPECT_EQ(infer({"gather", "", 2, {5, 3}, 3}, "f32[7]"), "f32[14]");
    EXPECT_EQ(infer({"scatter", "", 2, {5, 3}, 3}, "f32[6]"), "f32[3]");
    EXPECT_EQ(infer({"all_to_all", "", 3, {}, -1}, "i64[6,2]"), "i64[6,2]");
}

TEST(CollectiveOp, RefusesWhatDoesNotFitTogether) {
    struct Mistake {
        Collective op;
        const char* x;
        const char* message;
    };
    const Mistake mistakes[] = {
        {{"swap", "", 2, {}, -1}, "f32[4]", "collective: 'swap' is not an operation"},
        {{"all_reduce", "", 2, {}, -1}, "f32[4]", "collective: '' is not a reduction"},
        {{"all_gather", "sum", 2, {}, -1},
         "f32[4]",
         "collective: all_gather does not reduce, got 'sum'"},
        {{"all_reduce", "sum", 2, {}, -1},
         "bool[4]",
         "collective: the sum of bool[4] over ranks does not exist, cast it"},
        {{"all_reduce", "max", 2, {}, -1},
         "f8e4m3[4]",
         "collective: the max of f8e4m3[4] over ranks does not exist, cast it"},
        {{"all_reduce", "sum", 1, {}, -1},
         "f32[4]",
         "collective: 1 ranks take part, expected 2 or more"},
        {{"all_reduce", "sum", 3, {0, 1}, -1},
         "f32[4]",
         "collective: 2 ranks in the group, and 3 take part"},
        {{"all_reduce", "sum", 2, {1, 1}, -1},
         "f32[4]",
         "collective: the group is [1,1], expected ranks, each once"},
        {{"broadcast", "", 2, {}, 2},
         "f32[4]",
         "collective: the root of broadcast is rank 2, expected one of 0 to 1"},
        {{"broadcast", "", 2, {2, 4}, 0},
         "f32[4]",
         "collective: the root of broadcast is rank 0, expected one of [2,4]"},
        {{"all_gather", "", 2, {}, 0}, "f32[4]", "collective: all_gather has no root, got rank 0"},
        {{"all_gather", "", 2, {}, -1},
         "f32[]",
         "collective: all_gather works along axis 0 of f32[], which has none"},
        {{"scatter", "", 2, {}, 0},
         "f32[5]",
         "collective: axis 0 of f32[5] does not divide into 2 parts for scatter"},
        {{"scatter", "", 2, {}, 0},
         "u4[6]",
         "collective: parts of u4[6] may begin inside of a byte"},
    };
    for (const Mistake& m : mistakes) {
        EXPECT_EQ(infer(m.op, m.x), m.message);
    }
}

TEST(CollectiveOp, OneRankGivesWhatItGets) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4]"));
    EXPECT_EQ(ops::collective(g, {"all_gather", "", 1, {}, -1}, x), x);
}

TEST(CollectiveOp, HasNoReferenceEvaluation) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[4]"));
    g.add_output("y", ops::collective(g, {}, x));
    EXPECT_TRUE(has_collectives(g));
    Tensor t = Tensor::zeros(DType::F32, {4});
    try {
        evaluate(g, std::array{t});
        FAIL();
    } catch (const Error& e) {
        EXPECT_NE(
            std::string(e.what()).find(
                "'collective' has no reference evaluation: it is the application's code, or an "
                "exchange between GPUs"),
            std::string::npos);
    }
}

} // namespace
} // namespace ingot::test
