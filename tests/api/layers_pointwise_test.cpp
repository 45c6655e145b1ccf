// SPDX-License-Identifier: Apache-2.0
// Layers that compute element by element agree with the formulas of their documentation.
#include "api/network_fixture.h"

#include <limits>

namespace ingot::test {

namespace {

using Pointwise = NetworkTest;

struct ActivationCase {
    nv::ActivationType type;
    float alpha;
    float beta;
    double (*expected)(double x);
};

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}

const ActivationCase activations[] = {
    {nv::ActivationType::kRELU, 0, 0, [](double x) { return std::max(x, 0.0); }},
    {nv::ActivationType::kSIGMOID, 0, 0, sigmoid},
    {nv::ActivationType::kTANH, 0, 0, [](double x) { return std::tanh(x); }},
    {nv::ActivationType::kLEAKY_RELU, 0.25F, 0, [](double x) { return x >= 0 ? x : 0.25 * x; }},
    {nv::ActivationType::kELU, 0.5F, 0,
     [](double x) { return x >= 0 ? x : 0.5 * (std::exp(x) - 1); }},
    {nv::ActivationType::kSELU, 0.5F, 2,
     [](double x) { return 2 * (x > 0 ? x : 0.5 * std::exp(x) - 0.5); }},
    {nv::ActivationType::kSOFTSIGN, 0, 0, [](double x) { return x / (1 + std::abs(x)); }},
    {nv::ActivationType::kSOFTPLUS, 2, 0.5F,
     [](double x) { return 2 * std::log(std::exp(0.5 * x) + 1); }},
    {nv::ActivationType::kCLIP, -0.5F, 1,
     [](double x) { return std::max(-0.5, std::min(1.0, x)); }},
    {nv::ActivationType::kHARD_SIGMOID, 0.25F, 0.5F,
     [](double x) { return std::max(0.0, std::min(1.0, 0.25 * x + 0.5)); }},
    {nv::ActivationType::kSCALED_TANH, 2, 0.5F, [](double x) { return 2 * std::tanh(0.5 * x); }},
    {nv::ActivationType::kTHRESHOLDED_RELU, 0.5F, 0, [](double x) { return x > 0.5 ? x : 0.0; }},
    {nv::ActivationType::kGELU_ERF, 0, 0,
     [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
    {nv::ActivationType::kGELU_TANH, 0, 0,
     [](double x) {
         return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     }},
};

TEST_F(Pointwise, every_activation_agrees_with_its_formula) {
    ASSERT_EQ(std::size(activations), nv::EnumMax<nv::ActivationType>());
    nv::ITensor& x = input("x", {2, 3, 4});
    for (const ActivationCase& c : activations) {
        nv::IActivationLayer* layer = network->addActivation(x, c.type);
        layer->setAlpha(c.alpha);
        layer->setBeta(c.beta);
        EXPECT_EQ(layer->getActivationType(), c.type);
        network->markOutput(*layer->getOutput(0));
    }
    Tensor data = numbers({2, 3, 4});
    std::vector<Tensor> y = run({data});
    for (size_t k = 0; k < std::size(activations); ++k) {
        SCOPED_TRACE(k);
        expect_elements(y, k, {2, 3, 4},
                        [&](int64_t i) { return activations[k].expected(data.get_f64(i)); });
    }
}

TEST_F(Pointwise, parametric_relu_broadcasts_its_slope) {
    nv::ITensor& x = input("x", {2, 3, 4});
    Tensor slope = numbers({1, 3, 1}, 0, 1);
    Tensor data = numbers({2, 3, 4});
    auto y = run(network->addParametricReLU(x, constant(slope)), {data});
    expect_elements(y, 0, {2, 3, 4}, [&](int64_t i) {
        double v = data.get_f64(i);
        return v >= 0 ? v : v * slope.get_f64(i / 4 % 3);
    });
}

struct BinaryCase {
    nv::ElementWiseOperation op;
    double (*expected)(double a, double b);
};

const BinaryCase binaries[] = {
    {nv::ElementWiseOperation::kSUM, [](double a, double b) { return a + b; }},
    {nv::ElementWiseOperation::kPROD, [](double a, double b) { return a * b; }},
    {nv::ElementWiseOperation::kMAX, [](double a, double b) { return std::max(a, b); }},
    {nv::ElementWiseOperation::kMIN, [](double a, double b) { return std::min(a, b); }},
    {nv::ElementWiseOperation::kSUB, [](double a, double b) { return a - b; }},
    {nv::ElementWiseOperation::kDIV, [](double a, double b) { return a / b; }},
    {nv::ElementWiseOperation::kPOW, [](double a, double b) { return std::pow(a, b); }},
    {nv::ElementWiseOperation::kFLOOR_DIV, [](double a, double b) { return std::floor(a / b); }},
    {nv::ElementWiseOperation::kEQUAL, [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {nv::ElementWiseOperation::kGREATER, [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {nv::ElementWiseOperation::kLESS, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
};

TEST_F(Pointwise, every_operation_of_numbers_agrees_with_its_formula) {
    nv::ITensor& a = input("a", {2, 3});
    nv::ITensor& b = input("b", {1, 3});
    for (const BinaryCase& c : binaries) {
        network->markOutput(*network->addElementWise(a, b, c.op)->getOutput(0));
    }
    Tensor left = numbers({2, 3}, 0.5, 4);
    Tensor right = numbers({1, 3}, 0.5, 2);
    left.set_f64(1, right.get_f64(1));
    std::vector<Tensor> y = run({left, right});
    for (size_t k = 0; k < std::size(binaries); ++k) {
        SCOPED_TRACE(k);
        expect_elements(y, k, {2, 3}, [&](int64_t i) {
            return binaries[k].expected(left.get_f64(i), right.get_f64(i % 3));
        });
    }
}

TEST_F(Pointwise, integers_divide_towards_zero_or_down) {
    nv::ITensor& a = input("a", nv::DataType::kINT32, {4});
    nv::ITensor& b = input("b", nv::DataType::kINT32, {4});
    for (auto op : {nv::ElementWiseOperation::kDIV, nv::ElementWiseOperation::kFLOOR_DIV}) {
        network->markOutput(*network->addElementWise(a, b, op)->getOutput(0));
    }
    std::vector<int32_t> left = {7, -7, 7, -7};
    std::vector<int32_t> right = {2, 2, -2, -2};
    auto y = run(
        {Tensor::of<int32_t>(DType::I32, {4}, left), Tensor::of<int32_t>(DType::I32, {4}, right)});
    const double zero[] = {3, -3, -3, 3};
    const double down[] = {3, -4, -4, 3};
    expect_elements(y, 0, {4}, [&](int64_t i) { return zero[i]; });
    expect_elements(y, 1, {4}, [&](int64_t i) { return down[i]; });
}

TEST_F(Pointwise, logical_operations) {
    nv::ITensor& a = input("a", nv::DataType::kBOOL, {4});
    nv::ITensor& b = input("b", nv::DataType::kBOOL, {4});
    for (auto op : {nv::ElementWiseOperation::kAND, nv::ElementWiseOperation::kOR,
                    nv::ElementWiseOperation::kXOR}) {
        network->markOutput(*network->addElementWise(a, b, op)->getOutput(0));
    }
    network->markOutput(*network->addUnary(a, nv::UnaryOperation::kNOT)->getOutput(0));
    std::vector<int> left = {0, 0, 1, 1};
    std::vector<int> right = {0, 1, 0, 1};
    auto y =
        run({Tensor::of<int>(DType::Bool, {4}, left), Tensor::of<int>(DType::Bool, {4}, right)});
    expect_elements(y, 0, {4}, [](int64_t i) { return i == 3 ? 1 : 0; });
    expect_elements(y, 1, {4}, [](int64_t i) { return i == 0 ? 0 : 1; });
    expect_elements(y, 2, {4}, [](int64_t i) { return i == 1 || i == 2 ? 1 : 0; });
    expect_elements(y, 3, {4}, [](int64_t i) { return i < 2 ? 1 : 0; });
}

struct UnaryCase {
    nv::UnaryOperation op;
    double low;
    double high;
    double (*expected)(double x);
};

const UnaryCase unaries[] = {
    {nv::UnaryOperation::kEXP, -2, 2, [](double x) { return std::exp(x); }},
    {nv::UnaryOperation::kLOG, 0.1, 4, [](double x) { return std::log(x); }},
    {nv::UnaryOperation::kSQRT, 0, 4, [](double x) { return std::sqrt(x); }},
    {nv::UnaryOperation::kRECIP, 0.5, 4, [](double x) { return 1 / x; }},
    {nv::UnaryOperation::kABS, -2, 2, [](double x) { return std::abs(x); }},
    {nv::UnaryOperation::kNEG, -2, 2, [](double x) { return -x; }},
    {nv::UnaryOperation::kSIN, -2, 2, [](double x) { return std::sin(x); }},
    {nv::UnaryOperation::kCOS, -2, 2, [](double x) { return std::cos(x); }},
    {nv::UnaryOperation::kTAN, -1, 1, [](double x) { return std::tan(x); }},
    {nv::UnaryOperation::kSINH, -2, 2, [](double x) { return std::sinh(x); }},
    {nv::UnaryOperation::kCOSH, -2, 2, [](double x) { return std::cosh(x); }},
    {nv::UnaryOperation::kASIN, -1, 1, [](double x) { return std::asin(x); }},
    {nv::UnaryOperation::kACOS, -1, 1, [](double x) { return std::acos(x); }},
    {nv::UnaryOperation::kATAN, -2, 2, [](double x) { return std::atan(x); }},
    {nv::UnaryOperation::kASINH, -2, 2, [](double x) { return std::asinh(x); }},
    {nv::UnaryOperation::kACOSH, 1, 4, [](double x) { return std::acosh(x); }},
    {nv::UnaryOperation::kATANH, -0.9, 0.9, [](double x) { return std::atanh(x); }},
    {nv::UnaryOperation::kCEIL, -4, 4, [](double x) { return std::ceil(x); }},
    {nv::UnaryOperation::kFLOOR, -4, 4, [](double x) { return std::floor(x); }},
    {nv::UnaryOperation::kERF, -2, 2, [](double x) { return std::erf(x); }},
    {nv::UnaryOperation::kSIGN, -2, 2, [](double x) { return x > 0   ? 1.0
                                                             : x < 0 ? -1.0
                                                                     : 0.0; }},
    {nv::UnaryOperation::kROUND, -4, 4, [](double x) { return std::nearbyint(x); }},
};

TEST_F(Pointwise, every_unary_operation_agrees_with_its_formula) {
    for (const UnaryCase& c : unaries) {
        SCOPED_TRACE(static_cast<int>(c.op));
        network.reset(builder->createNetworkV2(0));
        nv::ITensor& x = input("x", {17});
        Tensor data = numbers({17}, c.low, c.high);
        data.set_f64(3, std::max(c.low, 0.5)); // a half, for kROUND
        auto y = run(network->addUnary(x, c.op), {data});
        expect_elements(y, 0, {17}, [&](int64_t i) { return c.expected(data.get_f64(i)); });
    }
}

TEST_F(Pointwise, tests_of_infinity_and_nan) {
    nv::ITensor& x = input("x", {3});
    network->markOutput(*network->addUnary(x, nv::UnaryOperation::kISINF)->getOutput(0));
    network->markOutput(*network->addUnary(x, nv::UnaryOperation::kISNAN)->getOutput(0));
    EXPECT_EQ(network->getOutput(0)->getType(), nv::DataType::kBOOL);
    std::vector<float> data = {1, -std::numeric_limits<float>::infinity(), std::nanf("")};
    auto y = run({Tensor::of<float>(DType::F32, {3}, data)});
    expect_elements(y, 0, {3}, [](int64_t i) { return i == 1 ? 1 : 0; });
    expect_elements(y, 1, {3}, [](int64_t i) { return i == 2 ? 1 : 0; });
}

TEST_F(Pointwise, scale_by_mode) {
    nv::ITensor& x = input("x", {2, 3, 2, 2});
    Tensor one = numbers({1}, 0.5, 2);
    Tensor channel = numbers({3}, 0.5, 2);
    Tensor element = numbers({12}, 0.5, 2);
    Tensor power = numbers({1}, 2, 3);
    const nv::Weights none{nv::DataType::kFLOAT, nullptr, 0};
    auto* uniform =
        network->addScale(x, nv::ScaleMode::kUNIFORM, weights(one), weights(one), weights(power));
    auto* by_channel = network->addScaleNd(x, nv::ScaleMode::kCHANNEL, weights(channel),
                                           weights(channel), none, 1);
    auto* by_element =
        network->addScale(x, nv::ScaleMode::kELEMENTWISE, none, weights(element), none);
    EXPECT_EQ(by_element->getChannelAxis(), 1);
    for (nv::ILayer* l : std::initializer_list<nv::ILayer*>{uniform, by_channel, by_element}) {
        network->markOutput(*l->getOutput(0));
    }
    Tensor data = numbers({2, 3, 2, 2}, 0, 2);
    auto y = run({data});
    double s = one.get_f64(0);
    expect_elements(y, 0, {2, 3, 2, 2},
                    [&](int64_t i) { return std::pow(data.get_f64(i) * s + s, power.get_f64(0)); });
    expect_elements(y, 1, {2, 3, 2, 2}, [&](int64_t i) {
        double c = channel.get_f64(i / 4 % 3);
        return data.get_f64(i) * c + c;
    });
    expect_elements(y, 2, {2, 3, 2, 2},
                    [&](int64_t i) { return data.get_f64(i) * element.get_f64(i % 12); });
}

TEST_F(Pointwise, select_cast_and_identity) {
    nv::ITensor& c = input("c", nv::DataType::kBOOL, {2, 1});
    nv::ITensor& x = input("x", {2, 3});
    nv::ITensor& y = input("y", {1, 3});
    network->markOutput(*network->addSelect(c, x, y)->getOutput(0));
    network->markOutput(*network->addCast(x, nv::DataType::kINT32)->getOutput(0));
    network->markOutput(*network->addCast(x, nv::DataType::kBOOL)->getOutput(0));
    network->markOutput(*network->addIdentity(x)->getOutput(0));
    Tensor a = numbers({2, 3}, -4, 4);
    a.set_f64(2, 0);
    Tensor b = numbers({1, 3});
    std::vector<int> flags = {1, 0};
    auto r = run({Tensor::of<int>(DType::Bool, {2, 1}, flags), a, b});
    expect_elements(r, 0, {2, 3},
                    [&](int64_t i) { return i < 3 ? a.get_f64(i) : b.get_f64(i - 3); });
    expect_elements(r, 1, {2, 3}, [&](int64_t i) { return std::trunc(a.get_f64(i)); });
    expect_elements(r, 2, {2, 3}, [&](int64_t i) { return a.get_f64(i) != 0 ? 1 : 0; });
    expect_elements(r, 3, {2, 3}, [&](int64_t i) { return a.get_f64(i); });
}

} // namespace

} // namespace ingot::test
