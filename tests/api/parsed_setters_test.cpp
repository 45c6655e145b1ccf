// SPDX-License-Identifier: Apache-2.0
// Setters on layers of a parsed network: the setting takes effect in the engine, or is refused with
// a message, and nothing changes.
#include "api/parsed_layers.h"

namespace ingot::test {

namespace {

using Type = nv::LayerType;

class ParsedSettersTest : public ParsedTest {};

Made conv_model() {
    return {{op("Conv", {"x", "w", "b"}, {"h"}, {ints("pads", {1, 1, 1, 1})}),
             op("LeakyRelu", {"h"}, {"y"}, {real("alpha", 0.25F)})},
            {{"x", numbers({1, 2, 5, 5})}},
            {{"w", numbers({3, 2, 3, 3})}, {"b", numbers({3})}}};
}

TEST_F(ParsedSettersTest, reads_a_convolution) {
    Made m = conv_model();
    ASSERT_TRUE(parse(m));
    auto& l = layer<nv::IConvolutionLayer>("Conv");
    parser.reset(); // weights belong to the network
    EXPECT_EQ(l.getNbInputs(), 1);
    EXPECT_EQ(l.getNbOutputMaps(), 3);
    EXPECT_EQ(l.getNbGroups(), 1);
    EXPECT_EQ(list(l.getKernelSizeNd()), (std::vector<int64_t>{3, 3}));
    EXPECT_EQ(list(l.getStrideNd()), (std::vector<int64_t>{1, 1}));
    EXPECT_EQ(list(l.getPrePadding()), (std::vector<int64_t>{1, 1}));
    EXPECT_EQ(l.getPaddingMode(), nv::PaddingMode::kEXPLICIT_ROUND_DOWN);
    nv::Weights w = l.getKernelWeights();
    ASSERT_EQ(w.count, 54);
    EXPECT_EQ(w.type, nv::DataType::kFLOAT);
    EXPECT_EQ(static_cast<double>(static_cast<const float*>(w.values)[53]),
              m.initializers[0].second.get_f64(53));
    EXPECT_EQ(l.getBiasWeights().count, 3);
    EXPECT_EQ(static_cast<double>(layer<nv::IActivationLayer>("LeakyRelu").getAlpha()), 0.25);
}

TEST_F(ParsedSettersTest, a_stride_takes_effect) {
    Made m = conv_model();
    m.nodes[0].attributes.push_back(ints("strides", {2, 2}));
    ASSERT_TRUE(parse(m));
    std::vector<Tensor> expected = run(m.values());
    ASSERT_TRUE(parse(conv_model()));
    layer<nv::IConvolutionLayer>("Conv").setStrideNd(dims({2, 2}));
    EXPECT_EQ(list(network->getOutput(0)->getDimensions()), (std::vector<int64_t>{1, 3, 3, 3}));
    std::vector<Tensor> y = run(m.values());
    expect_elements(y, 0, {1, 3, 3, 3}, [&](int64_t i) { return expected[0].get_f64(i); });
}

TEST_F(ParsedSettersTest, weights_and_kernel_sizes_take_effect) {
    Made m = conv_model();
    Tensor point = numbers({3, 2, 1, 1}, 0, 1);
    Made wanted = m;
    wanted.initializers[0].second = point;
    ASSERT_TRUE(parse(wanted));
    std::vector<Tensor> expected = run(m.values());
    ASSERT_TRUE(parse(m));
    auto& l = layer<nv::IConvolutionLayer>("Conv");
    l.setKernelSizeNd(dims({1, 1}));
    l.setKernelWeights(weights(point));
    std::vector<Tensor> y = run(m.values());
    expect_elements(y, 0, {1, 3, 7, 7}, [&](int64_t i) { return expected[0].get_f64(i); });
}

TEST_F(ParsedSettersTest, operations_and_numbers_take_effect) {
    Made m = {{op("Add", {"x", "w"}, {"a"}), op("Elu", {"a"}, {"y"})},
              {{"x", numbers({2, 3})}},
              {{"w", numbers({3})}}};
    ASSERT_TRUE(parse(m));
    layer<nv::IElementWiseLayer>("Add").setOperation(nv::ElementWiseOperation::kSUB);
    layer<nv::IActivationLayer>("Elu").setActivationType(nv::ActivationType::kLEAKY_RELU);
    layer<nv::IActivationLayer>("Elu").setAlpha(0.5F);
    std::vector<Tensor> y = run(m.values());
    expect_elements(y, 0, {2, 3}, [&](int64_t i) {
        double d = m.inputs[0].second.get_f64(i) - m.initializers[0].second.get_f64(i % 3);
        return d < 0 ? d / 2 : d;
    });
}

TEST_F(ParsedSettersTest, an_axis_takes_effect) {
    Made m = {{op("Concat", {"x", "x"}, {"y"}, {number("axis", 0)})}, {{"x", numbers({2, 3})}}, {}};
    ASSERT_TRUE(parse(m));
    auto& l = layer<nv::IConcatenationLayer>("Concat");
    EXPECT_EQ(l.getAxis(), 0);
    l.setAxis(1);
    std::vector<Tensor> y = run(m.values());
    expect_elements(y, 0, {2, 6},
                    [&](int64_t i) { return m.inputs[0].second.get_f64(i / 6 * 3 + i % 3); });
}

TEST_F(ParsedSettersTest, inputs_of_one_name_become_two) {
    Tensor x = numbers({2, 3});
    ASSERT_TRUE(parse(Made{{op("Mul", {"x", "x"}, {"y"})}, {{"x", x}}, {}}));
    layer<nv::IElementWiseLayer>("Mul").setInput(1, constant(numbers({2, 3}, 4, 5)));
    std::vector<Tensor> y = run({x});
    expect_elements(y, 0, {2, 3}, [&](int64_t i) {
        return x.get_f64(i) * numbers({2, 3}, 4, 5).get_f64(i);
    });
}

TEST_F(ParsedSettersTest, inputs_that_initializers_were_are_replaced) {
    Tensor x = numbers({2, 3});
    ASSERT_TRUE(parse(Made{{op("Sub", {"x", "w"}, {"y"})}, {{"x", x}}, {{"w", numbers({3})}}}));
    auto& l = layer<nv::IElementWiseLayer>("Sub");
    ASSERT_EQ(l.getNbInputs(), 2);
    EXPECT_STREQ(l.getInput(1)->getName(), "w");
    EXPECT_EQ(network->getNbLayers(), 2);
    EXPECT_EQ(network->getLayer(0)->getType(), Type::kCONSTANT);
    l.setInput(1, *l.getInput(0));
    std::vector<Tensor> y = run({x});
    expect_elements(y, 0, {2, 3}, [](int64_t) { return 0.0; });
}

TEST_F(ParsedSettersTest, constants_take_other_weights) {
    Tensor x = numbers({2, 3});
    Tensor w = numbers({3}, 7, 9);
    ASSERT_TRUE(parse(Made{{op("Sub", {"x", "w"}, {"y"})}, {{"x", x}}, {{"w", numbers({3})}}}));
    static_cast<nv::IConstantLayer*>(network->getLayer(0))->setWeights(weights(w));
    std::vector<Tensor> y = run({x});
    expect_elements(y, 0, {2, 3}, [&](int64_t i) { return x.get_f64(i) - w.get_f64(i % 3); });
}

TEST_F(ParsedSettersTest, names_and_inner_outputs) {
    Made m = conv_model();
    ASSERT_TRUE(parse(m));
    auto& l = layer<nv::IConvolutionLayer>("Conv");
    l.setName("first");
    EXPECT_TRUE(follows_node(l));
    network->markOutput(*l.getOutput(0));
    ASSERT_EQ(run(m.values()).size(), 2U);
}

TEST_F(ParsedSettersTest, a_gemm_is_a_product_and_a_sum) {
    Tensor x = numbers({2, 3});
    Made m = {{op("Gemm", {"x", "w", "b"}, {"y"}, {number("transB", 1)})},
              {{"x", x}},
              {{"w", numbers({4, 3})}, {"b", numbers({4})}}};
    ASSERT_TRUE(parse(m));
    ASSERT_EQ(network->getNbLayers(), 4); // and two constants
    auto& product = layer<nv::IMatrixMultiplyLayer>("Gemm");
    EXPECT_EQ(product.getOperation(0), nv::MatrixOperation::kNONE);
    EXPECT_EQ(product.getOperation(1), nv::MatrixOperation::kTRANSPOSE);
    auto& sum = layer<nv::IElementWiseLayer>("Gemm_bias");
    EXPECT_EQ(sum.getInput(0), product.getOutput(0));
    EXPECT_EQ(sum.getOperation(), nv::ElementWiseOperation::kSUM);
    EXPECT_STREQ(sum.getOutput(0)->getName(), "y");
    EXPECT_EQ(parser->getLayerOutputTensor("the Gemm", 0), sum.getOutput(0));
    sum.setOperation(nv::ElementWiseOperation::kPROD);
    std::vector<Tensor> y = run({x});
    expect_elements(y, 0, {2, 4}, [&](int64_t i) {
        double d = 0;
        for (int64_t k = 0; k < 3; ++k) {
            d += x.get_f64(i / 4 * 3 + k) * m.initializers[0].second.get_f64(i % 4 * 3 + k);
        }
        return d * m.initializers[1].second.get_f64(i % 4);
    });
}

TEST_F(ParsedSettersTest, a_split_is_slices) {
    Tensor x = numbers({2, 6});
    Made m = {
        {op("Split", {"x"}, {"y", "y2", "y3"}, {number("axis", 1), number("num_outputs", 3)})},
        {{"x", x}},
        {}};
    ASSERT_TRUE(parse(m));
    ASSERT_EQ(network->getNbLayers(), 3);
    auto& second = layer<nv::ISliceLayer>("Split_1");
    EXPECT_EQ(list(second.getAxes()), (std::vector<int64_t>{1}));
    EXPECT_EQ(list(second.getStart()), (std::vector<int64_t>{2}));
    EXPECT_EQ(list(second.getSize()), (std::vector<int64_t>{2}));
    EXPECT_STREQ(second.getOutput(0)->getName(), "y2");
    EXPECT_EQ(parser->getLayerOutputTensor("the Split", 1), second.getOutput(0));
    second.setStart(dims({3}));
    layer<nv::ISliceLayer>("Split_2").setInput(0, constant(numbers({2, 6}, 4, 5)));
    std::vector<Tensor> y = run({x});
    for (size_t k = 0; k < 3; ++k) {
        expect_elements(y, k, {2, 2}, [&](int64_t i) {
            Tensor from = k == 2 ? numbers({2, 6}, 4, 5) : x;
            return from.get_f64(i / 2 * 6 + i % 2 + (k == 0 ? 0 : k == 1 ? 3 : 4));
        });
    }
}

// --- refusals ------------------------------------------------------------------------------------

TEST_F(ParsedSettersTest, a_constant_that_has_become_a_setting_stays) {
    Made m = {{op("Constant", {}, {"s"}, {contents("value", Tensor::i64({3, 2}))}),
               op("Reshape", {"x", "s"}, {"y"})},
              {{"x", numbers({2, 3})}},
              {}};
    ASSERT_TRUE(parse(m));
    auto& shuffle = layer<nv::IShuffleLayer>("Reshape");
    EXPECT_EQ(shuffle.getNbInputs(), 1);
    EXPECT_EQ(list(shuffle.getReshapeDimensions()), (std::vector<int64_t>{3, 2}));
    auto& l = layer<nv::IConstantLayer>("Constant");
    l.setWeights(weights(Tensor::i64({1, 6})));
    ASSERT_EQ(logger.errors.size(), 1U);
    EXPECT_EQ(logger.errors[0],
              "IConstantLayer::setWeights: layer 'the Constant' (Constant): its value has become a "
              "setting of layer 'the Reshape' (Shuffle); change that one");
    shuffle.setReshapeDimensions(dims({1, 6}));
    EXPECT_EQ(run(m.values())[0].shape(), (Shape{1, 6}));
}

TEST_F(ParsedSettersTest, what_the_class_cannot_do_is_not_set) {
    Tensor x = numbers({2, 3}, 1, 2);
    Made m = {{op("Pow", {"x", "w"}, {"y"})}, {{"x", x}}, {{"w", Tensor::i64({1, 2, 3})}}};
    ASSERT_TRUE(parse(m));
    auto& l = layer<nv::IElementWiseLayer>("Pow");
    EXPECT_EQ(l.getOperation(), nv::ElementWiseOperation::kPOW);
    l.setOperation(nv::ElementWiseOperation::kSUM);
    ASSERT_EQ(logger.errors.size(), 1U);
    EXPECT_EQ(
        logger.errors[0],
        "IElementWiseLayer::setOperation: layer 'the Pow' (ElementWise): it runs a node of the "
        "model, and its settings cannot express that node: input 1 'w' is i64[3], "
        "expected f32 as input 0 'x'; leave it as it is, or add layers in its place");
    EXPECT_EQ(l.getOperation(), nv::ElementWiseOperation::kPOW);
    std::vector<Tensor> y = run({x});
    expect_elements(y, 0, {2, 3}, [&](int64_t i) {
        return std::pow(x.get_f64(i), static_cast<double>(i % 3 + 1));
    });
}

TEST_F(ParsedSettersTest, a_bad_value_changes_nothing) {
    Made m = conv_model();
    ASSERT_TRUE(parse(m));
    auto& l = layer<nv::IConvolutionLayer>("Conv");
    l.setStrideNd(dims({0, 1}));
    EXPECT_EQ(logger.errors.size(), 1U);
    EXPECT_TRUE(follows_node(l));
    EXPECT_EQ(list(l.getStrideNd()), (std::vector<int64_t>{1, 1}));
}

// --- types and weights ---------------------------------------------------------------------------

TEST_F(ParsedSettersTest, precisions_take_effect) {
    Made m = {
        {op("MatMul", {"x", "w"}, {"y"})}, {{"x", numbers({8, 64})}}, {{"w", numbers({64, 8})}}};
    config->setFlag(nv::BuilderFlag::kFP16);
    config->setFlag(nv::BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    ASSERT_TRUE(parse(m));
    std::vector<Tensor> half = run(m.values());
    ASSERT_TRUE(parse(m));
    layer<nv::IMatrixMultiplyLayer>("MatMul").setPrecision(nv::DataType::kFLOAT);
    std::vector<Tensor> single = run(m.values());
    double far = 0;
    for (int64_t i = 0; i < single[0].count(); ++i) {
        double exact = 0;
        for (int64_t k = 0; k < 64; ++k) {
            exact += m.inputs[0].second.get_f64(i / 8 * 64 + k) *
                     m.initializers[0].second.get_f64(k * 8 + i % 8);
        }
        far = std::max(far, std::abs(half[0].get_f64(i) - exact));
        EXPECT_NEAR(single[0].get_f64(i), exact, 1e-4);
    }
    EXPECT_GT(far, 1e-4);
}

TEST_F(ParsedSettersTest, output_types_take_effect) {
    Made m = {{op("Relu", {"x"}, {"y"})}, {{"x", numbers({2, 3})}}, {}};
    ASSERT_TRUE(parse(m));
    layer<nv::IActivationLayer>("Relu").setOutputType(0, nv::DataType::kHALF);
    EXPECT_EQ(network->getOutput(0)->getType(), nv::DataType::kHALF);
    EXPECT_EQ(run(m.values())[0].dtype(), DType::F16);
}

} // namespace

} // namespace ingot::test
