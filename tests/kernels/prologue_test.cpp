// SPDX-License-Identifier: Apache-2.0
// Casts that kernels absorb, through the whole backend.
#include "backends/cuda/lower.h"
#include "harness.h"
#include "ir/text.h"
#include "kernels/family.h"
#include "ops/ops.h"
#include "plan/compile_options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

Graph sum_of_halves(const std::string& type, std::vector<int64_t> axes, bool other_reader) {
    Graph g;
    Value x = g.add_input("x", parse_type(type));
    Value wide = ops::cast(g, x, DType::F32);
    g.add_output("sum", ops::cast(g, ops::reduce_sum(g, wide, axes), DType::F16));
    if (other_reader) {
        g.add_output("wide", wide);
    }
    return g;
}

int64_t maps_of(const Graph& g) {
    return std::count_if(g.nodes().begin(), g.nodes().end(),
                         [](const Node& n) { return n.is(map_def); });
}

TEST(Prologue, SumsReadSixteenBits) {
    for (const char* type : {"f16[2,24,7,9]", "bf16[3,130,5]", "f16[5,1]"}) {
        SCOPED_TRACE(type);
        int rank = parse_type(type).rank();
        for (bool other_reader : {false, true}) {
            Graph g = sum_of_halves(type, {rank - 1}, other_reader);
            Graph lowered = cuda::lower(g, {});
            EXPECT_EQ(maps_of(lowered), other_reader ? 1 : 0) << print(lowered);
            expect_backend(g, {.tolerance = 2e-2});
        }
    }
    expect_backend(sum_of_halves("f16[2,24,7,9]", {2, 3}, false), {.tolerance = 2e-3});
    expect_backend(sum_of_halves("f16[3,5000]", {1}, false), {.tolerance = 2e-3});
}

TEST(Prologue, OtherMapsStay) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[4,32]"));
    Value square = ops::cast(g, x, DType::F32);
    g.add_output("y", ops::reduce_sum(g, ops::mul(g, square, square), {1}));
    EXPECT_EQ(maps_of(cuda::lower(g, {})), 1);
    expect_backend(g, {.tolerance = 1e-4});
}

/// A norm of rows, a product, and perhaps a gated linear unit or a residual after it.
struct NormedProduct {
    std::string rows = "f16[1,2,1056]";
    bool rms = true;
    bool bias = false;
    bool halves = false;
    bool residual = false;
    int64_t columns = 262;
};

Graph normed(const NormedProduct& c) {
    Graph g;
    Type t = parse_type(c.rows);
    Dim k = t.dims.back();
    Value x = g.add_input("x", t);
    Value scale = ops::constant(g, random_elements(DType::F32, {k.value()}, 5));
    Value bias = c.bias ? g.add_input("bias", {DType::F16, {k}}) : Value{};
    ops::LayerNorm a;
    a.rms = c.rms;
    Value y = ops::layer_norm(g, a, x, scale, bias);
    Dot d;
    d.a_contract = {t.rank() - 1};
    d.b_contract = {1};
    d.dtype = t.dtype;
    y = ops::dot(g, d, y,
                 ops::constant(g, random_elements(t.dtype, {c.columns, k.value()}, 7, -0.2, 0.2)));
    if (c.halves) {
        Value gate = ops::slice(g, y, t.rank() - 1, 0, c.columns / 2);
        Value up = ops::slice(g, y, t.rank() - 1, c.columns / 2, c.columns / 2);
        y = ops::mul(g, ops::gelu(g, gate), up);
    }
    if (c.residual) {
        y = ops::add(g, y, g.add_input("r", g.type(y)));
    }
    g.add_output("y", y);
    return g;
}

int64_t steps_of(const Graph& g) {
    return std::count_if(g.nodes().begin(), g.nodes().end(),
                         [](const Node& n) { return !n.is(constant_def); });
}

TEST(Prologue, NormsOfFewRows) {
    for (const NormedProduct& c :
         {NormedProduct{},
          {.rows = "f16[1,1,1056]", .halves = true},
          {.rows = "f32[3,1040]", .rms = false, .bias = true, .residual = true}}) {
        SCOPED_TRACE(c.rows);
        Graph g = normed(c);
        Graph lowered = cuda::lower(g, {});
        ASSERT_EQ(steps_of(lowered), 1) << print(lowered);
        expect_backend(g, {.tolerance = 2e-3, .runs = 2});
        // The fused group, with norms inside every block and in a separate launch.
        for (const Node& n : lowered.nodes()) {
            for (std::string tactic :
                 {"normed_pipelined_s3_b1", "norm_gemv_s1", "norm_simt", "norm_wgmma_64x32_s1"}) {
                if (c.rows[1] == '3' && tactic.starts_with("norm_wgmma")) {
                    continue; // of 16-bit elements
                }
                if (n.is(fused_def)) {
                    Graph group = *n.as<Fused>().body;
                    FamilyRun run = expect_family(
                        group, {.family = "dot", .tactic = tactic, .tolerance = 2e-3});
                    EXPECT_EQ(run.tactic, tactic);
                    EXPECT_EQ(run.entries.size(), tactic == "normed_pipelined_s3_b1" ? 1U : 2U);
                }
            }
        }
    }
    // A split product has scratch memory besides that of the rows.
    Graph lowered = cuda::lower(normed({.rows = "f16[1,8192]", .columns = 16}), {});
    for (const Node& n : lowered.nodes()) {
        if (n.is(fused_def)) {
            FamilyRun run = expect_family(
                *n.as<Fused>().body,
                {.family = "dot", .cc = 80, .tactic = "norm_mma_16x64_s8", .tolerance = 2e-3});
            EXPECT_EQ(run.tactic, "norm_mma_16x64_s8");
            EXPECT_GT(run.scratch, 2 * 8192);
        }
    }
}

TEST(Prologue, NormsOfAsManyRowsAsABatch) {
    Graph g = normed({.rows = "f16[n,1,1056]"});
    EXPECT_EQ(steps_of(cuda::lower(g, {})), 1);
    for (int64_t n : {0, 1, 33}) {
        expect_backend(g,
                       {.symbols = {{"n", n}}, .tactic = "norm_mma", .tolerance = 2e-3, .runs = 2});
    }
}

TEST(Prologue, NormsThatStay) {
    EXPECT_EQ(steps_of(cuda::lower(normed({.rows = "f16[n,m,1056]"}), {})), 2);
    EXPECT_EQ(steps_of(cuda::lower(normed({.rows = "f16[64,1056]"}), {})), 2);
    Graph g = normed({});
    for (const Node& n : g.nodes()) {
        if (n.is(ops::layer_norm_def)) {
            g.add_output("norm", n.outputs[0]);
            break;
        }
    }
    EXPECT_EQ(steps_of(cuda::lower(g, {})), 2);
}

} // namespace
} // namespace ingot::test
