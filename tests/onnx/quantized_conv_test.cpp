// SPDX-License-Identifier: Apache-2.0
// Convolutions of bytes whose weights have zero points: exact, and in bytes up to the product.
#include "onnx/model_builder.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::onnx::test {

namespace {

struct Problem {
    int64_t channels = 4;
    int64_t results = 6;
    int64_t groups = 1;
    std::vector<int64_t> pads = {1, 0, 2, 1}; // begin of both axes, then end
    DType x_type = DType::U8;
    DType w_type = DType::U8;
    int64_t x_zero = 117;               // 0: the model has none
    std::vector<int64_t> w_zero = {90}; // one, or one per result
    int64_t w_low = 0, w_high = 255;    // of the weights, both reached
    bool constant = true;               // weights and their zero points
};

constexpr int64_t height = 7;
constexpr int64_t width = 6;
constexpr int64_t kernel[] = {3, 2};
constexpr int64_t stride[] = {2, 1};

ingot::Tensor spread(DType t, const Shape& shape, int64_t low, int64_t high) {
    ingot::Tensor out = ingot::Tensor::empty(t, shape);
    for (int64_t i = 0; i < out.count(); ++i) {
        int64_t v = i == 0 ? low : i == 1 ? high : low + i * 7919 % (high - low + 1);
        out.mutable_bytes()[static_cast<size_t>(i)] = static_cast<std::byte>(v);
    }
    return out;
}

ingot::Tensor bytes_of(DType t, const Shape& shape, const std::vector<int64_t>& v) {
    ingot::Tensor out = ingot::Tensor::empty(t, shape);
    for (size_t i = 0; i < v.size(); ++i) {
        out.mutable_bytes()[i] = static_cast<std::byte>(v[i]);
    }
    return out;
}

/// Sum of (x - x_zero) * (w - w_zero) by its definition; elements outside x count as 0.
std::vector<double> expected(const Problem& p, const ingot::Tensor& x, const ingot::Tensor& w) {
    int64_t inner = p.channels / p.groups;
    int64_t rows = (height + p.pads[0] + p.pads[2] - kernel[0]) / stride[0] + 1;
    int64_t columns = (width + p.pads[1] + p.pads[3] - kernel[1]) / stride[1] + 1;
    auto term = [&](int64_t n, int64_t o, int64_t c, int64_t i, int64_t j, int64_t at) {
        if (i < 0 || i >= height || j < 0 || j >= width) {
            return int64_t{0};
        }
        int64_t channel = o / (p.results / p.groups) * inner + c;
        int64_t v = x.get_i64(((n * p.channels + channel) * height + i) * width + j) - p.x_zero;
        return v * (w.get_i64(at) - p.w_zero[p.w_zero.size() == 1 ? 0 : static_cast<size_t>(o)]);
    };
    std::vector<double> out;
    for (int64_t at = 0; at < 2 * p.results * rows * columns; ++at) {
        int64_t n = at / (p.results * rows * columns);
        int64_t o = at / (rows * columns) % p.results;
        int64_t top = at / columns % rows * stride[0] - p.pads[0];
        int64_t left = at % columns * stride[1] - p.pads[1];
        int64_t sum = 0;
        for (int64_t k = 0; k < inner * kernel[0] * kernel[1]; ++k) {
            int64_t c = k / (kernel[0] * kernel[1]);
            int64_t i = top + k / kernel[1] % kernel[0];
            sum += term(n, o, c, i, left + k % kernel[1], o * inner * kernel[0] * kernel[1] + k);
        }
        out.push_back(static_cast<double>(sum));
    }
    return out;
}

void expect_exact(const Problem& p) {
    Shape w_shape{p.results, p.channels / p.groups, kernel[0], kernel[1]};
    ingot::Tensor x = spread(p.x_type, {2, p.channels, height, width},
                             p.x_type == DType::U8 ? 0 : -128, p.x_type == DType::U8 ? 255 : 127);
    ingot::Tensor w = spread(p.w_type, w_shape, p.w_low, p.w_high);
    auto zeros = static_cast<int64_t>(p.w_zero.size());
    ingot::Tensor w_zero = bytes_of(p.w_type, zeros == 1 ? Shape{} : Shape{zeros}, p.w_zero);
    ingot::Tensor x_zero = bytes_of(p.x_type, {}, {p.x_zero});
    std::vector<std::string> inputs = {"x:" + std::string(name(p.x_type)) + "[2," +
                                       std::to_string(p.channels) + ",H,W]"};
    std::vector<Tensor> constants = {initializer("xz", x_zero)};
    std::vector<ingot::Tensor> in = {x};
    if (p.constant) {
        constants.push_back(initializer("w", w));
        constants.push_back(initializer("wz", w_zero));
    } else {
        inputs.push_back(str("w:", w.type()));
        inputs.push_back(str("wz:", w_zero.type()));
        in.push_back(w);
        in.push_back(w_zero);
    }
    Model m = model(graph(inputs, {"y"},
                          {node("ConvInteger", {"x", "w", p.x_zero == 0 ? "" : "xz", "wz"}, {"y"},
                                {ints_of("pads", p.pads), int_of("group", p.groups),
                                 ints_of("strides", {stride[0], stride[1]})})},
                          constants));
    ingot::Graph g = import_verified(m);
    for (const ingot::Node& n : g.nodes()) {
        if (n.is(ops::conv_def)) {
            EXPECT_EQ(bit_width(g.type(n.inputs[0]).dtype), 8) << "x is widened";
            EXPECT_EQ(bit_width(g.type(n.inputs[1]).dtype), 8) << "w is widened";
        }
    }
    EXPECT_EQ(elements(evaluate(g, in)[0]), expected(p, x, w));
}

TEST(QuantizedConv, ZeroPointsOfWeights) {
    const std::vector<int64_t> each = {0, 255, 90, 128, 1, 77};
    for (int64_t groups : {1, 2}) {
        for (const std::vector<int64_t>& w_zero : {std::vector<int64_t>{90}, each}) {
            for (int64_t x_zero : {0, 117, 255}) {
                for (bool constant : {true, false}) {
                    SCOPED_TRACE(testing::Message()
                                 << groups << " groups, " << w_zero.size() << " zero points, x's "
                                 << x_zero << (constant ? ", constant" : ""));
                    Problem p;
                    p.groups = groups;
                    p.w_zero = w_zero;
                    p.x_zero = x_zero;
                    p.constant = constant;
                    expect_exact(p);
                }
            }
        }
    }
}

TEST(QuantizedConv, OneResultOfEachChannel) {
    Problem p;
    p.channels = p.results = p.groups = 5;
    p.w_zero = {3, 200, 0, 128, 255};
    expect_exact(p);
    p.w_zero = {200};
    expect_exact(p);
}

TEST(QuantizedConv, SignedBytes) {
    Problem p;
    p.x_type = p.w_type = DType::I8;
    p.x_zero = -128;
    p.w_zero = {-128, 127, 5, 0, -1, 64};
    p.w_low = -128;
    p.w_high = 127;
    expect_exact(p);
    p.groups = 2;
    expect_exact(p);
}

TEST(QuantizedConv, DifferencesThatFitInASignedByte) {
    Problem p;
    p.w_zero = {128}; // 0 to 255 becomes -128 to 127
    expect_exact(p);
    p.w_zero = {127}; // -127 to 128: one too many
    expect_exact(p);
    p.w_low = 100;
    p.w_high = 140;
    p.w_zero = {100, 140, 120, 90, 228, 13};
    expect_exact(p);
    p.groups = 2;
    expect_exact(p);
}

} // namespace

} // namespace ingot::onnx::test
