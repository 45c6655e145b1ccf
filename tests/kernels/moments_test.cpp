// SPDX-License-Identifier: Apache-2.0
// Moments of rows: alone, as second results of products, and as operands of the norms behind.
#include "base/error.h"
#include "kernels/moments.h"
#include "lower/centred_weights.h"
#include "ops/ops.h"
#include "ops/row_moments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::test {
namespace {

/// Whether a refusal contains the reason.
bool has(const std::optional<std::string>& refusal, std::string_view reason) {
    return refusal && refusal->find(reason) != std::string::npos;
}

Graph moments_graph(const std::string& rows) {
    Graph g;
    Value x = g.add_input("x", parse_type(rows));
    g.add_output("m", ops::row_moments(g, {}, x));
    return g;
}

TEST(RowMoments, Alone) {
    for (const char* rows : {"f16[5,64]", "bf16[3,7,96]", "f16[1,32]", "bf16[2,33,768]"}) {
        SCOPED_TRACE(rows);
        FamilyOptions options;
        options.tolerance = 1e-5;
        sweep(moments_graph(rows), options);
        options.strided = true;
        expect_family(moments_graph(rows), options);
        options.low = 199;
        options.high = 201;
        expect_family(moments_graph(rows), options);
    }
    EXPECT_TRUE(
        has(refusal(moments_graph("f32[5,64]")), "rows of f32, expected floats of 16 bits"));
    Graph other;
    Value x = other.add_input("x", parse_type("f16[5,64]"));
    other.add_output("m", ops::row_moments(other, {.chunk = 16}, x));
    EXPECT_TRUE(has(refusal(other), "chunks other than 32 elements"));
}

Graph norm_graph(const std::string& rows) {
    Graph g;
    Value x = g.add_input("x", parse_type(rows));
    Value m = moments_input(g, g.type(x));
    g.add_output("y", ops::moment_norm(g, {.epsilon = 1e-3}, x, m));
    return g;
}

/// By the moments of few rows; those of many are found.
TEST(RowMoments, NormAlone) {
    for (const char* rows : {"f16[5,64]", "bf16[3,7,96]", "f16[1,32]", "bf16[2,33,768]",
                             "f16[1025,64]", "bf16[5,257,288]", "f16[1100,2048]"}) {
        SCOPED_TRACE(rows);
        Graph g = norm_graph(rows);
        Type t = g.type(g.inputs()[0]);
        for (bool strided : {false, true}) {
            FamilyOptions options;
            options.strided = strided;
            for (double low : {-2.0, 18.0}) {
                Tensor rows_of_x = random_elements(t.dtype, shape_of(t), 3, low, low + 4);
                options.inputs = {rows_of_x, moments_of(rows_of_x)};
                expect_family(g, options);
            }
        }
    }
}

struct ProductCase {
    std::string rows = "f16[70,136]";
    int64_t columns = 96;
    bool residual = true;
    bool map = true;
};

/// rows W + bias + residual, and the moments of that.
Graph product_graph(const ProductCase& c) {
    Graph g;
    Type t = parse_type(c.rows);
    Value x = g.add_input("x", t);
    int64_t depth = t.dims.back().value();
    Value y = ops::matmul(
        g, x, ops::constant(g, random_elements(t.dtype, {depth, c.columns}, 7, -0.2, 0.2)));
    if (c.map) {
        Values in = {y, ops::constant(g, random_elements(t.dtype, {c.columns}, 8))};
        Expr body;
        int sum = body.op(ExprOp::Add, body.in(0, t.dtype), body.in(1, t.dtype));
        if (c.residual) {
            in.push_back(g.add_input("residual", g.type(y)));
            body.op(ExprOp::Add, sum, body.in(2, t.dtype));
        }
        y = ops::map(g, body, t.dtype, in);
    }
    g.add_output("y", y);
    g.add_output("m", ops::row_moments(g, {}, y));
    return g;
}

FamilyOptions product_family(const ProductCase& c) {
    FamilyOptions options;
    options.family = "dot";
    options.tolerance = c.rows[0] == 'f' ? 2e-3 : 2e-2;
    return options;
}

TEST(RowMoments, EveryTacticOfAProduct) {
    ProductCase c{.rows = "f16[70,264]"};
    std::vector<std::string> names = sweep(product_graph(c), product_family(c));
    for (const char* name : {"wgmma_64x32_s1", "wgmma_64x48_s1", "wgmma_64x64_s2",
                             "wgmma_128x128_s1", "mma_64x64_s1", "simt"}) {
        EXPECT_TRUE(lists(names, name)) << name;
    }
}

TEST(RowMoments, InTheLaunchOfTheProduct) {
    struct Row {
        const char* tactic;
        size_t launches;
    };
    for (Row r : {Row{"wgmma_64x32_s1", 1},
                  {"wgmma_64x64_s1", 1},
                  {"wgmma_64x64_s3", 1},
                  {"wgmma_64x32_s2", 1},
                  {"wgmma_128x128_s1", 1},
                  {"wgmma_128x128_r2_s1", 1},
                  {"wgmma_64x48_s1", 2},
                  {"wgmma_128x128_turns_s1", 1},
                  {"wgmma_128x160_turns_s1", 1},
                  {"wgmma_128x192_turns_s1", 2},
                  {"mma_64x64_s1", 1},
                  {"mma_64x64_s2", 1},
                  {"simt", 2}}) {
        for (const ProductCase& c : {ProductCase{.rows = "f16[67,520]", .columns = 96},
                                     {.rows = "bf16[3,33,448]", .columns = 160, .residual = false},
                                     {.rows = "f16[130,400]", .columns = 32, .map = false}}) {
            SCOPED_TRACE(str(r.tactic, " ", c.rows));
            FamilyOptions options = product_family(c);
            options.tactic = r.tactic;
            for (int variant : {0, 1}) {
                options.variant = variant;
                FamilyRun run = expect_family(product_graph(c), options);
                EXPECT_EQ(run.tactic, r.tactic);
                EXPECT_EQ(run.entries.size(), r.launches);
                expect_own_moments(run);
            }
        }
    }
}

/// Rows with gaps between them, and moments without those, take a launch of their own.
TEST(RowMoments, RowsWithGaps) {
    ProductCase c{.rows = "f16[67,136]", .columns = 64};
    FamilyOptions options = product_family(c);
    options.strided = true;
    options.tactic = "mma_64x64_s1";
    FamilyRun run = expect_family(product_graph(c), options);
    EXPECT_EQ(run.entries.size(), 2U);
    expect_own_moments(run);
}

TEST(RowMoments, SpecialValues) {
    ProductCase c{.rows = "f16[67,136]", .columns = 64};
    Tensor x = random_elements(DType::F16, {67, 136}, 4, -1, 1);
    x.set_f64(5 * 136 + 3, std::numeric_limits<double>::quiet_NaN());
    x.set_f64(9 * 136 + 1, std::numeric_limits<double>::infinity());
    FamilyOptions options = product_family(c);
    options.inputs = {x};
    for (const char* tactic : {"wgmma_64x64_s1", "simt"}) {
        options.tactic = tactic;
        expect_own_moments(expect_family(product_graph(c), options));
    }
}

TEST(RowMoments, Refusals) {
    auto why = [](const std::string& rows) {
        return refusal(product_graph({.rows = rows, .columns = 64}), "dot");
    };
    EXPECT_EQ(why("f16[70,64]"), std::nullopt);
    EXPECT_EQ(why("f16[n,64]"), std::nullopt);
    EXPECT_TRUE(has(why("f32[70,64]"), "rows of f32, expected floats of 16 bits"));
}

struct NormedCase {
    std::string rows = "f16[70,160]";
    int64_t columns = 104;
    bool residual = false;
    double low = -2, high = 2;
};

/// tanh(norm(rows) V + bias) + residual by the rows' moments, V with columns that sum to zero.
Graph normed_graph(const NormedCase& c) {
    Graph g;
    Type t = parse_type(c.rows);
    int64_t depth = t.dims.back().value();
    Value x = g.add_input("x", t);
    Value m = moments_input(g, t);
    Value y = ops::moment_norm(g, {}, x, m);
    std::vector<float> ones(static_cast<size_t>(depth), 1.0F);
    auto v = plan::centred_weights(random_elements(t.dtype, {depth, c.columns}, 7, -0.2, 0.2), true,
                                   ones, ones);
    y = ops::matmul(g, y, ops::constant(g, std::move(v->weights)));
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

FamilyOptions normed_family(const NormedCase& c) {
    FamilyOptions options;
    options.family = "centred_dot";
    Type t = parse_type(c.rows);
    Tensor x = random_elements(t.dtype, shape_of(t), 3, c.low, c.high);
    options.inputs = {x, moments_of(x)};
    return options;
}

TEST(RowMoments, EveryTacticOfANormedProduct) {
    NormedCase c;
    std::vector<std::string> names = sweep(normed_graph(c), normed_family(c));
    for (const char* name :
         {"merged_wgmma_64x32_s1", "merged_wgmma_64x48_s1", "merged_wgmma_64x64_s1",
          "merged_wgmma_128x128_s1", "norm_wgmma_64x64_s1", "norm_mma_64x64_s1", "norm_simt"}) {
        EXPECT_TRUE(lists(names, name)) << name;
    }
}

TEST(RowMoments, NormedRowsAndDepths) {
    for (const char* tactic : {"merged_wgmma_64x64_s1", "merged_wgmma_64x64_s3",
                               "merged_wgmma_128x144_s1", "merged_wgmma_256x128_s1",
                               "merged_wgmma_128x160_turns_s1", "merged_wgmma_128x192_turns_s1"}) {
        for (const NormedCase& c : {NormedCase{.rows = "bf16[3,67,384]", .residual = true},
                                    {.rows = "f16[197,768]", .columns = 288},
                                    {.rows = "f16[2,49,416]", .columns = 16, .residual = true},
                                    {.rows = "f16[70,768]", .low = 18, .high = 22}}) {
            SCOPED_TRACE(str(tactic, " ", c.rows));
            FamilyOptions options = normed_family(c);
            options.tactic = tactic;
            options.tolerance = c.rows[0] == 'f' ? 2e-3 : 2e-2;
            EXPECT_EQ(expect_family(normed_graph(c), options).tactic, tactic);
        }
    }
}

TEST(RowMoments, NormedSpecialValues) {
    NormedCase c{.rows = "f16[70,160]"};
    FamilyOptions options = normed_family(c);
    Tensor x = options.inputs[0];
    x.set_f64(5 * 160 + 3, std::numeric_limits<double>::quiet_NaN());
    x.set_f64(9 * 160 + 1, std::numeric_limits<double>::infinity());
    options.inputs = {x, moments_of(x)};
    for (const char* tactic : {"merged_wgmma_64x64_s1", "norm_wgmma_64x64_s1"}) {
        options.tactic = tactic;
        FamilyRun run = expect_family(normed_graph(c), options);
        for (int64_t row : {5, 9}) {
            for (int64_t j = 0; j < c.columns; ++j) {
                EXPECT_TRUE(std::isnan(run.results[0].get_f64(row * c.columns + j)));
            }
        }
    }
}

/// Two layers of a transformer without attention: x + W2 gelu(W1 norm(x)), twice, as vision models
/// and GPT have them; rows of 544 elements.
Graph layers(const std::string& rows, int count = 2) {
    Graph g;
    Type t = parse_type(rows);
    int64_t n = t.dims.back().value();
    unsigned seed = 3;
    auto weights = [&](const Shape& s, double most) {
        return ops::constant(g, random_elements(t.dtype, s, ++seed, -most, most));
    };
    Value x = g.add_input("x", t);
    for (int i = 0; i < count; ++i) {
        Value y = ops::layer_norm(g, {}, x, weights({n}, 2), weights({n}, 1));
        y = ops::add(g, ops::matmul(g, y, weights({n, 160}, 0.2)), weights({160}, 1));
        y = ops::matmul(g, ops::gelu(g, y), weights({160, n}, 0.2));
        x = ops::add(g, x, ops::add(g, y, weights({n}, 1)));
    }
    g.add_output("y", x);
    return g;
}

TEST(RowMoments, ThroughTheBackend) {
    for (const char* rows : {"f16[67,544]", "bf16[2,33,544]"}) {
        SCOPED_TRACE(rows);
        double tolerance = rows[0] == 'f' ? 4e-3 : 3e-2;
        BackendRun run = expect_backend(layers(rows), {.tolerance = tolerance});
        EXPECT_EQ(count_of(run, "layer_norm"), 1); // nothing makes the first rows
        EXPECT_EQ(count_of(run, "centred_dot"), 1);
        if (run.launches >= 0) { // a GPU does not count them
            EXPECT_EQ(run.launches, 5);
        }
        expect_backend(layers(rows), {.cc = 80, .tolerance = tolerance});
    }
    for (int64_t n : {0, 1, 3}) { // a batch that is not known
        BackendRun run = expect_backend(layers("f16[n,67,544]"),
                                        {.symbols = {{"n", n}}, .tolerance = 4e-3, .runs = 2});
        EXPECT_EQ(count_of(run, "centred_dot"), n > 0 ? 1 : 0);
    }
}

/// The moments of many rows are not stored: memory that nothing writes would show.
TEST(RowMoments, ManyRowsThroughTheBackend) {
    BackendRun run = expect_backend(layers("f16[n,545,544]"),
                                    {.symbols = {{"n", 2}}, .tolerance = 4e-3, .runs = 2});
    EXPECT_EQ(count_of(run, "centred_dot"), 1);
    BackendRun few =
        expect_backend(layers("f16[67,544]"), {.tolerance = 4e-3, .batch_invariant = true});
    EXPECT_EQ(count_of(few, "centred_dot"), 1);
}

} // namespace
} // namespace ingot::test
