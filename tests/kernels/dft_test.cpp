// SPDX-License-Identifier: Apache-2.0
// Products by matrices of Fourier transforms keep f32 where other products may use TF32.
#include "kernels/harness.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

namespace ingot::test {

namespace {

constexpr int64_t samples = 64;
constexpr int64_t bins = 33;

Tensor filled(const Shape& shape, const std::function<double(int64_t)>& f) {
    Tensor t = Tensor::empty(DType::F32, shape);
    for (int64_t i = 0; i < t.count(); ++i) {
        t.set_f64(i, f(i));
    }
    return t;
}

/// Element i of windowed cosines, bins x samples.
double cosine(int64_t i) {
    constexpr double turn = 2 * std::numbers::pi / samples;
    int64_t bin = i / samples;
    auto n = static_cast<double>(i % samples);
    auto k = static_cast<double>(bin);
    return (0.5 - 0.5 * std::cos(turn * n)) * std::cos(turn * k * n);
}

/// Tensor cores take f32 as TF32 alone.
bool uses_tensor_cores(const BackendRun& run) {
    return std::any_of(run.implementations.begin(), run.implementations.end(), [](const auto& s) {
        return s.find("mma") != std::string::npos || s.find("stem") != std::string::npos;
    });
}

Graph product(const Tensor& basis) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {96, samples}});
    Value w = ops::transpose_last(g, ops::constant(g, basis));
    g.add_output("y", ops::matmul(g, x, w));
    return g;
}

Graph spectrogram(const Tensor& basis) {
    Graph g;
    Value x = g.add_input("x", {DType::F32, {1, 1, 1024}});
    ops::Conv conv{{16}, {1}, {Dim(0)}, {Dim(0)}, 1, DType::F32};
    Value w = ops::constant(g, basis);
    Value y = ops::conv(g, conv, x, w);
    g.add_output("y", ops::mul(g, y, y));
    return g;
}

TEST(Dft, ProductsKeepF32) {
    Graph exact = product(filled({bins, samples}, cosine));
    BackendRun run = expect_backend(exact, {.tolerance = 2e-6});
    EXPECT_FALSE(uses_tensor_cores(run)) << join(run.implementations, ", ");
    Graph squares = spectrogram(filled({bins, 1, samples}, cosine));
    run = expect_backend(squares, {.tolerance = 2e-6});
    EXPECT_FALSE(uses_tensor_cores(run)) << join(run.implementations, ", ");
}

/// The same shapes with other weights take TF32, or the test above would show nothing.
TEST(Dft, OtherProductsMayUseTf32) {
    auto uneven = [](int64_t i) { return cosine(i * 7919 % (bins * samples)); };
    BackendRun run = expect_backend(product(filled({bins, samples}, uneven)), {.tolerance = 4e-3});
    EXPECT_TRUE(uses_tensor_cores(run)) << join(run.implementations, ", ");
    run = expect_backend(spectrogram(filled({bins, 1, samples}, uneven)), {.tolerance = 1e-2});
    EXPECT_TRUE(uses_tensor_cores(run)) << join(run.implementations, ", ");
}

} // namespace

} // namespace ingot::test
