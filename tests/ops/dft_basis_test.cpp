// SPDX-License-Identifier: Apache-2.0
#include "ops/dft_basis.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <random>

namespace ingot {

namespace {

constexpr double turn = 2 * std::numbers::pi;

/// rows x columns elements of f.
std::vector<float> matrix(int64_t rows, int64_t columns,
                          const std::function<double(int64_t, int64_t)>& f) {
    std::vector<float> out;
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
            out.push_back(static_cast<float>(f(i, j)));
        }
    }
    return out;
}

bool is_basis(const std::vector<float>& m, const Shape& shape) {
    return is_dft_basis(m.data(), shape, strides_of(shape));
}

double hann(int64_t i, int64_t n) {
    return 0.5 - 0.5 * std::cos(turn * static_cast<double>(i) / static_cast<double>(n));
}

double angle(int64_t k, int64_t i, int64_t n) {
    return turn * static_cast<double>(k) * static_cast<double>(i) / static_cast<double>(n);
}

TEST(DftBasis, CosinesAndSinesOfEverySize) {
    for (int64_t n : {8, 15, 16, 64, 255, 256, 400, 2048}) {
        int64_t bins = n / 2 + 1;
        auto cosines = [&](int64_t k, int64_t i) { return std::cos(angle(k, i, n)); };
        auto sines = [&](int64_t k, int64_t i) { return std::sin(angle(k, i, n)); };
        EXPECT_TRUE(is_basis(matrix(bins, n, cosines), {bins, n})) << n;
        EXPECT_TRUE(is_basis(matrix(bins, n, sines), {bins, n})) << n;
        EXPECT_TRUE(is_basis(matrix(n, bins, cosines), {n, bins})) << n << ", samples first";
        EXPECT_TRUE(is_basis(matrix(n, bins, sines), {n, bins})) << n << ", samples first";
    }
}

/// The weights of convolutions that make spectrograms: windowed, cosines above sines or
/// alternating.
TEST(DftBasis, WindowedRowsOfAConvolution) {
    int64_t n = 256;
    int64_t bins = n / 2 + 1;
    auto stacked = [&](int64_t row, int64_t i) {
        return hann(i, n) *
               (row < bins ? std::cos(angle(row, i, n)) : -std::sin(angle(row - bins, i, n)));
    };
    EXPECT_TRUE(is_basis(matrix(2 * bins, n, stacked), {2 * bins, 1, n}));
    auto alternating = [&](int64_t row, int64_t i) {
        double a = angle(row / 2, i, n);
        return hann(i, n) * (row % 2 == 0 ? std::cos(a) : std::sin(a));
    };
    EXPECT_TRUE(is_basis(matrix(2 * bins, n, alternating), {2 * bins, 1, 1, n}));
    auto padded = [&](int64_t k, int64_t i) {
        return i < 56 || i >= 200 ? 0 : hann(i - 56, 144) * std::cos(angle(k, i - 56, n));
    };
    EXPECT_TRUE(is_basis(matrix(bins, n, padded), {bins, 1, n})) << "a window of 144 samples";
}

TEST(DftBasis, InverseAndCosineTransforms) {
    int64_t n = 64;
    int64_t bins = n / 2 + 1;
    auto inverse = [&](int64_t k, int64_t i) {
        double weight = (k == 0 || k == n / 2 ? 1.0 : 2.0) / static_cast<double>(n);
        return weight * std::cos(angle(k, i, n));
    };
    EXPECT_TRUE(is_basis(matrix(bins, n, inverse), {bins, n}));
    auto dct = [&](int64_t k, int64_t i) {
        return std::cos(turn * static_cast<double>(k) * (static_cast<double>(i) + 0.5) / 160);
    };
    EXPECT_TRUE(is_basis(matrix(13, 80, dct), {13, 80}));
}

TEST(DftBasis, OtherMatricesAreRefused) {
    std::mt19937 random(1);
    std::normal_distribution<double> normal;
    auto any = [&](int64_t, int64_t) { return normal(random); };
    EXPECT_FALSE(is_basis(matrix(64, 64, any), {64, 64}));
    EXPECT_FALSE(is_basis(matrix(4, 8, any), {4, 8}));
    EXPECT_FALSE(is_basis(matrix(64, 64, [](auto, auto) { return 0; }), {64, 64})) << "zeros";
    EXPECT_FALSE(is_basis(matrix(64, 64, [](auto, auto) { return 3; }), {64, 64})) << "equal";
    EXPECT_FALSE(is_basis(matrix(64, 64, [](auto i, auto j) { return i == j; }), {64, 64}));
    EXPECT_FALSE(is_basis(matrix(64, 64, [](auto i, auto j) { return i * j; }), {64, 64}))
        << "ramps";
    EXPECT_FALSE(is_basis(
        matrix(64, 64, [](auto i, auto) { return std::cos(0.1 * static_cast<double>(i)); }),
        {64, 64}))
        << "one column again and again";
    auto mel = [](int64_t i, int64_t j) {
        return std::max(0.0,
                        1 - std::abs(static_cast<double>(j) - 3.0 * static_cast<double>(i)) / 3);
    };
    EXPECT_FALSE(is_basis(matrix(40, 129, mel), {40, 129})) << "triangles of a mel filter";
    auto noisy = [&](int64_t k, int64_t i) {
        return std::cos(angle(k, i, 64)) + 0.05 * normal(random);
    };
    EXPECT_FALSE(is_basis(matrix(33, 64, noisy), {33, 64})) << "5 % off";
    auto cosines = [&](int64_t k, int64_t i) { return std::cos(angle(k, i, 64)); };
    EXPECT_FALSE(is_basis(matrix(3, 64, cosines), {3, 64})) << "too few frequencies";
    EXPECT_FALSE(is_basis(matrix(32, 64, cosines), {32, 8, 8})) << "three axes";
}

TEST(DftBasis, NodesThatMultiplyByOne) {
    auto basis = [](const Shape& shape) {
        Tensor t = Tensor::empty(DType::F32, shape);
        auto cosines = [&](int64_t k, int64_t i) { return std::cos(angle(k, i, 64)); };
        std::ranges::copy(matrix(33, 64, cosines), t.as_mutable<float>().begin());
        return t;
    };
    Graph g;
    Value x = g.add_input("x", {DType::F32, {5, 33}});
    Value y = ops::matmul(g, x, ops::constant(g, basis({33, 64})));
    EXPECT_TRUE(multiplies_by_dft_basis(g, *g.producer(y)));
    Value sum = ops::add(g, y, ops::constant(g, Tensor::scalar(DType::F32, 1)));
    EXPECT_FALSE(multiplies_by_dft_basis(g, *g.producer(sum)));
    Value variable = g.add_input("w", {DType::F32, {33, 64}});
    EXPECT_FALSE(multiplies_by_dft_basis(g, *g.producer(ops::matmul(g, x, variable))));
    Value signal = g.add_input("s", {DType::F32, {1, 1, 640}});
    ops::Conv conv{{16}, {1}, {Dim(0)}, {Dim(0)}, 1, DType::F32};
    Value frames = ops::conv(g, conv, signal, ops::constant(g, basis({33, 1, 64})));
    EXPECT_TRUE(multiplies_by_dft_basis(g, *g.producer(frames)));
}

} // namespace

} // namespace ingot
