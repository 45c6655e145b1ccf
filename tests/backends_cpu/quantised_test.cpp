// SPDX-License-Identifier: Apache-2.0
// Quantised convolutions and products: integer sums whose epilogues store bytes. Scales are powers
// of two, so that all arithmetic is exact, and halves between two bytes are common.
#include "backends/backends.h"
#include "backends/cpu/onednn_library.h"
#include "backends/cpu/simd/simd.h"
#include "backends_cpu/compare.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace ingot {

namespace {

using test::expect_same_as_evaluator;

struct Case {
    DType x = DType::I8;
    double x_zero = 0;
    DType y = DType::I8;
    double y_zero = 0;
    int64_t window = 3;
    int64_t groups = 1;
    bool relu = true;
    bool residual = false;
    double residual_zero = 0;
    bool dequantised = false; // the bytes are read as floats in the same map
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << name(c.x) << ' ' << c.x_zero << " to " << name(c.y) << ' ' << c.y_zero
               << ", window " << c.window << ", groups " << c.groups << (c.relu ? ", relu" : "")
               << (c.residual ? ", residual " : "") << c.residual_zero
               << (c.dequantised ? ", dequantised" : "");
}

constexpr int64_t channels = 24;
// A product with a single row is large enough for oneDNN.
constexpr int64_t depth = 512;
constexpr int64_t columns = 272;

/// Whole multiples of `step`.
Value multiples(Graph& g, const Shape& shape, double step, int most, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> any(-most, most);
    Tensor t = Tensor::empty(DType::F32, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, any(random) * step);
    }
    return ops::constant(g, t);
}

Value bytes(Graph& g, const Shape& shape, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> any(-127, 127);
    Tensor t = Tensor::empty(DType::I8, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_i64(i, any(random));
    }
    return ops::constant(g, t);
}

Value zero_of(Graph& g, DType t, double zero) {
    return ops::scalar_i64(g, t, static_cast<int64_t>(zero));
}

/// Scales of channels: 1/32 or 1/64.
Value scales(Graph& g, int64_t count) {
    Tensor t = Tensor::empty(DType::F32, {count});
    for (int64_t i = 0; i < count; ++i) {
        t.set_f64(i, i % 3 == 0 ? 0x1p-5 : 0x1p-6);
    }
    return ops::constant(g, t);
}

/// The case's steps after the product's result y, with channels along axis 1.
void finish(Graph& g, const Case& c, Value y, const Shape& bias) {
    y = ops::add(g, y, multiples(g, bias, 0x1p-9, 3000, 3));
    Value scale = ops::scalar(g, DType::F32, 0x1p-2);
    if (c.residual) {
        Dims d = g.type(y).dims;
        bool conv = d.size() == 4; // whose results lie channels last in memory
        Value other = g.add_input("other", {c.y, conv ? Dims{d[0], d[2], d[3], d[1]} : d});
        other = conv ? ops::permute(g, other, {0, 3, 1, 2}) : other;
        y = ops::add(g, y, ops::dequantize(g, {}, other, scale, zero_of(g, c.y, c.residual_zero)));
    }
    y = c.relu ? ops::maximum(g, y, 0.0) : y;
    Value out = ops::quantize(g, {1, 0, c.y}, y, ops::scalar(g, DType::F32, 0x1p-1),
                              zero_of(g, c.y, c.y_zero));
    if (c.dequantised) {
        out = ops::dequantize(g, {}, out, scale, zero_of(g, c.y, c.y_zero));
    }
    g.add_output("y", out);
}

Graph conv_of(const Case& c) {
    Graph g;
    Value x = g.add_input("x", {c.x, {2, channels, 9, 7}});
    x = ops::dequantize(g, {}, x, ops::scalar(g, DType::F32, 0x1p-4), zero_of(g, c.x, c.x_zero));
    Value w = bytes(g, {channels, channels / c.groups, c.window, c.window}, 2);
    w = ops::dequantize(g, {0, 0, DType::F32}, w, scales(g, channels));
    int64_t pad = c.window / 2;
    Value y = ops::conv(g, {{1, 1}, {1, 1}, {pad, pad}, {pad, pad}, c.groups, DType::F32}, x, w);
    finish(g, c, y, {channels, 1, 1});
    return g;
}

Graph product_of(const Case& c, int64_t rows) {
    Graph g;
    Value x = g.add_input("x", {c.x, {rows, depth}});
    x = ops::dequantize(g, {}, x, ops::scalar(g, DType::F32, 0x1p-4), zero_of(g, c.x, c.x_zero));
    Value w = bytes(g, {depth, columns}, 4);
    w = ops::dequantize(g, {1, 0, DType::F32}, w, scales(g, columns));
    finish(g, c, ops::matmul(g, x, w), {columns});
    return g;
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (DType t : {DType::I8, DType::U8}) {
        double low = t == DType::I8 ? -128 : 0;
        // An odd zero point rounds halves the other way than a store does.
        for (double zero : {0.0, low, low + 3, low + 128}) {
            all.push_back({.x = t, .x_zero = zero, .y = t, .y_zero = zero});
            all.push_back({.x = t, .y = t, .y_zero = zero, .window = 1, .relu = false});
            all.push_back({.x = t, .y = t, .y_zero = zero, .groups = channels});
            all.push_back({.x = t, .x_zero = zero, .y = t, .residual = true});
            all.push_back({.x = t, .y = t, .residual = true, .residual_zero = zero});
            all.push_back({.x = t, .x_zero = zero, .y = t, .y_zero = zero, .dequantised = true});
        }
    }
    all.push_back({.x = DType::U8, .y = DType::I8, .window = 1});
    all.push_back({.x = DType::I8, .y = DType::U8, .groups = 3});
    return all;
}

TEST(CpuQuantised, ConvolutionsAreExact) {
    for (const Case& c : cases()) {
        SCOPED_TRACE(testing::Message() << c);
        expect_same_as_evaluator(conv_of(c));
    }
}

TEST(CpuQuantised, ProductsAreExact) {
    for (const Case& c : cases()) {
        for (int64_t rows : {1, 7}) {
            SCOPED_TRACE(testing::Message() << c << ", rows " << rows);
            expect_same_as_evaluator(product_of(c, rows));
        }
    }
}

/// A product by a weight of bytes whose zero points signed bytes cannot hold, perhaps permuted.
Graph product_of_shifted(DType t, const std::vector<int64_t>& zeros, bool permuted) {
    Graph g;
    Value x = g.add_input("x", {DType::U8, {2, 5, depth}});
    x = ops::dequantize(g, {}, x, ops::scalar(g, DType::F32, 0x1p-4),
                        ops::scalar_i64(g, DType::U8, 7));
    std::mt19937 random(5);
    Tensor stored = Tensor::empty(t, permuted ? Shape{columns, depth} : Shape{depth, columns});
    for (int64_t i = 0; i < stored.count(); ++i) {
        stored.set_i64(i, static_cast<int64_t>(random() % 256) - (t == DType::I8 ? 128 : 0));
    }
    Value w = ops::constant(g, stored);
    w = permuted ? ops::permute(g, w, {1, 0}) : w;
    bool one = zeros.size() == 1;
    Tensor zero = Tensor::empty(t, one ? Shape{} : Shape{columns});
    for (int64_t i = 0; i < zero.count(); ++i) {
        zero.set_i64(i, zeros[static_cast<size_t>(i) % zeros.size()]);
    }
    Value scale = one ? ops::scalar(g, DType::F32, 0x1p-6) : scales(g, columns);
    w = ops::dequantize(g, {1, 0, DType::F32}, w, scale, ops::constant(g, zero));
    g.add_output("y", ops::matmul(g, x, w));
    return g;
}

TEST(CpuQuantised, WeightsWithZeroPointsMultiplyAsBytes) {
    for (DType t : {DType::U8, DType::I8}) {
        for (bool permuted : {false, true}) {
            int64_t low = t == DType::I8 ? -128 : 0;
            for (const std::vector<int64_t>& zeros :
                 {std::vector{low + 100}, std::vector{low + 255}, std::vector{low, low + 60}}) {
                SCOPED_TRACE(testing::Message() << name(t) << (permuted ? ", permuted, " : ", ")
                                                << zeros.size() << " from " << zeros[0]);
                Graph g = product_of_shifted(t, zeros, permuted);
                expect_same_as_evaluator(g);
                for (const StepInfo& s : test::planned_steps(g)) {
                    if (s.kernel == "dot") {
                        EXPECT_EQ(s.inputs[1].substr(0, 2), "i8") << s.inputs[1];
                    }
                }
            }
        }
    }
}

TEST(CpuQuantised, LongMapsRunOverTheSums) {
    Graph g;
    Value x = g.add_input("x", {DType::I8, {1, channels, 40, 40}});
    x = ops::dequantize(g, {}, x, ops::scalar(g, DType::F32, 0x1p-4));
    Value w = bytes(g, {channels, channels, 1, 1}, 2);
    w = ops::dequantize(g, {0, 0, DType::F32}, w, scales(g, channels));
    Value y = ops::conv(g, {{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, DType::F32}, x, w);
    for (unsigned i = 0; i < 20; ++i) { // more than oneDNN takes
        Tensor t = Tensor::empty(DType::I64, {channels, 1, 1});
        for (int64_t k = 0; k < channels; ++k) {
            t.set_i64(k, k % 7 - static_cast<int64_t>(i % 5));
        }
        y = ops::add(g, y, ops::cast(g, ops::constant(g, t), DType::F32));
    }
    g.add_output("y", ops::quantize(g, {1, 0, DType::I8}, y, ops::scalar(g, DType::F32, 0x1p-1)));
    expect_same_as_evaluator(g);
}

/// The steps of a plan: "conv onednn brgconv:avx512_core_vnni"; copies of inputs are left out.
std::vector<std::string> steps_of(const Graph& g) {
    std::vector<std::string> out;
    for (const StepInfo& s : test::planned_steps(g)) {
        if (s.kernel != "copy") {
            out.push_back(s.kernel + ' ' + s.implementation);
        }
    }
    return out;
}

TEST(CpuQuantised, OneStepMultipliesAddsAndStores) {
    if (cpu::onednn_library() == nullptr ||
        cpu::instruction_set() != cpu::InstructionSet::Avx512Vnni) {
        GTEST_SKIP() << "no library, or no instructions that multiply bytes exactly";
    }
    for (const Case& c :
         {Case{}, Case{.y = DType::U8}, Case{.residual = true},
          Case{.x = DType::U8, .x_zero = 7, .y = DType::U8, .y_zero = 113, .window = 1}}) {
        SCOPED_TRACE(testing::Message() << c);
        for (const Graph& g : {conv_of(c), product_of(c, 20)}) {
            std::vector<std::string> steps = steps_of(g);
            EXPECT_EQ(steps.size(), c.x_zero == 0 || c.window == 1 ? 1U : 2U);
            EXPECT_NE(steps.back().find("onednn"), std::string::npos) << steps.back();
            EXPECT_EQ(steps.back().find("then a map"), std::string::npos) << steps.back();
        }
    }
}

} // namespace

} // namespace ingot
