// SPDX-License-Identifier: Apache-2.0
// Quantisation moves before views, so that it becomes the epilogue of a product.
#include "backends/cuda/lower.h"
#include "lower/passes.h"
#include "ops/evaluator.h"
#include "ops/ops.h"
#include "plan/compile_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace ingot::plan {
namespace {

Tensor random_tensor(DType t, Shape shape, double low, double high, unsigned seed) {
    std::mt19937 rng(seed);
    std::uniform_real_distribution<double> numbers(low, high);
    Tensor out = Tensor::zeros(t, std::move(shape));
    for (int64_t i = 0; i < out.count(); ++i) {
        is_float(t) ? out.set_f64(i, numbers(rng))
                    : out.set_i64(i, static_cast<int64_t>(numbers(rng)));
    }
    return out;
}

int64_t count(const Graph& g, const OpDef& def) {
    return std::count_if(g.nodes().begin(), g.nodes().end(),
                         [&](const Node& n) { return n.is(def); });
}

size_t position(const Graph& g, const OpDef& def) {
    auto at =
        std::find_if(g.nodes().begin(), g.nodes().end(), [&](const Node& n) { return n.is(def); });
    return static_cast<size_t>(at - g.nodes().begin());
}

struct Chain {
    DType type = DType::I8;
    bool scale_by_channel = false;
    bool view_is_read = false;
    bool own_bytes = true; // the graph quantises them itself
};

Graph chain(const Chain& c) {
    Graph g;
    Dim n = Dim::symbol("N");
    Value scale = c.scale_by_channel ? ops::constant(g, random_tensor(DType::F32, {4}, 0.1, 0.2, 1))
                                     : ops::scalar(g, DType::F32, 0.125);
    Value x = g.add_input("x", {c.own_bytes ? DType::F32 : c.type, {n, 6, 8}});
    x = ops::permute(g, ops::reshape(g, x, {n, 6, 2, 4}), {0, 2, 1, 3});
    Value q = c.own_bytes ? ops::quantize(g, {3, 0, c.type, true}, x, scale) : x;
    if (c.view_is_read) {
        g.add_output("view", x);
    }
    q = ops::permute(g, q, {0, 1, 3, 2});
    g.add_output("y", ops::dequantize(g, {2, 0, DType::F32}, q, scale));
    return g;
}

TEST(BeforeViews, QuantisationByOneScaleMoves) {
    for (DType type : {DType::I8, DType::U8, DType::F8E4M3}) {
        Graph g = chain({.type = type});
        Graph moved = after(quantized_products, g);
        EXPECT_LT(position(moved, ops::quantize_def), position(moved, reshape_def));
        EXPECT_LT(position(moved, ops::dequantize_def), position(moved, reshape_def));
        Tensor x = random_tensor(DType::F32, {3, 6, 8}, -20, 20, 7);
        EXPECT_EQ(evaluate(g, std::array{x})[0], evaluate(moved, std::array{x})[0]);
    }
}

TEST(BeforeViews, OthersStay) {
    Graph by_channel = after(quantized_products, chain({.scale_by_channel = true}));
    EXPECT_GT(position(by_channel, ops::quantize_def), position(by_channel, permute_def));
    Graph is_read = after(quantized_products, chain({.view_is_read = true}));
    EXPECT_GT(position(is_read, ops::quantize_def), position(is_read, permute_def));
    Graph given = after(quantized_products, chain({.own_bytes = false}));
    EXPECT_GT(position(given, ops::dequantize_def), position(given, permute_def));
}

/// Queries, keys and values of bytes, each quantised again once its heads are apart, by scales that
/// are numbers or vectors of one.
Graph heads(DType type, Shape one = {}) {
    Graph g;
    Dim n = Dim::symbol("N");
    double most = type == DType::I8 ? 127 : 448;
    auto narrow = [&](Value v, double scale) {
        Value s = ops::constant(g, random_tensor(DType::F32, one, scale, scale, 1));
        Value zero = ops::constant(g, Tensor::zeros(type, one));
        Value q = ops::quantize(g, {0, 0, type, true}, v, s, zero);
        return ops::dequantize(g, {0, 0, DType::F32}, q, s, zero);
    };
    Value x = narrow(g.add_input("x", {DType::F32, {n, 6, 64}}), 4 / most);
    for (unsigned i = 0; i < 3; ++i) {
        Value w = ops::constant(g, random_tensor(type, {64, 64}, -most, most, i + 1));
        Value s = ops::constant(g, random_tensor(DType::F32, {64}, 0.1 / most, 0.3 / most, i + 5));
        w = ops::dequantize(g, {1, 0, DType::F32}, w, s);
        Value y = ops::dot(g, Dot{{}, {}, {2}, {0}, DType::F32}, x, w);
        y = ops::add(g, y, ops::constant(g, random_tensor(DType::F32, {64}, -1, 1, i + 9)));
        y = ops::permute(g, ops::reshape(g, y, {n, 6, 4, 16}), {0, 2, 1, 3});
        g.add_output(str("y", i), narrow(y, (i + 2) / most));
    }
    return g;
}

TEST(BeforeViews, HeadsAreQuantisedInOneEpilogue) {
    for (DType type : {DType::I8, DType::F8E4M3}) {
        Graph g = heads(type);
        Graph lowered = cuda::lower(g, {});
        int64_t kernels =
            count(lowered, fused_def) + count(lowered, map_def) + count(lowered, dot_def);
        EXPECT_EQ(kernels, 2) << "of x, and of all three";
        Graph vectors = cuda::lower(heads(type, {1}), {});
        EXPECT_EQ(count(vectors, fused_def) + count(vectors, map_def) + count(vectors, dot_def), 2);
        Tensor x = random_tensor(DType::F32, {3, 6, 64}, -4, 4, 17);
        std::vector<Tensor> want = evaluate(g, std::array{x});
        std::vector<Tensor> got = evaluate(lowered, std::array{x});
        for (size_t i = 0; i < want.size(); ++i) {
            double step = (static_cast<double>(i) + 2) / (type == DType::I8 ? 127 : 448);
            int64_t apart = 0;
            for (int64_t e = 0; e < want[i].count(); ++e) {
                double most = type == DType::I8 ? step : std::abs(want[i].get_f64(e)) / 7 + step;
                double error = std::abs(got[i].get_f64(e) - want[i].get_f64(e));
                ASSERT_LE(error, most * 1.001); // the step beside it
                apart += error > 1e-6 ? 1 : 0;
            }
            EXPECT_LT(apart, want[i].count() / 100);
        }
    }
}

} // namespace
} // namespace ingot::plan
