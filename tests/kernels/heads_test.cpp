// SPDX-License-Identifier: Apache-2.0
// Products of few rows whose columns are heads: written where they belong, and turned as ropes do.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace ingot::test {
namespace {

struct Heads {
    std::vector<int64_t> turned = {4, 1}; // heads of each part that a rope turns
    std::vector<int64_t> copied = {1};    // and of those behind them
    int64_t width = 64, k = 1056;
    int64_t batch = 1, rows = 1;
    DType type = DType::F16;
    DType angles = DType::F32;
    bool interleaved = false;
    bool norm = false;
    bool by_row = false;                      // angles differ from row to row
    std::optional<DType> weight = {};         // quantised
    int64_t block = 0;                        // of the depth that shares a scale
    std::vector<int64_t> perm = {0, 2, 1, 3}; // of batch, rows, heads, width
};

int64_t columns_of(const Heads& h) {
    int64_t n = 0;
    for (const auto* counts : {&h.turned, &h.copied}) {
        for (int64_t c : *counts) {
            n += c * h.width;
        }
    }
    return n;
}

Value product(Graph& g, const Heads& h, Value x) {
    int64_t n = columns_of(h);
    if (!h.weight) {
        Dot d;
        d.dtype = h.type;
        d.a_contract = {2};
        d.b_contract = {1};
        return ops::dot(g, d, x, g.add_input("w", {h.type, {n, h.k}}));
    }
    ops::QuantizedDot a;
    a.a_contract = {2};
    a.b_contract = {1};
    a.dtype = h.type;
    a.axis = h.block > 0 ? 1 : 0;
    a.block = h.block;
    Value q = g.add_input("w", {*h.weight, {n, h.k}});
    Dims places = h.block > 0 ? Dims{n, h.k / h.block} : Dims{n};
    return ops::quantized_dot(g, a, x, q,
                              g.add_input("scale", {h.block > 0 ? h.type : DType::F32, places}));
}

Graph graph_of(const Heads& h) {
    Graph g;
    Value x = g.add_input("x", {h.type, {h.batch, h.rows, h.k}});
    if (h.norm) {
        ops::LayerNorm a;
        a.axis = 2;
        a.rms = true;
        x = ops::layer_norm(g, a, x, g.add_input("gain", {DType::F32, {h.k}}));
    }
    Dims angle = {1, h.by_row ? h.rows : 1, 1, h.width / 2};
    Dims placed;
    for (int64_t axis : h.perm) {
        placed.push_back(angle[static_cast<size_t>(axis)]);
    }
    Value cosine = g.add_input("cos", {h.angles, placed});
    Value sine = g.add_input("sin", {h.angles, placed});
    Value y = product(g, h, x);
    int64_t start = 0;
    for (const auto* counts : {&h.turned, &h.copied}) {
        for (int64_t count : *counts) {
            Value v = ops::slice(g, y, 2, start, count * h.width);
            v = ops::reshape(g, v, {h.batch, h.rows, count, h.width});
            v = ops::permute(g, v, h.perm);
            if (counts == &h.turned) {
                v = ops::rope(g, {h.interleaved}, v, cosine, sine);
            } else {
                Expr same;
                same.in(0, h.type);
                v = ops::map(g, same, h.type, std::array{v});
            }
            g.add_output(str("y", start), v);
            start += count * h.width;
        }
    }
    return g;
}

FamilyOptions options_of(const Heads& h, std::string_view tactic) {
    FamilyOptions o;
    o.family = h.weight ? "quantized_dot_of_heads" : "dot_of_heads";
    o.tactic = tactic;
    o.tf32 = false;
    o.tolerance = h.type == DType::BF16 ? 2e-2 : h.type == DType::F16 ? 3e-3 : 1e-5;
    if (h.weight) {
        o.low = -1;
        o.high = 1;
    }
    return o;
}

void expect_heads(const Heads& h, std::initializer_list<std::string_view> tactics) {
    Graph g = graph_of(h);
    for (std::string_view tactic : tactics) {
        SCOPED_TRACE(tactic);
        FamilyOptions o = options_of(h, tactic);
        FamilyRun run = expect_family(g, o);
        EXPECT_EQ(run.tactic, tactic);
        if (!tactic.starts_with("apart_")) {
            EXPECT_EQ(run.entries.size(), 1U);
            EXPECT_EQ(run.scratch, 0);
        }
    }
    FamilyOptions o = options_of(h, "");
    o.strided = true;
    expect_family(g, o);
}

TEST(Heads, EveryTactic) {
    for (bool norm : {false, true}) {
        Heads h{.norm = norm};
        std::vector<std::string> names = sweep(graph_of(h), options_of(h, ""));
        for (std::string_view name :
             norm ? std::vector<std::string_view>{"normed_pipelined_s3_b1", "normed_tiles_s8_b1",
                                                  "apart_norm_simt", "apart_normed_pipelined_s3_b1"}
                  : std::vector<std::string_view>{"gemv_s1", "gemv_s8", "gemv_pipelined_s3_b1",
                                                  "gemv_tiles_s8_b1", "apart_simt",
                                                  "apart_gemv_s1"}) {
            EXPECT_EQ(std::ranges::count(names, name) > 0, true) << name;
        }
    }
}

TEST(Heads, RowsBatchesAndOrders) {
    for (auto [batch, rows] : {std::pair<int64_t, int64_t>{1, 3}, {2, 1}, {3, 1}, {2, 2}}) {
        SCOPED_TRACE(str(batch, " x ", rows));
        expect_heads({.batch = batch, .rows = rows, .norm = true, .by_row = true},
                     {"normed_pipelined_s3_b1", "normed_tiles_s4_b1", "apart_norm_gemv_s1"});
        expect_heads({.batch = batch, .rows = rows, .by_row = true, .perm = {2, 1, 0, 3}},
                     {"gemv_s2", "gemv_tiles_s8_b1"});
    }
    expect_heads({.batch = 1, .rows = 7, .by_row = true}, {"gemv_s1", "gemv_tiles_s4_b1"});
}

TEST(Heads, Counts) {
    using Counts = std::vector<int64_t>;
    for (auto [turned, copied] : {std::pair<Counts, Counts>{{5, 5}, {5}},
                                  {{7, 1}, {1}},
                                  {{3, 2}, {}},
                                  {{1, 2, 3}, {1}},
                                  {{2}, {3, 4}}}) {
        SCOPED_TRACE(testing::PrintToString(turned));
        expect_heads({.turned = turned, .copied = copied, .k = 2080},
                     {"gemv_pipelined_s3_b1", "gemv_tiles_s8_b1", "gemv_s4"});
    }
}

TEST(Heads, WidthsAndInterleavedPairs) {
    for (int64_t width : {2, 6, 80, 128}) {
        for (bool interleaved : {false, true}) {
            SCOPED_TRACE(str(width, interleaved ? ", interleaved" : ""));
            Heads h{.turned = {9, 3},
                    .copied = {3},
                    .width = width,
                    .k = 1056,
                    .interleaved = interleaved};
            expect_heads(h, {"gemv_s1"});
            if (width >= 80) {
                expect_heads(h, {"gemv_pipelined_s3_b1"});
            }
            std::vector<std::string> names = tactic_names(graph_of(h), options_of(h, ""));
            bool tiles = std::ranges::count(names, "gemv_tiles_s8_b1") > 0;
            EXPECT_EQ(tiles, !interleaved && width % 16 == 0);
            if (tiles) {
                expect_heads(h, {"gemv_tiles_s8_b1"});
            }
        }
    }
}

TEST(Heads, Types) {
    for (DType t : {DType::F16, DType::BF16, DType::F32}) {
        for (DType angles : {DType::F32, t}) {
            SCOPED_TRACE(str(t, " by ", angles));
            expect_heads({.type = t, .angles = angles, .norm = true},
                         {"normed_pipelined_s3_b1", "apart_norm_simt"});
        }
    }
}

TEST(Heads, QuantisedWeights) {
    for (DType t : {DType::I8, DType::I4, DType::F8E4M3}) {
        for (int64_t block : {0, 32}) {
            for (bool norm : {false, true}) {
                SCOPED_TRACE(str(t, ", blocks of ", block, norm ? ", normed" : ""));
                Heads h{.turned = {7, 2}, .copied = {2}, .norm = norm, .weight = t, .block = block};
                if (norm) {
                    expect_heads(
                        h, {"normed_quant_pipelined_s4_b1", "apart_norm_quant_pipelined_s4_b1"});
                } else {
                    expect_heads(h, {"quant_pipelined_s4_b1", "apart_quant_simt"});
                }
            }
        }
    }
    expect_heads({.batch = 5, .by_row = true, .weight = DType::I4, .block = 32},
                 {"quant_pipelined_s4_b1"});
}

TEST(Heads, ManyRowsTakeOneLaunchMore) {
    for (Heads h : {Heads{.batch = 12}, Heads{.batch = 40, .norm = true}}) {
        FamilyRun run = expect_family(graph_of(h), options_of(h, ""));
        EXPECT_TRUE(run.tactic.starts_with("apart_")) << run.tactic;
        EXPECT_EQ(run.entries.size(), h.norm ? 3U : 2U);
        EXPECT_EQ(run.entries.back(), "joined");
    }
}

TEST(Heads, AnglesOfHeadsAreApart) {
    Graph g;
    Value x = g.add_input("x", {DType::F16, {1, 1, 1056}});
    Dot d;
    d.dtype = DType::F16;
    d.a_contract = {2};
    d.b_contract = {1};
    Value y = ops::dot(g, d, x, g.add_input("w", {DType::F16, {320, 1056}}));
    Value v = ops::reshape(g, ops::slice(g, y, 2, 0, 256), {1, 4, 1, 64});
    Value cosine = g.add_input("cos", {DType::F32, {1, 4, 1, 32}});
    Value sine = g.add_input("sin", {DType::F32, {1, 4, 1, 32}});
    g.add_output("y", ops::rope(g, {}, v, cosine, sine));
    Value rest = ops::reshape(g, ops::slice(g, y, 2, 256, 64), {1, 1, 1, 64});
    Expr same;
    same.in(0, DType::F16);
    g.add_output("z", ops::map(g, same, DType::F16, std::array{rest}));
    FamilyOptions o = options_of({}, "");
    for (const std::string& name : tactic_names(g, o)) {
        EXPECT_TRUE(name.starts_with("apart_")) << name;
    }
    expect_family(g, o);
}

TEST(Heads, Refusals) {
    auto why = [](const Graph& g) { return refusal(g, "dot_of_heads").value_or("taken"); };
    auto refused = [](std::string_view reason) {
        return str("no family 'dot_of_heads' takes the group: ", reason, ";");
    };
    EXPECT_EQ(why(graph_of({})), "taken");
    EXPECT_EQ(why(graph_of({.turned = {}, .copied = {2, 1}})), refused("no rope"));
    EXPECT_EQ(why(graph_of({.turned = {1, 1, 1, 1}})), refused("more than four ranges of heads"));
    Graph g;
    Dot d;
    d.dtype = DType::F16;
    d.a_contract = {1};
    d.b_contract = {1};
    Value y = ops::dot(g, d, g.add_input("x", {DType::F16, {1, 64}}),
                       g.add_input("w", {DType::F16, {64, 64}}));
    g.add_output("y", y);
    EXPECT_EQ(why(g), refused("no heads behind a product"));
}

/// A decode step's query, key and value, with caches that grow by a row.
Graph step(int64_t heads, int64_t groups, DType type) {
    Graph g;
    constexpr int64_t width = 64;
    constexpr int64_t k = 1024;
    Value x = g.add_input("x", {type, {1, 1, k}});
    Value cosine = g.add_input("cos", {DType::F32, {1, 1, 1, width / 2}});
    Value sine = g.add_input("sin", {DType::F32, {1, 1, 1, width / 2}});
    ops::LayerNorm a;
    a.axis = 2;
    a.rms = true;
    Value normed =
        ops::layer_norm(g, a, x, ops::constant(g, random_elements(DType::F32, {k}, 3, 0.5, 1.5)));
    Dot d;
    d.dtype = type;
    d.a_contract = {2};
    d.b_contract = {0};
    auto part = [&](int64_t count, unsigned seed) {
        Value w = ops::constant(g, random_elements(type, {k, count * width}, seed, -0.1, 0.1));
        return ops::reshape(g, ops::dot(g, d, normed, w), {1, count, 1, width});
    };
    Value q = part(heads, 4);
    Value key = part(groups, 5);
    Value value = part(groups, 6);
    q = ops::rope(g, {}, q, cosine, sine);
    key = ops::rope(g, {}, key, cosine, sine);
    auto grown = [&](const char* name, Value row) {
        Value past = g.add_input(name, {type, {1, groups, Dim::symbol("past"), width}});
        return ops::concat(g, std::array{past, row}, 2);
    };
    Value keys = grown("past_k", key);
    Value values = grown("past_v", value);
    g.add_output("y", ops::attention(g, {.scale = 0.125}, q, keys, values));
    g.add_output("keys", keys);
    g.add_output("values", values);
    return g;
}

TEST(Heads, DecodeStepWithCaches) {
    for (auto [heads, groups] : {std::pair<int64_t, int64_t>{8, 2}, {4, 4}, {6, 1}}) {
        SCOPED_TRACE(str(heads, " heads, ", groups, " groups"));
        BackendOptions o;
        o.symbols["past"] = 37;
        o.tolerance = 4e-3;
        BackendRun run = expect_backend(step(heads, groups, DType::F16), o);
        EXPECT_EQ(std::ranges::count(run.kernels, "dot_of_heads"), 1);
        EXPECT_EQ(std::ranges::count(run.kernels, "rope"), 0);
    }
}

} // namespace
} // namespace ingot::test
