// SPDX-License-Identifier: Apache-2.0
#include "lower/passes.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ingot::plan {
namespace {

Tensor random_tensor(DType t, Shape shape, double low, double high, unsigned seed) {
    std::mt19937 rng(seed);
    std::uniform_real_distribution<double> numbers(low, high);
    Tensor out = Tensor::zeros(t, std::move(shape));
    for (int64_t i = 0; i < out.count(); ++i) {
        double x = numbers(rng);
        if (is_float(t)) {
            out.set_f64(i, x);
        } else {
            out.set_i64(i, static_cast<int64_t>(x));
        }
    }
    return out;
}

Value random_constant(Graph& g, DType t, Shape shape, double low, double high, unsigned seed = 1) {
    return ops::constant(g, random_tensor(t, std::move(shape), low, high, seed));
}

const Node* find(const Graph& g, const OpDef& def) {
    auto it =
        std::find_if(g.nodes().begin(), g.nodes().end(), [&](const Node& n) { return n.is(def); });
    return it == g.nodes().end() ? nullptr : &*it;
}

void expect_close(const Graph& before, const Graph& after, const std::vector<Tensor>& in,
                  double tolerance = 2e-6) {
    std::vector<Tensor> want = evaluate(before, in);
    std::vector<Tensor> got = evaluate(after, in);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].shape(), want[i].shape());
        double most = 1e-9;
        for (int64_t e = 0; e < want[i].count(); ++e) {
            most = std::max(most, std::abs(want[i].get_f64(e)));
        }
        for (int64_t e = 0; e < want[i].count(); ++e) {
            ASSERT_NEAR(got[i].get_f64(e), want[i].get_f64(e), tolerance * most) << "element " << e;
        }
    }
}

struct ConvCase {
    DType x = DType::U8, w = DType::I8;
    double x_zero = 3;
    double w_zero = 0;
    int64_t groups = 1;
    bool per_channel = true;
};

Graph conv_of(const ConvCase& c) {
    Graph g;
    Value x = g.add_input("x", {c.x, {Dim::symbol("N"), 8, 9, 10}});
    x = ops::dequantize(g, {}, x, ops::scalar(g, DType::F32, 0.05), ops::scalar(g, c.x, c.x_zero));
    int64_t in = 8 / c.groups;
    bool is_signed = c.w == DType::I8;
    Value w = random_constant(g, c.w, {16, in, 3, 3}, is_signed ? -128 : 0, is_signed ? 127 : 255);
    Value scale = c.per_channel ? random_constant(g, DType::F32, {16}, 0.01, 0.1)
                                : ops::scalar(g, DType::F32, 0.02);
    Shape places = c.per_channel ? Shape{16} : Shape{};
    Value zero = random_constant(g, c.w, places, c.w_zero, c.w_zero);
    w = ops::dequantize(g, {0, 0, DType::F32}, w, scale, zero);
    Value y = ops::conv(g, {{1, 1}, {1, 1}, {1, 1}, {1, 0}, c.groups, DType::F32}, x, w);
    Value bias =
        ops::dequantize(g, {0, 0, DType::F32}, random_constant(g, DType::I32, {16}, -900, 900),
                        random_constant(g, DType::F32, {16}, 0.001, 0.01));
    g.add_output("y", ops::add(g, y, ops::reshape(g, bias, {16, 1, 1})));
    return g;
}

TEST(QuantizedProducts, ConvolutionsBecomeIntegerOnes) {
    for (const ConvCase& c :
         {ConvCase{}, ConvCase{.x = DType::I8, .x_zero = -5}, ConvCase{.x_zero = 0},
          ConvCase{.w = DType::U8, .w_zero = 128, .per_channel = false},
          ConvCase{.x_zero = 128, .groups = 8}}) {
        Graph g = conv_of(c);
        Graph lowered = after(quantized_products, g);
        const Node* conv = find(lowered, ops::conv_def);
        ASSERT_NE(conv, nullptr);
        EXPECT_EQ(conv->as<ops::Conv>().dtype, DType::I32);
        EXPECT_EQ(lowered.type(conv->inputs[0]).dtype, c.x);
        EXPECT_EQ(lowered.type(conv->inputs[1]).dtype, DType::I8);
        EXPECT_EQ(find(lowered, ops::dequantize_def), nullptr);
        EXPECT_EQ(find(lowered, pad_def) != nullptr, c.x_zero != 0);
        bool is_signed = c.x == DType::I8;
        expect_close(
            g, lowered,
            {random_tensor(c.x, {2, 8, 9, 10}, is_signed ? -128 : 0, is_signed ? 127 : 255, 7)});
    }
}

TEST(QuantizedProducts, WeightsThatDoNotFitSignedBytesStay) {
    Graph g = conv_of({.w = DType::U8, .w_zero = 3});
    EXPECT_NE(find(after(quantized_products, g), ops::dequantize_def), nullptr);
}

TEST(QuantizedProducts, ProductsBecomeIntegerOnes) {
    for (double zero : {0.0, 100.0}) {
        for (bool by_columns : {false, true}) {
            Graph g;
            Value x = g.add_input("x", {DType::U8, {3, 2, 40}});
            x = ops::dequantize(g, {}, x, ops::scalar(g, DType::F32, 0.05),
                                ops::scalar(g, DType::U8, zero));
            // The dequantised rows pass a reshape on their way.
            x = ops::reshape(g, x, {6, 40});
            Value w = random_constant(g, DType::I8, {40, 24}, -128, 127);
            Value scale = by_columns ? random_constant(g, DType::F32, {24}, 0.01, 0.1)
                                     : ops::scalar(g, DType::F32, 0.03);
            w = ops::dequantize(g, {1, 0, DType::F32}, w, scale);
            g.add_output("y", ops::dot(g, Dot{{}, {}, {1}, {0}, DType::F32}, x, w));
            Graph lowered = after(quantized_products, g);
            const Node* dot = find(lowered, dot_def);
            ASSERT_NE(dot, nullptr);
            EXPECT_EQ(dot->as<Dot>().dtype, DType::I32);
            EXPECT_EQ(find(lowered, ops::dequantize_def), nullptr);
            expect_close(g, lowered, {random_tensor(DType::U8, {3, 2, 40}, 0, 255, 3)});
        }
    }
}

/// x [5,k] by a dequantised weight [n,k] or [k,n].
Graph weight_only(DType t, int64_t block, bool columns_inside, double zero) {
    constexpr int64_t k = 65;
    constexpr int64_t n = 11;
    Graph g;
    Value x = g.add_input("x", {DType::F32, {5, k}});
    bool is_signed = t == DType::I8 || t == DType::I4;
    double most = is_float(t) ? 3 : bit_width(t) == 4 ? 15 : 255;
    Value q = random_constant(g, t, columns_inside ? Shape{k, n} : Shape{n, k},
                              is_signed ? -(most + 1) / 2 : 0, is_signed ? most / 2 : most);
    int64_t blocks = block > 0 ? (k + block - 1) / block : 1;
    Shape places = block == 0 ? Shape{n} : columns_inside ? Shape{blocks, n} : Shape{n, blocks};
    Value scale = random_constant(g, DType::F32, places, 0.01, 0.1);
    Value zeros = zero < 0 ? Value{} : random_constant(g, t, places, 0, zero + 0.5);
    int64_t depth = columns_inside ? 0 : 1;
    int64_t axis = block == 0 ? 1 - depth : depth;
    Value w = ops::dequantize(g, {axis, block, DType::F32}, q, scale, zeros);
    g.add_output("y", ops::dot(g, Dot{{}, {}, {1}, {depth}, DType::F32}, x, w));
    return g;
}

TEST(QuantizedProducts, WeightsStayPacked) {
    for (DType t : {DType::U4, DType::I4, DType::U8, DType::I8, DType::F8E4M3, DType::F8E5M2}) {
        for (int64_t block : {0, 16}) {
            for (bool columns_inside : {false, true}) {
                SCOPED_TRACE(str(t, " block ", block, columns_inside ? " [k,n]" : " [n,k]"));
                Graph g = weight_only(t, block, columns_inside, is_float(t) ? -1 : 5);
                Graph lowered = after(quantized_products, g);
                const Node* dot = find(lowered, ops::quantized_dot_def);
                ASSERT_NE(dot, nullptr);
                EXPECT_EQ(find(lowered, ops::dequantize_def), nullptr);
                const Tensor* q = lowered.constant(dot->inputs[1]);
                ASSERT_NE(q, nullptr);
                EXPECT_EQ(q->dtype(), t);
                EXPECT_EQ(q->bytes().size(), byte_size(t, 65 * 11));
                bool turned = is_packed(t) && columns_inside;
                EXPECT_EQ(q->shape(),
                          columns_inside && !turned ? (Shape{65, 11}) : (Shape{11, 65}));
                expect_close(g, lowered, {random_tensor(DType::F32, {5, 65}, -1, 1, 5)}, 1e-5);
            }
        }
    }
}

TEST(QuantizedProducts, EqualZeroPointsBecomeOne) {
    Graph g = weight_only(DType::U4, 16, false, 0);
    const Graph lowered = after(quantized_products, g);
    const Node* dot = find(lowered, ops::quantized_dot_def);
    ASSERT_NE(dot, nullptr);
    EXPECT_EQ(dot->inputs.size(), 3U) << "zero points that are all 0 are left out";
}

} // namespace
} // namespace ingot::plan
