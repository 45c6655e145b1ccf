// SPDX-License-Identifier: Apache-2.0
// Residual sums that normalise raw rows by their moments, as behind the norms of BERT.
#include "kernels/moments.h"
#include "ops/ops.h"
#include "ops/row_moments.h"

#include <gtest/gtest.h>

#include <limits>

namespace ingot::test {
namespace {

struct ResidualCase {
    std::string rows = "f16[70,96]"; // of the residual
    int64_t depth = 136;
    double low = -2, high = 2;
    bool moments = true; // of the result
};

/// a W + bias + scale norm(x) by the moments of x: rows that another group has left are not read.
Graph residual_graph(const ResidualCase& c) {
    Graph g;
    Type t = parse_type(c.rows);
    int64_t columns = t.dims.back().value();
    Value x = g.add_input("x", t);
    Value m = moments_input(g, t);
    Value left = g.add_input("left", t);
    Dims rows = t.dims;
    rows.back() = c.depth;
    Value a = g.add_input("a", {t.dtype, rows});
    Value norm = ops::moment_norm(g, {.epsilon = 1e-3}, x, m, left);
    Value w = ops::constant(g, random_elements(t.dtype, {c.depth, columns}, 7, -0.2, 0.2));
    Values in = {ops::matmul(g, a, w), ops::constant(g, random_elements(t.dtype, {columns}, 8)),
                 norm, ops::constant(g, random_elements(t.dtype, {columns}, 9))};
    Expr body;
    int sum = body.op(ExprOp::Add, body.in(0, t.dtype), body.in(1, t.dtype));
    int scaled = body.op(ExprOp::Mul, body.in(2, t.dtype), body.in(3, t.dtype));
    body.op(ExprOp::Add, sum, scaled);
    Value y = ops::map(g, body, t.dtype, in);
    g.add_output("y", y);
    if (c.moments) {
        g.add_output("z", ops::row_moments(g, {}, y));
    }
    return g;
}

/// (x - mean) / sqrt(variance + 1e-3) of each row.
Tensor normalised(const Tensor& x) {
    Tensor out = Tensor::empty(x.dtype(), x.shape());
    int64_t n = x.shape().back();
    for (int64_t r = 0; r < x.count() / n; ++r) {
        double mean = 0;
        double squares = 0;
        for (int64_t k = 0; k < n; ++k) {
            mean += x.get_f64(r * n + k) / static_cast<double>(n);
        }
        for (int64_t k = 0; k < n; ++k) {
            double d = x.get_f64(r * n + k) - mean;
            squares += d * d / static_cast<double>(n);
        }
        for (int64_t k = 0; k < n; ++k) {
            out.set_f64(r * n + k, (x.get_f64(r * n + k) - mean) / std::sqrt(squares + 1e-3));
        }
    }
    return out;
}

/// `left`: whether rows that were left are true, else they are NaN.
FamilyOptions residual_family(const ResidualCase& c, bool left) {
    FamilyOptions options;
    options.family = "dot";
    options.tolerance = c.rows[0] == 'f' ? 2e-3 : 2e-2;
    Type t = parse_type(c.rows);
    Tensor x = random_elements(t.dtype, shape_of(t), 3, c.low, c.high);
    Tensor rows = normalised(x);
    for (int64_t i = 0; !left && i < rows.count(); ++i) {
        rows.set_f64(i, std::numeric_limits<double>::quiet_NaN());
    }
    options.inputs = {x, moments_of(x), rows};
    return options;
}

TEST(NormedResidual, EveryTactic) {
    ResidualCase c{.rows = "f16[70,96]", .depth = 264};
    FamilyOptions options = residual_family(c, false);
    for (const std::string& name : tactic_names(residual_graph(c), options)) {
        SCOPED_TRACE(name);
        options.tactic = name;
        EXPECT_EQ(expect_family(residual_graph(c), options).tactic, name);
    }
    std::vector<std::string> names = sweep(residual_graph(c), residual_family(c, true));
    for (const char* name :
         {"residual_wgmma_64x32_s1", "residual_wgmma_64x48_s1", "residual_wgmma_64x64_s2",
          "residual_wgmma_128x128_s1", "norm_wgmma_64x64_s1", "norm_simt", "mma_64x64_s1"}) {
        EXPECT_TRUE(lists(names, name)) << name;
    }
}

TEST(NormedResidual, RowsAndDepths) {
    for (const char* tactic :
         {"residual_wgmma_64x32_s1", "residual_wgmma_64x64_s1", "residual_wgmma_64x64_s3",
          "residual_wgmma_64x96_s2", "residual_wgmma_64x48_s4", "residual_wgmma_128x128_s1"}) {
        for (const ResidualCase& c :
             {ResidualCase{.rows = "bf16[3,67,384]", .depth = 520},
              {.rows = "f16[197,768]", .depth = 776, .moments = false},
              {.rows = "f16[17,64]", .depth = 1032},
              {.rows = "f16[1,64]", .depth = 1032},
              {.rows = "f16[65,544]", .depth = 512, .low = 18, .high = 22}}) {
            SCOPED_TRACE(str(tactic, " ", c.rows));
            FamilyOptions options = residual_family(c, false);
            options.tactic = tactic;
            for (int variant : {0, 2}) {
                options.variant = variant;
                FamilyRun run = expect_family(residual_graph(c), options);
                EXPECT_EQ(run.tactic, tactic);
                if (c.moments) {
                    expect_own_moments(run);
                }
            }
        }
    }
}

/// Where no moments are stored, or no kernel takes them, the rows that were left are read as they
/// are.
TEST(NormedResidual, RowsThatWereLeft) {
    ResidualCase many{.rows = "f16[1025,64]", .depth = 40, .moments = false};
    std::vector<std::string> names =
        tactic_names(residual_graph(many), residual_family(many, true));
    EXPECT_FALSE(lists(names, "residual_wgmma_64x64_s1"));
    EXPECT_TRUE(lists(names, "wgmma_64x64_s1"));
    expect_family(residual_graph(many), residual_family(many, true));
    FamilyOptions options = residual_family({}, true);
    options.cc = 80;
    FamilyRun run = expect_family(residual_graph({}), options);
    EXPECT_EQ(run.tactic.substr(0, 4), "mma_");
}

TEST(NormedResidual, SpecialValues) {
    ResidualCase c{.moments = false};
    FamilyOptions options = residual_family(c, false);
    Tensor x = options.inputs[0];
    x.set_f64(5 * 96 + 3, std::numeric_limits<double>::quiet_NaN());
    x.set_f64(9 * 96 + 1, std::numeric_limits<double>::infinity());
    options.inputs = {x, moments_of(x), options.inputs[2]};
    options.tactic = "residual_wgmma_64x64_s1";
    FamilyRun run = expect_family(residual_graph(c), options);
    for (int64_t row : {5, 9}) {
        for (int64_t j = 0; j < 96; ++j) {
            EXPECT_TRUE(std::isnan(run.results[0].get_f64(row * 96 + j)));
        }
    }
}

using Join = Value (*)(Graph&, Value rows, Value product);

Value sum_of(Graph& g, Value rows, Value product) {
    return ops::add(g, rows, product);
}

/// Layers of a transformer without attention: norm(x + W2 gelu(W1 x)), as BERT has them, or
/// norm(join(x, W2 gelu(W1 x))). Each norm is read by the product behind it and by the map after
/// that one.
Graph layers_with_norms_behind(const std::string& rows, bool biases = true, Join join = sum_of) {
    Graph g;
    Type t = parse_type(rows);
    int64_t n = t.dims.back().value();
    unsigned seed = 3;
    auto weights = [&](const Shape& s, double most) {
        return ops::constant(g, random_elements(t.dtype, s, ++seed, -most, most));
    };
    Value x = g.add_input("x", t);
    for (int i = 0; i < 3; ++i) {
        Value y = ops::add(g, ops::matmul(g, x, weights({n, 160}, 0.2)), weights({160}, 1));
        y = ops::matmul(g, ops::gelu(g, y), weights({160, n}, 0.2));
        if (biases) {
            y = ops::add(g, y, weights({n}, 1));
        }
        x = ops::layer_norm(g, {}, join(g, x, y), weights({n}, 2), weights({n}, 1));
    }
    g.add_output("y", x);
    return g;
}

TEST(NormedResidual, ThroughTheBackend) {
    for (const char* rows : {"f16[67,544]", "bf16[2,33,544]"}) {
        for (bool biases : {false, true}) {
            SCOPED_TRACE(str(rows, biases));
            double tolerance = rows[0] == 'f' ? 4e-3 : 3e-2;
            Graph g = layers_with_norms_behind(rows, biases);
            BackendRun run = expect_backend(g, {.tolerance = tolerance});
            EXPECT_EQ(count_of(run, "layer_norm"), 1); // the last one, which no product reads
            EXPECT_EQ(count_of(run, "centred_dot"), 2);
            if (run.launches >= 0) { // a GPU does not count them
                EXPECT_EQ(run.launches, 7);
            }
            expect_backend(g, {.cc = 80, .tolerance = tolerance});
            expect_backend(g, {.tolerance = tolerance, .batch_invariant = true});
        }
    }
    for (int64_t n : {0, 1, 13, 67, 1100}) { // few rows, and many
        expect_backend(layers_with_norms_behind("f16[n,544]"),
                       {.symbols = {{"n", n}}, .tolerance = 4e-3, .runs = 2});
    }
}

Value tanh_of(Graph& g, Value x) {
    return ops::unary(g, ExprOp::Tanh, x);
}

/// The norm's bias joins the bias of the product only where both are added.
TEST(NormedResidual, MapsThatAreNoSums) {
    Join of_function = [](Graph& g, Value rows, Value y) {
        return ops::add(g, rows, tanh_of(g, y));
    };
    Join product = [](Graph& g, Value rows, Value y) { return ops::mul(g, rows, y); };
    Join sum_and_function = [](Graph& g, Value rows, Value y) {
        return ops::mul(g, ops::add(g, rows, y), tanh_of(g, y));
    };
    Join sum_and_rows = [](Graph& g, Value rows, Value y) {
        return ops::mul(g, ops::add(g, rows, y), rows);
    };
    for (Join join : {of_function, product, sum_and_function, sum_and_rows}) {
        BackendRun run = expect_backend(layers_with_norms_behind("f16[67,544]", true, join),
                                        {.tolerance = 8e-3});
        EXPECT_EQ(count_of(run, "layer_norm"), 1);
        EXPECT_EQ(count_of(run, "centred_dot"), 2);
    }
}

} // namespace
} // namespace ingot::test
