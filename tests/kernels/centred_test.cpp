// SPDX-License-Identifier: Apache-2.0
// Layer norms inside the products that read them: groups of fuse_norms, and whole graphs.
#include "backends/cuda/lower.h"
#include "kernels/harness.h"
#include "lower/centred_weights.h"
#include "ops/ops.h"
#include "ops/roll.h"
#include "plan/compile_options.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

struct CentredCase {
    std::string rows = "f16[70,136]";
    int64_t columns = 104;
    bool depth_first = true;
    bool residual = false;
};

/// gelu(norm(rows) V + bias) + residual, V with columns that sum to zero.
Graph centred_group(const CentredCase& c) {
    Graph g;
    Type t = parse_type(c.rows);
    int64_t depth = t.dims.back().value();
    Value x = g.add_input("x", t);
    Value one = ops::constant(g, Tensor::scalar(DType::F32, 1));
    ops::LayerNorm a;
    Value y = ops::layer_norm(g, a, x, one);
    Shape shape = c.depth_first ? Shape{depth, c.columns} : Shape{c.columns, depth};
    std::vector<float> ones(static_cast<size_t>(depth), 1.0F);
    auto v = plan::centred_weights(random_elements(t.dtype, shape, 7, -0.2, 0.2), c.depth_first,
                                   ones, ones);
    Dot d;
    d.a_contract = {t.rank() - 1};
    d.b_contract = {c.depth_first ? 0 : 1};
    d.dtype = t.dtype;
    y = ops::dot(g, d, y, ops::constant(g, std::move(v->weights)));
    Values in = {y, ops::constant(g, random_elements(t.dtype, {c.columns}, 8))};
    Expr body;
    int sum = body.op(ExprOp::Add, body.in(0, t.dtype), body.in(1, t.dtype));
    sum = body.op(ExprOp::Tanh, sum);
    if (c.residual) {
        in.push_back(g.add_input("residual", g.type(y)));
        body.op(ExprOp::Add, sum, body.in(2, t.dtype));
    }
    g.add_output("z", ops::map(g, body, t.dtype, in));
    return g;
}

FamilyOptions centred_family(double low = -2, double high = 2) {
    FamilyOptions options;
    options.family = "centred_dot";
    options.low = low;
    options.high = high;
    return options;
}

TEST(Centred, EveryTactic) {
    std::vector<std::string> names = sweep(centred_group({}), centred_family());
    for (std::string_view name :
         {"centred_wgmma_64x32_s1", "centred_wgmma_64x48_s1", "centred_wgmma_64x64_s1",
          "centred_wgmma_128x128_s1", "norm_wgmma_64x64_s1", "norm_mma_64x64_s1", "norm_simt"}) {
        EXPECT_TRUE(ran(names, name)) << name;
    }
}

TEST(Centred, RowsDepthsAndLayouts) {
    FamilyOptions options = centred_family();
    for (const char* tactic : {"centred_wgmma_64x64_s1", "centred_wgmma_128x144_s1"}) {
        options.tactic = tactic;
        for (const CentredCase& c :
             {CentredCase{.rows = "bf16[3,67,384]", .residual = true},
              {.rows = "f16[197,96]", .columns = 288, .depth_first = false},
              {.rows = "f16[2,49,8]", .columns = 10, .residual = true},
              {.rows = "bf16[130,520]", .columns = 33, .depth_first = false}}) {
            SCOPED_TRACE(c.rows);
            EXPECT_EQ(expect_family(centred_group(c), options).tactic, tactic);
        }
    }
    // Fewer elements than a copy of 16 bytes has.
    EXPECT_FALSE(ran(tactic_names(centred_group({.rows = "f16[70,60]"}), options), "centred"));
}

TEST(Centred, MeansManyDeviationsAway) {
    for (const char* rows : {"f16[70,768]", "bf16[70,768]"}) {
        SCOPED_TRACE(rows);
        FamilyOptions options = centred_family(18, 22);
        options.tolerance = rows[0] == 'f' ? 2e-3 : 2e-2;
        for (const char* tactic : {"centred_wgmma_64x64_s1", "norm_wgmma_64x64_s1"}) {
            options.tactic = tactic;
            EXPECT_EQ(expect_family(centred_group({.rows = rows}), options).tactic, tactic);
        }
    }
}

/// A layer norm with scale and bias, one or two products, each with what follows.
Graph block(const std::string& rows, bool biased, bool other_reader = false, bool rms = false) {
    Graph g;
    Type t = parse_type(rows);
    int64_t depth = t.dims.back().value();
    Value x = g.add_input("x", t);
    auto weights = [&](const Shape& s, unsigned seed) {
        return ops::constant(g, random_elements(t.dtype, s, seed, -0.2, 0.2));
    };
    ops::LayerNorm a;
    a.rms = rms;
    Value normed = ops::layer_norm(g, a, x, weights({depth}, 3), weights({depth}, 4));
    Value y = ops::matmul(g, normed, weights({depth, 96}, 5));
    if (biased) {
        y = ops::gelu(g, ops::add(g, y, weights({96}, 6)));
    } else {
        y = ops::mul(g, y, 0.5);
    }
    g.add_output("y", y);
    if (other_reader) {
        g.add_output("normed", normed);
    }
    return g;
}

int64_t steps_of(const Graph& g) {
    return std::count_if(g.nodes().begin(), g.nodes().end(),
                         [](const Node& n) { return !n.is(constant_def); });
}

TEST(Centred, ThroughTheBackend) {
    for (const char* rows : {"f16[2,35,64]", "bf16[70,200]"}) {
        for (bool biased : {false, true}) {
            SCOPED_TRACE(rows);
            Graph g = block(rows, biased);
            EXPECT_EQ(steps_of(cuda::lower(g, {})), 1);
            double tolerance = rows[0] == 'f' ? 4e-3 : 3e-2;
            BackendRun run =
                expect_backend(g, {.tactic = "centred_wgmma_64x64", .tolerance = tolerance});
            if (run.launches >= 0) { // a GPU does not count them
                EXPECT_EQ(run.launches, 1);
            }
            expect_backend(g, {.cc = 80, .tolerance = tolerance});
        }
    }
    Graph symbolic = block("f16[n,35,64]", true);
    for (int64_t n : {0, 1, 3}) {
        expect_backend(symbolic, {.symbols = {{"n", n}}, .tolerance = 4e-3, .runs = 2});
    }
}

/// Windows of a shifted image between norm and product, as in Swin; tokens ahead of the batch, as
/// in PyTorch's attention.
TEST(Centred, RowsThatMove) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[2,8,12,64]"));
    auto weights = [&](const Shape& s, unsigned seed) {
        return ops::constant(g, random_elements(DType::F16, s, seed, -0.2, 0.2));
    };
    Value y = ops::layer_norm(g, {}, x, weights({64}, 3), weights({64}, 4));
    y = ops::roll(g, {.axes = {1, 2}, .shifts = to_dims({2, 9})}, y);
    y = ops::reshape(g, y, to_dims({2, 2, 4, 3, 4, 64}));
    y = ops::reshape(g, ops::permute(g, y, {0, 1, 3, 2, 4, 5}), to_dims({12, 16, 64}));
    y = ops::add(g, ops::matmul(g, y, weights({64, 96}, 5)), weights({96}, 6));
    g.add_output("y", y);
    BackendRun run =
        expect_backend(g, {.tactic = "centred_wgmma_64x64", .tolerance = 4e-3, .runs = 2});
    EXPECT_TRUE(std::find(run.kernels.begin(), run.kernels.end(), "layer_norm") ==
                run.kernels.end());
    Graph tokens;
    x = tokens.add_input("x", parse_type("f16[3,33,64]"));
    Value scale = ops::constant(tokens, random_elements(DType::F32, {64}, 3));
    y = ops::permute(tokens, ops::layer_norm(tokens, {}, x, scale), {1, 0, 2});
    y = ops::matmul(tokens, y,
                    ops::constant(tokens, random_elements(DType::F16, {64, 96}, 5, -0.2, 0.2)));
    tokens.add_output("y", y);
    expect_backend(tokens, {.tactic = "centred_wgmma_64x64", .tolerance = 4e-3, .runs = 2});
}

TEST(Centred, NormsThatStay) {
    EXPECT_EQ(steps_of(cuda::lower(block("f32[70,64]", true), {})), 2);
    EXPECT_EQ(steps_of(cuda::lower(block("f16[70,64]", true, true), {})), 2);
    // Rows up to 512 elements gain.
    EXPECT_EQ(steps_of(cuda::lower(block("f16[70,512]", true), {})), 1);
    EXPECT_EQ(steps_of(cuda::lower(block("f16[70,520]", true), {})), 2);
    EXPECT_EQ(steps_of(cuda::lower(block("f16[70,64]", true, false, true), {})), 2);
}

TEST(Centred, ChosenWhereTheNormCostsMore) {
    auto best = [](const CentredCase& c) {
        return tactic_names(centred_group(c), centred_family()).front();
    };
    EXPECT_TRUE(best({.rows = "f16[257,384]", .columns = 1152}).starts_with("centred_wgmma"));
    EXPECT_TRUE(best({.rows = "f16[3136,96]", .columns = 384}).starts_with("centred_wgmma"));
}

} // namespace
} // namespace ingot::test
