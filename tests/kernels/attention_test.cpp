// SPDX-License-Identifier: Apache-2.0
// Family attention: both tactics, masks, causal, grouped heads, splits, packed buffers.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

struct Sizes {
    int64_t batch = 1, heads = 2, groups = 2, queries = 33, keys = 70, depth = 64, values = 64;
};

Graph graph_of(DType t, const Sizes& s, ops::Attention a = {}, const std::string& mask = {}) {
    Graph g;
    Value q = g.add_input("q", {t, {s.batch, s.heads, s.queries, s.depth}});
    Value k = g.add_input("k", {t, {s.batch, s.groups, s.keys, s.depth}});
    Value v = g.add_input("v", {t, {s.batch, s.groups, s.keys, s.values}});
    Value m = mask.empty() ? Value() : g.add_input("m", parse_type(mask));
    a.scale = 0.2;
    g.add_output("y", ops::attention(g, a, q, k, v, m));
    return g;
}

bool has(const std::vector<std::string>& names, std::string_view prefix) {
    for (const std::string& n : names) {
        if (n.substr(0, prefix.size()) == prefix) {
            return true;
        }
    }
    return false;
}

TEST(Attention, HalfPrecisionOnMatrixInstructions) {
    EXPECT_TRUE(has(sweep(graph_of(DType::F16, {})), "mma"));
    EXPECT_TRUE(has(sweep(graph_of(DType::BF16, {1, 1, 1, 20, 40, 40, 40})), "mma"));
    EXPECT_TRUE(has(sweep(graph_of(DType::F16, {1, 1, 1, 10, 70, 96, 96})), "mma"));
    EXPECT_TRUE(has(sweep(graph_of(DType::F16, {1, 1, 1, 10, 40, 256, 256})), "mma"));
    EXPECT_TRUE(has(sweep(graph_of(DType::F16, {2, 1, 1, 5, 9, 8, 8})), "mma"));
}

TEST(Attention, EveryOtherShapeAndDType) {
    sweep(graph_of(DType::F32, {}));
    sweep(graph_of(DType::F16, {1, 2, 2, 9, 33, 20, 28}));
    expect_family(graph_of(DType::F64, {1, 1, 1, 17, 40, 24, 40}));
    expect_family(graph_of(DType::F8E5M2, {1, 1, 1, 5, 40, 16, 16}));
    expect_family(graph_of(DType::F32, {1, 1, 1, 3, 40, 16, 300}));
    expect_family(graph_of(DType::F32, {1, 1, 1, 3, 40, 900, 16}));
}

TEST(Attention, Causal) {
    ops::Attention a;
    a.causal = true;
    for (int64_t offset : {0, 37, -5}) {
        a.offset = offset;
        sweep(graph_of(DType::F16, {1, 2, 1, 33, 70, 16, 16}, a));
        sweep(graph_of(DType::F32, {1, 2, 1, 33, 70, 16, 16}, a));
    }
}

TEST(Attention, Masks) {
    for (DType t : {DType::F16, DType::F32}) {
        sweep(graph_of(t, {2, 2, 2, 20, 70, 16, 16}, {}, "bool[2,1,1,70]"));
        sweep(graph_of(t, {2, 2, 2, 20, 70, 16, 16}, {}, "f32[2,20,70]"));
        sweep(graph_of(t, {2, 2, 1, 20, 70, 16, 16}, {}, "f16[2,2,20,70]"));
    }
}

TEST(Attention, RowsThatSeeNothing) {
    FamilyOptions o;
    std::vector<uint8_t> hidden(static_cast<size_t>(3 * 40), 1);
    for (size_t i = 0; i < 40; ++i) {
        hidden[40 + i] = 0;
    }
    o.inputs = {{}, {}, {}, random_elements(DType::Bool, {1, 1, 3, 40}, 3)};
    for (size_t i = 0; i < hidden.size(); ++i) {
        o.inputs[3].mutable_bytes()[i] = static_cast<std::byte>(hidden[i]);
    }
    for (DType t : {DType::F16, DType::F32}) {
        sweep(graph_of(t, {1, 1, 1, 3, 40, 16, 16}, {}, "bool[1,1,3,40]"), o);
    }
}

TEST(Attention, Softcap) {
    ops::Attention a;
    a.softcap = 1.5;
    sweep(graph_of(DType::F16, {1, 1, 1, 20, 40, 32, 32}, a));
    sweep(graph_of(DType::F32, {1, 1, 1, 20, 40, 32, 32}, a));
}

TEST(Attention, FewQueriesSplitTheKeys) {
    for (DType t : {DType::BF16, DType::F32}) {
        FamilyRun r = expect_family(graph_of(t, {1, 8, 2, 1, 1100, 32, 32}));
        EXPECT_EQ(r.entries.size(), 2U);
    }
    ops::Attention a;
    a.causal = true;
    a.offset = 300;
    sweep(graph_of(DType::F16, {1, 2, 1, 4, 600, 16, 16}, a));
}

TEST(Attention, PackedAndStrided) {
    for (DType t : {DType::F16, DType::F32}) {
        FamilyOptions o;
        o.orders = {{0, 2, 1, 3}, {0, 2, 1, 3}, {0, 2, 1, 3}};
        sweep(graph_of(t, {2, 3, 3, 20, 40, 16, 16}), o);
        o.orders = {};
        o.strided = true;
        sweep(graph_of(t, {2, 3, 3, 20, 40, 16, 16}), o);
    }
}

} // namespace
} // namespace ingot::test
