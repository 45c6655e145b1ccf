// SPDX-License-Identifier: Apache-2.0
// Results that the backend suite does not compare: random numbers, long transforms, determinants,
// sparse constants.
#include "onnx/model_builder.h"

#include <cmath>
#include <numeric>

namespace ingot::onnx::test {

namespace {

using V = std::vector<double>;
using Nodes = std::vector<Node>;

std::vector<ingot::Tensor> run(const Model& m, const std::vector<ingot::Tensor>& in) {
    return evaluate(import_verified(m), in);
}

TEST(Constants, SparseBecomesDense) {
    Attribute a = attribute("sparse_value", AttributeType::SparseTensor);
    a.sparse_tensor = std::make_shared<SparseTensor>();
    a.sparse_tensor->values = initializer("v", floats({2}, {5, 7}));
    a.sparse_tensor->indices = initializer("i", integers({2, 2}, {0, 2, 1, 0}));
    a.sparse_tensor->dims = {2, 3};
    Model m = model(graph({}, {"y"}, {node("Constant", {}, {"y"}, {a})}));
    EXPECT_EQ(elements(run(m, {})[0]), (V{0, 0, 5, 7, 0, 0}));
}

TEST(Random, IsRepeatableAndDistributedAsAsked) {
    Nodes nodes = {node("RandomNormal", {}, {"n"}, {ints_of("shape", {4000})}),
                   node("RandomNormal", {}, {"other"}, {ints_of("shape", {4000})}),
                   node("Bernoulli", {"p"}, {"b"}),
                   node("Multinomial", {"l"}, {"k"}, {int_of("sample_size", 4000)})};
    Model m = model(
        graph({}, {"n", "other", "b", "k"}, nodes,
              {initializer("p", floats({4000}, V(4000, 0.25))),
               initializer("l", floats({1, 3}, {std::log(0.5), std::log(0.2), std::log(0.3)}))}));
    auto first = run(m, {});
    auto second = run(m, {});
    EXPECT_TRUE(first[0] == second[0]);
    EXPECT_FALSE(first[0] == first[1]);
    V n = elements(first[0]);
    double mean = std::accumulate(n.begin(), n.end(), 0.0) / 4000;
    double square = std::inner_product(n.begin(), n.end(), n.begin(), 0.0) / 4000;
    EXPECT_NEAR(mean, 0, 0.06);
    EXPECT_NEAR(square - mean * mean, 1, 0.1);
    V b = elements(first[2]);
    EXPECT_NEAR(std::accumulate(b.begin(), b.end(), 0.0) / 4000, 0.25, 0.03);
    V k = elements(first[3]);
    EXPECT_NEAR(static_cast<double>(std::count(k.begin(), k.end(), 0.0)) / 4000, 0.5, 0.03);
    EXPECT_NEAR(static_cast<double>(std::count(k.begin(), k.end(), 2.0)) / 4000, 0.3, 0.03);
    EXPECT_EQ(first[3].dtype(), DType::I32);
}

// A long transform is split into short ones; each bin is checked against the definition.
void expect_dft(int64_t n) {
    V x(static_cast<size_t>(n));
    for (size_t i = 0; i < x.size(); ++i) {
        x[i] = std::sin(0.1 * static_cast<double>(i * i % 97)) + (i % 5 == 0 ? 1 : 0);
    }
    Model m = model(graph({"x:f32[1," + std::to_string(n) + ",1]"}, {"y"},
                          {node("DFT", {"x"}, {"y"}, {int_of("onesided", 1)})}),
                    20);
    ingot::Tensor y = run(m, {floats({1, n, 1}, x)})[0];
    ASSERT_EQ(y.shape(), (Shape{1, n / 2 + 1, 2}));
    for (int64_t k : {int64_t{0}, int64_t{1}, n / 7, n / 3, n / 2}) {
        double re = 0;
        double im = 0;
        for (int64_t t = 0; t < n; ++t) {
            double angle = -2 * M_PI * static_cast<double>(k * t % n) / static_cast<double>(n);
            re += x[static_cast<size_t>(t)] * std::cos(angle);
            im += x[static_cast<size_t>(t)] * std::sin(angle);
        }
        EXPECT_NEAR(y.get_f64(2 * k), re, 1e-2) << n << " " << k;
        EXPECT_NEAR(y.get_f64(2 * k + 1), im, 1e-2) << n << " " << k;
    }
}

TEST(Dft, LongTransforms) {
    expect_dft(1200);
    expect_dft(1024);
    expect_dft(1031);
    expect_dft(1030);
}

TEST(Dft, InverseUndoesIt) {
    V x;
    for (int i = 0; i < 2 * 900; ++i) {
        x.push_back(static_cast<double>(i * 7 % 13) - 6);
    }
    Model m =
        model(graph({"x:f32[2,900,1]"}, {"y"},
                    {node("DFT", {"x"}, {"f"}), node("DFT", {"f"}, {"y"}, {int_of("inverse", 1)})}),
              20);
    ingot::Tensor y = run(m, {floats({2, 900, 1}, x)})[0];
    for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_NEAR(y.get_f64(static_cast<int64_t>(2 * i)), x[i], 1e-3) << i;
        ASSERT_NEAR(y.get_f64(static_cast<int64_t>(2 * i + 1)), 0, 1e-3) << i;
    }
}

TEST(Det, PivotsAndFindsSingularMatrices) {
    Model m = model(graph({"x:f32[N,3,3]"}, {"y"}, {node("Det", {"x"}, {"y"})}));
    auto y = run(m, {floats({3, 3, 3}, {0, 2, 0, 3, 0, 0, 0, 0, 4, 1, 2, 3, 2, 4,
                                        6, 1, 1, 1, 2, 0, 1, 1, 3, 2, 0, 1, 5})})[0];
    EXPECT_NEAR(y.get_f64(0), -24, 1e-5);
    EXPECT_EQ(y.get_f64(1), 0);
    EXPECT_NEAR(y.get_f64(2), 27, 1e-4);
}

} // namespace

} // namespace ingot::onnx::test
