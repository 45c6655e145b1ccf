// SPDX-License-Identifier: Apache-2.0
// Family attention with a map behind it that rounds to bytes: every algorithm, in one launch.
#include "kernels/attention_graphs.h"
#include "kernels/harness.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

Graph bytes_of(DType stored, DType t, const Sizes& s, const ops::Attention& a = {},
               const std::string& mask = {}) {
    Graph g;
    Value y = add_attention(g, t, s, a, mask);
    g.add_output("z", rounded_to_bytes(g, y, stored, 0.008));
    return g;
}

/// A result beside the border of two bytes may be either; f8e4m3 has steps of an eighth.
FamilyOptions one_step(DType stored) {
    FamilyOptions o;
    o.tolerance = stored == DType::F8E4M3 ? 0.1 : 1;
    return o;
}

void expect_one_launch(const Graph& g, FamilyOptions o) {
    FamilyRun r = expect_family(g, o);
    EXPECT_EQ(r.entries.size(), 1U) << r.tactic;
    EXPECT_TRUE(r.tactic.starts_with(o.tactic)) << r.tactic;
}

TEST(AttentionBytes, EveryAlgorithmRounds) {
    for (DType stored : {DType::I8, DType::U8, DType::F8E4M3}) {
        SCOPED_TRACE(name(stored));
        for (DType t : {DType::F16, DType::BF16}) {
            FamilyOptions o = one_step(stored);
            for (const char* tactic :
                 {"att_wgmma_128s1", "att_wgmma_64s2", "att_mma_64", "att_mma_32", "simt"}) {
                o.tactic = tactic;
                expect_one_launch(bytes_of(stored, t, {1, 4, 2, 70, 77, 40, 40}), o);
            }
        }
        FamilyOptions o = one_step(stored);
        for (const char* tactic : {"att_wgmma_128s1", "att_tf32_64", "simt"}) {
            o.tactic = tactic;
            expect_one_launch(bytes_of(stored, DType::F32, {2, 2, 2, 33, 70, 48, 48}), o);
        }
    }
}

TEST(AttentionBytes, MasksAndHeadsOfHalfChunks) {
    FamilyOptions o = one_step(DType::I8);
    sweep(bytes_of(DType::I8, DType::F16, {2, 2, 2, 40, 150, 48, 48}, {}, "bool[2,1,1,150]"), o);
    sweep(bytes_of(DType::I8, DType::F16, {2, 2, 1, 33, 70, 36, 36}), o);
    sweep(bytes_of(DType::U8, DType::F16, {1, 2, 2, 9, 9, 6, 6}), o);
}

/// Sums of parts of the keys are merged, and then rounded, by a second kernel or in a cluster.
TEST(AttentionBytes, MergedSumsAreRounded) {
    FamilyOptions o = one_step(DType::I8);
    for (const char* tactic : {"att_mma_16x", "att_mma_c"}) {
        o.tactic = tactic;
        expect_family(bytes_of(DType::I8, DType::F16, {1, 2, 2, 3, 700, 64, 64}), o);
    }
    for (const char* tactic : {"att_wgmma_64s2", "att_mma_64", "simt"}) {
        o.tactic = tactic;
        FamilyRun r =
            expect_family(bytes_of(DType::I8, DType::F16, {1, 1, 1, 60, 1500, 32, 32}), o);
        EXPECT_EQ(r.entries.size(), 2U) << tactic;
    }
}

TEST(AttentionBytes, OtherMapsStayApart) {
    auto behind = [](auto make) {
        Graph g;
        Value x = g.add_input("x", parse_type("f16[1,2,20,16]"));
        Value y = g.add_input("y", parse_type("f16[1,2,20,16]"));
        g.add_output("z", make(g, ops::attention(g, {.scale = 1}, x, x, x), y));
        return refusal(g, "attention").value_or("");
    };
    const char* why =
        "no family 'attention' takes the group: its map does not round to bytes, or has "
        "further operands of more than one element;";
    EXPECT_EQ(behind([](Graph& g, Value a, Value) {
                  Expr body;
                  body.op(ExprOp::Max, body.in(0, DType::F16), body.constant(DType::F16, 0));
                  return ops::map(g, body, DType::F16, Values{a});
              }),
              why);
    EXPECT_EQ(behind([](Graph& g, Value a, Value y) {
                  Expr body;
                  int sum = body.op(ExprOp::Add, body.in(0, DType::F16), body.in(1, DType::F16));
                  body.cast(body.cast(sum, DType::F32), DType::F8E4M3, true);
                  return ops::map(g, body, DType::F8E4M3, Values{a, y});
              }),
              why);
    EXPECT_EQ(
        behind([](Graph& g, Value a, Value) { return rounded_to_bytes(g, a, DType::I8, 0.1); }),
        "");
}

/// Heads are joined by views between attention and the map, as in exported models.
TEST(AttentionBytes, RoundsBehindJoinedHeads) {
    Graph g;
    Value q = g.add_input("q", parse_type("f16[2,3,40,16]"));
    Value k = g.add_input("k", parse_type("f16[2,3,40,16]"));
    Value y = ops::attention(g, {.scale = 0.25}, q, k, k);
    y = ops::reshape(g, ops::permute(g, y, {0, 2, 1, 3}), {2, 40, 48});
    g.add_output("z", rounded_to_bytes(g, y, DType::F8E4M3, 0.02));
    BackendRun r = expect_backend(g, {.tolerance = 0.1});
    EXPECT_FALSE(ran(r.kernels, "map"));
    EXPECT_TRUE(ran(r.kernels, "attention"));
}

} // namespace
} // namespace ingot::test
