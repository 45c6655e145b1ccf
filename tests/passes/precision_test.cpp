// SPDX-License-Identifier: Apache-2.0
// Products that keep f32 in a graph of 16 bits: by Fourier matrices, and around large values.
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "passes/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace ingot::test {
namespace {

/// The types that products compute in, in order.
std::vector<DType> product_types(const Graph& g) {
    std::vector<DType> out;
    for (const Node& n : g.nodes()) {
        if (n.is(dot_def)) {
            out.push_back(n.as<Dot>().dtype);
        }
    }
    return out;
}

Tensor cosines(int64_t samples, int64_t bins) {
    Tensor t = Tensor::empty(DType::F32, {samples, bins});
    for (int64_t i = 0; i < t.count(); ++i) {
        auto n = static_cast<double>(i / bins);
        auto k = static_cast<double>(i % bins);
        t.set_f64(i, std::cos(2 * std::numbers::pi * n * k / static_cast<double>(samples)));
    }
    return t;
}

Tensor ramp(const Shape& shape) {
    Tensor t = Tensor::empty(DType::F32, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, static_cast<double>(i % 7) / 7);
    }
    return t;
}

/// A spectrogram's product, its square, and a bank of filters.
Graph spectrum() {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {5, 32}});
    Value y = ops::matmul(g, x, ops::constant(g, cosines(32, 17)));
    y = ops::matmul(g, ops::mul(g, y, y), ops::constant(g, ramp({17, 6})));
    g.add_output("y", y);
    return g;
}

TEST(Precision, FourierProductsKeepF32) {
    for (DType t : {DType::F16, DType::BF16}) {
        PassOptions options;
        options.precision = t;
        Graph g = run_pass(find_pass("precision"), spectrum(), options);
        EXPECT_EQ(product_types(g), (std::vector{DType::F32, t}));
    }
}

TEST(Precision, LargeValuesKeepF32WhereTheyAreMadeAndRead) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {4, 8}});
    Value w = ops::constant(g, ramp({8, 8}));
    Value a = ops::matmul(g, x, w);
    Value b = ops::matmul(g, a, w);
    Value c = ops::matmul(g, b, w);
    Value d = ops::matmul(g, c, w);
    g.add_output("y", d);
    PassOptions options;
    options.precision = DType::F16;
    Values asked;
    auto beyond = [&](const Graph&, std::span<const Value> narrow) {
        asked.assign(narrow.begin(), narrow.end());
        return Values{b};
    };
    Graph out = run_pass(passes::precision_within(beyond), g, options);
    EXPECT_EQ(product_types(out), (std::vector{DType::F16, DType::F32, DType::F32, DType::F16}));
    EXPECT_EQ(asked, (Values{x, w, a, b, c, d})) << "all that would be stored or read in f16";
    options.precision.reset();
    asked.clear();
    out = run_pass(passes::precision_within(beyond), g, options);
    EXPECT_EQ(product_types(out), std::vector<DType>(4, DType::F32));
    EXPECT_TRUE(asked.empty());
}

} // namespace
} // namespace ingot::test
