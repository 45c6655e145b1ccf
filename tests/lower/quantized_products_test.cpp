// SPDX-License-Identifier: Apache-2.0
#include "lower/passes.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
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

// --- f8e4m3

Graph with_f8(const Graph& g, bool has_f8 = true) {
    PassOptions facts;
    facts.f8_products = has_f8;
    return run_pass(quantized_products(cuda::cuda_kernels()), g, facts);
}

Value dequantised_f8(Graph& g, Value q, Value scale, int64_t axis = 0, Value zero = {}) {
    return ops::dequantize(g, {axis, 0, DType::F32}, q, scale, zero);
}

struct F8Dot {
    int64_t depth = 64;
    bool by_columns = true;
    bool constant_weight = true;
    bool constant_scales = true;
    bool scaled_rows = false;
    double zero = 0;
};

Graph dot_of(const F8Dot& c) {
    Graph g;
    Value x = g.add_input("x", {DType::F8E4M3, {3, Dim::symbol("N"), c.depth}});
    Value rows =
        c.constant_scales ? ops::scalar(g, DType::F32, 0.05) : g.add_input("s", {DType::F32, {}});
    rows = c.scaled_rows ? random_constant(g, DType::F32, {3}, 0.01, 0.1) : rows;
    x = dequantised_f8(g, x, rows, 0, ops::scalar(g, DType::F8E4M3, c.zero));
    Value w = c.constant_weight ? random_constant(g, DType::F8E4M3, {c.depth, 24}, -448, 448)
                                : g.add_input("w", {DType::F8E4M3, {c.depth, 24}});
    Value scale = c.by_columns ? random_constant(g, DType::F32, {24}, 0.001, 0.01)
                               : ops::scalar(g, DType::F32, 0.003);
    w = dequantised_f8(g, w, scale, 1);
    g.add_output("y", ops::dot(g, Dot{{}, {}, {2}, {0}, DType::F32}, x, w));
    return g;
}

std::vector<Tensor> inputs_of(const F8Dot& c) {
    std::vector<Tensor> in = {random_tensor(DType::F8E4M3, {3, 5, c.depth}, -448, 448, 9)};
    if (!c.constant_scales) {
        in.push_back(random_tensor(DType::F32, {}, 0.01, 0.1, 11));
    }
    if (!c.constant_weight) {
        in.push_back(random_tensor(DType::F8E4M3, {c.depth, 24}, -448, 448, 10));
    }
    return in;
}

bool multiplies_f8(const Graph& g, const OpDef& def) {
    const Node* n = find(g, def);
    return n != nullptr && g.type(n->inputs[0]).dtype == DType::F8E4M3 &&
           g.type(n->inputs[1]).dtype == DType::F8E4M3 &&
           g.type(n->outputs[0]).dtype == DType::F32 && find(g, ops::dequantize_def) == nullptr;
}

TEST(QuantizedProducts, ProductsOfF8BecomeThose) {
    for (const F8Dot& c : {F8Dot{}, F8Dot{.by_columns = false}, F8Dot{.constant_weight = false},
                           F8Dot{.constant_scales = false}, F8Dot{.scaled_rows = true},
                           F8Dot{.depth = 67, .by_columns = false, .constant_scales = false}}) {
        Graph g = dot_of(c);
        Graph lowered = with_f8(g);
        EXPECT_TRUE(multiplies_f8(lowered, dot_def));
        expect_close(g, lowered, inputs_of(c));
        EXPECT_EQ(find(run_pass(quantized_products(cuda::cuda_kernels()), lowered, {}),
                       ops::dequantize_def),
                  nullptr);
    }
}

TEST(QuantizedProducts, ProductsOfF8StayWhereNothingIsGained) {
    EXPECT_FALSE(multiplies_f8(with_f8(dot_of({.depth = 63})), dot_def)) << "few products";
    EXPECT_FALSE(multiplies_f8(with_f8(dot_of({.zero = 1})), dot_def)) << "a zero point";
    EXPECT_FALSE(multiplies_f8(with_f8(dot_of({}), false), dot_def)) << "no such products";
    EXPECT_NE(find(with_f8(dot_of({}), false), ops::quantized_dot_def), nullptr);
}

// Scores of attention: both operands are computed, a head is a batch.
TEST(QuantizedProducts, ProductsOfF8MayHaveBatches) {
    Graph g;
    Dim n = Dim::symbol("N");
    Value a = g.add_input("a", {DType::F8E4M3, {2, n, 3, 64}});
    Value b = g.add_input("b", {DType::F8E4M3, {2, n, 3, 64}});
    a = dequantised_f8(g, a, ops::scalar(g, DType::F32, 0.25));
    b = dequantised_f8(g, b, ops::scalar(g, DType::F32, 0.125));
    a = ops::permute(g, a, {0, 2, 1, 3});
    b = ops::permute(g, b, {0, 2, 3, 1});
    g.add_output("y", ops::dot(g, Dot{{0, 1}, {0, 1}, {3}, {2}, DType::F32}, a, b));
    Graph lowered = with_f8(g);
    EXPECT_TRUE(multiplies_f8(lowered, dot_def));
    expect_close(g, lowered,
                 {random_tensor(DType::F8E4M3, {2, 7, 3, 64}, -9, 9, 1),
                  random_tensor(DType::F8E4M3, {2, 7, 3, 64}, -9, 9, 2)});
    // A scale along the summed axis, or along a batch, does not come out of the sums.
    for (int64_t axis : {0, 3}) {
        Graph h;
        Value x = h.add_input("x", {DType::F8E4M3, {2, 5, 3, 64}});
        Value y = dequantised_f8(h, h.add_input("y", {DType::F8E4M3, {2, 64, 4}}),
                                 ops::scalar(h, DType::F32, 2));
        x = dequantised_f8(h, x, random_constant(h, DType::F32, {axis == 0 ? 2 : 64}, 0.1, 1),
                           axis);
        h.add_output("z", ops::dot(h, Dot{{0}, {0}, {3}, {1}, DType::F32}, x, y));
        EXPECT_FALSE(multiplies_f8(with_f8(h), dot_def)) << axis;
    }
}

struct F8Conv {
    int64_t channels = 32;
    int64_t groups = 1;
    bool by_channel = true;
    int64_t axis = 0;
};

Graph conv_of(const F8Conv& c) {
    Graph g;
    Value x = g.add_input("x", {DType::F8E4M3, {Dim::symbol("N"), c.channels * c.groups, 7, 6}});
    x = dequantised_f8(g, x, ops::scalar(g, DType::F32, 0.05));
    Value w = random_constant(g, DType::F8E4M3, {128, c.channels, 3, 3}, -448, 448);
    Shape places = c.axis == 0 ? Shape{128} : Shape{c.channels};
    Value scale = c.by_channel ? random_constant(g, DType::F32, places, 0.001, 0.01)
                               : ops::scalar(g, DType::F32, 0.02);
    w = dequantised_f8(g, w, scale, c.axis);
    g.add_output("y", ops::conv(g, {{1, 2}, {1, 1}, {1, 1}, {1, 0}, c.groups, DType::F32}, x, w));
    return g;
}

TEST(QuantizedProducts, ConvolutionsOfF8BecomeThose) {
    for (const F8Conv& c :
         {F8Conv{}, F8Conv{.by_channel = false}, F8Conv{.channels = 64, .groups = 2}}) {
        Graph g = conv_of(c);
        Graph lowered = with_f8(g);
        EXPECT_TRUE(multiplies_f8(lowered, ops::conv_def));
        expect_close(
            g, lowered,
            {random_tensor(DType::F8E4M3, {2, c.channels * c.groups, 7, 6}, -448, 448, 7)});
        Graph in_floats = with_f8(g, false);
        EXPECT_FALSE(multiplies_f8(in_floats, ops::conv_def));
        const Node* conv = find(in_floats, ops::conv_def);
        const Tensor* w = in_floats.constant(conv->inputs[1]);
        ASSERT_NE(w, nullptr) << "dequantised in each run";
        EXPECT_EQ(w->dtype(), DType::F32);
    }
    for (const F8Conv& c :
         {F8Conv{.channels = 24}, F8Conv{.channels = 32, .groups = 2}, F8Conv{.axis = 1}}) {
        EXPECT_FALSE(multiplies_f8(with_f8(conv_of(c)), ops::conv_def))
            << c.channels << " channels, " << c.groups << " groups, axis " << c.axis;
    }
}

TEST(QuantizedProducts, ConvolutionsOfFewChannelsMultiplyWholeFloats) {
    for (const F8Conv& c : {F8Conv{.channels = 3}, F8Conv{.channels = 1, .by_channel = false}}) {
        Graph g = conv_of(c);
        Graph lowered = with_f8(g);
        const Node* conv = find(lowered, ops::conv_def);
        EXPECT_EQ(lowered.type(conv->inputs[0]).dtype, DType::F16);
        EXPECT_EQ(lowered.type(conv->inputs[1]).dtype, DType::F16);
        EXPECT_EQ(lowered.type(conv->outputs[0]).dtype, DType::F32);
        expect_close(g, lowered,
                     {random_tensor(DType::F8E4M3, {2, c.channels, 7, 6}, -448, 448, 7)});
    }
    for (double zero : {0.0, 131.0}) {
        Graph g;
        Value x = g.add_input("x", {DType::U8, {2, 3, 9, 8}});
        x = ops::dequantize(g, {}, x, ops::scalar(g, DType::F32, 0.05),
                            ops::scalar(g, DType::U8, zero));
        Value w = random_constant(g, DType::I8, {16, 3, 7, 7}, -128, 127);
        w = ops::dequantize(g, {0, 0, DType::F32}, w,
                            random_constant(g, DType::F32, {16}, 0.01, 0.1));
        g.add_output("y", ops::conv(g, {{2, 2}, {1, 1}, {3, 3}, {3, 3}, 1, DType::F32}, x, w));
        Graph lowered = after(quantized_products, g);
        const Node* conv = find(lowered, ops::conv_def);
        EXPECT_EQ(lowered.type(conv->inputs[0]).dtype, DType::F16);
        EXPECT_EQ(lowered.type(conv->inputs[1]).dtype, DType::F16);
        EXPECT_EQ(find(lowered, pad_def), nullptr);
        expect_close(g, lowered, {random_tensor(DType::U8, {2, 3, 9, 8}, 0, 255, 7)});
    }
}

// --- bytes that stay

struct Requantised {
    DType type = DType::I8;
    DType between = DType::F32;
    double scale = 0.05; // of the quantisation; 0.05 was that of the bytes
    double zero = 3;
    bool pools = true;
};

Graph requantised(const Requantised& c) {
    Graph g;
    Value q = g.add_input("x", {c.type, {2, 3, 6, 6}});
    bool whole = is_integer(c.type);
    Value zero = ops::scalar(g, c.type, whole ? 3 : 0);
    Value x = ops::dequantize(g, {}, q, ops::scalar(g, DType::F32, 0.05), zero);
    x = ops::cast(g, x, c.between);
    if (c.pools) {
        x = ops::pool(g, {"max", {2, 2}, {2, 2}, {1, 1}, {1, 0}, {0, 0}, {0, 0}, false}, x);
    }
    x = ops::permute(g, ops::concat(g, std::array{x, x}, 1), {0, 2, 3, 1});
    x = ops::cast(g, x, DType::F32);
    Value own = ops::scalar(g, c.type, whole ? c.zero : 0);
    g.add_output(
        "y", ops::quantize(g, {0, 0, c.type, true}, x, ops::scalar(g, DType::F32, c.scale), own));
    return g;
}

TEST(QuantizedProducts, BytesQuantisedAsBeforeStay) {
    for (const Requantised& c :
         {Requantised{}, Requantised{.type = DType::U8}, Requantised{.between = DType::F16},
          Requantised{.type = DType::F8E4M3, .pools = false}}) {
        Graph g = requantised(c);
        Graph lowered = after(quantized_products, g);
        EXPECT_EQ(find(lowered, ops::dequantize_def), nullptr);
        EXPECT_EQ(find(lowered, ops::quantize_def), nullptr);
        bool is_signed = c.type == DType::I8;
        Tensor in = c.type == DType::F8E4M3
                        ? random_tensor(c.type, {2, 3, 6, 6}, -448, 448, 3)
                        : random_tensor(c.type, {2, 3, 6, 6}, is_signed ? -128 : 0,
                                        is_signed ? 127 : 255, 3);
        EXPECT_EQ(evaluate(g, std::array{in})[0], evaluate(lowered, std::array{in})[0]);
    }
    for (const Requantised& c :
         {Requantised{.scale = 0.06}, Requantised{.zero = 4}, Requantised{.between = DType::BF16},
          Requantised{.type = DType::F8E4M3}, Requantised{.type = DType::I16}}) {
        EXPECT_NE(find(after(quantized_products, requantised(c)), ops::quantize_def), nullptr);
    }
}

// The reason for the rule: no rounding between leads to another byte.
TEST(QuantizedProducts, EveryByteComesBackThroughFloats) {
    std::mt19937 rng(std::random_device{}());
    std::uniform_real_distribution<double> exponents(-3, 2);
    for (DType type : {DType::I8, DType::U8, DType::F8E4M3}) {
        for (int i = 0; i < 40; ++i) {
            auto scale = static_cast<float>(std::pow(10, exponents(rng)));
            Graph g;
            Value s = ops::constant(g, Tensor::scalar(DType::F32, scale));
            Value x = g.add_input("x", {type, {256}});
            Value y = ops::dequantize(g, {0, 0, i % 2 == 0 ? DType::F32 : DType::F16}, x, s);
            g.add_output("y", ops::quantize(g, {0, 0, type, true}, y, s));
            Tensor bytes = Tensor::empty(type, {256});
            for (size_t b = 0; b < 256; ++b) {
                bool none = type == DType::F8E4M3 && (b & 127) == 127;
                bytes.mutable_bytes()[b] = static_cast<std::byte>(none ? 0 : b);
            }
            EXPECT_EQ(evaluate(g, std::array{bytes})[0], bytes) << str(type, " scale ", scale);
        }
    }
}

} // namespace
} // namespace ingot::plan
