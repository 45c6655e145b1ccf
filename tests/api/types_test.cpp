// SPDX-License-Identifier: Apache-2.0
// Types of layers in a network that precision flags convert.
#include "api/network_fixture.h"
#include "ops/ops.h"

namespace ingot::test {

namespace {

// y = conv(tanh(conv(x))): the second convolution is to stay in f32.
class TypesTest : public NetworkTest {
protected:
    TypesTest() {
        nv::ITensor& x = input("x", {1, 3, 6, 6});
        first = conv(x, 4, 3);
        auto* t = network->addActivation(*first->getOutput(0), nv::ActivationType::kTANH);
        second = conv(*t->getOutput(0), 2, 4);
        network->markOutput(*second->getOutput(0));
        second->setName("second");
    }
    nv::ILayer* conv(nv::ITensor& x, int64_t to, int64_t from) {
        return network->addConvolutionNd(x, to, dims({3, 3}),
                                         weights(numbers({to, from, 3, 3}, -0.3, 0.3)), {});
    }
    std::vector<DType> types() {
        std::shared_ptr<const Engine> engine = build();
        std::vector<DType> out;
        for (const Node& n : engine->graph().nodes()) {
            if (n.is(ops::conv_def)) {
                out.push_back(engine->graph().type(n.inputs[1]).dtype);
                EXPECT_EQ(engine->graph().type(n.inputs[0]).dtype, out.back());
            }
            EXPECT_NE(n.def->name, "fence");
        }
        return out;
    }
    nv::ILayer* first = nullptr;
    nv::ILayer* second = nullptr;
};

TEST_F(TypesTest, a_layer_keeps_its_precision_where_precisions_count) {
    config->setFlag(nv::BuilderFlag::kFP16);
    EXPECT_FALSE(second->precisionIsSet());
    second->setPrecision(nv::DataType::kFLOAT);
    EXPECT_TRUE(second->precisionIsSet());
    EXPECT_EQ(types(), (std::vector{DType::F16, DType::F16})); // neither flag is set
    for (nv::BuilderFlag f : {nv::BuilderFlag::kOBEY_PRECISION_CONSTRAINTS,
                              nv::BuilderFlag::kPREFER_PRECISION_CONSTRAINTS}) {
        config->setFlag(f);
        EXPECT_EQ(types(), (std::vector{DType::F16, DType::F32}));
        config->clearFlag(f);
    }
    config->setFlag(nv::BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    second->resetPrecision();
    EXPECT_EQ(types(), (std::vector{DType::F16, DType::F16}));
    first->setPrecision(nv::DataType::kFLOAT);
    EXPECT_EQ(types(), (std::vector{DType::F32, DType::F16}));
    config->clearFlag(nv::BuilderFlag::kFP16);
    EXPECT_EQ(types(), (std::vector{DType::F32, DType::F32}));
}

// A batch norm that folds into the previous convolution must not include the pinned one.
TEST_F(TypesTest, what_is_folded_elsewhere_does_not_pass_a_fence) {
    auto* scale = network->addScale(*second->getOutput(0), nv::ScaleMode::kUNIFORM, {},
                                    weights(numbers({1}, 2, 3)), {});
    network->unmarkOutput(*second->getOutput(0));
    network->markOutput(*scale->getOutput(0));
    config->setFlag(nv::BuilderFlag::kFP16);
    config->setFlag(nv::BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    second->setPrecision(nv::DataType::kFLOAT);
    EXPECT_EQ(types(), (std::vector{DType::F16, DType::F32}));
}

TEST_F(TypesTest, an_output_keeps_its_type) {
    config->setFlag(nv::BuilderFlag::kFP16);
    config->setFlag(nv::BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    first->setOutputType(0, nv::DataType::kFLOAT);
    EXPECT_EQ(types(), (std::vector{DType::F32, DType::F16})); // its precision is free
    first->setPrecision(nv::DataType::kHALF);
    EXPECT_EQ(types(), (std::vector{DType::F16, DType::F16}));
    EXPECT_TRUE(first->outputTypeIsSet(0));
    first->resetOutputType(0);
    EXPECT_FALSE(first->outputTypeIsSet(0));
}

TEST_F(TypesTest, what_cannot_be_obeyed_is_refused_and_preferred_where_it_can) {
    config->setFlag(nv::BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    second->setPrecision(nv::DataType::kHALF);
    EXPECT_EQ(builder->buildSerializedNetwork(*network, *config), nullptr);
    EXPECT_EQ(logger.errors.back(),
              "IBuilder::buildSerializedNetwork: layer 'second' (Convolution): its precision is "
              "HALF, but the flag kFP16 is not set");
    config->clearFlag(nv::BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    config->setFlag(nv::BuilderFlag::kPREFER_PRECISION_CONSTRAINTS);
    EXPECT_EQ(types(), (std::vector{DType::F32, DType::F32}));
    config->setFlag(nv::BuilderFlag::kOBEY_PRECISION_CONSTRAINTS);
    EXPECT_EQ(builder->buildSerializedNetwork(*network, *config), nullptr);
    EXPECT_EQ(logger.errors.back(),
              "IBuilder::buildSerializedNetwork: kOBEY_PRECISION_CONSTRAINTS and "
              "kPREFER_PRECISION_CONSTRAINTS are both set; choose one");
}

TEST_F(TypesTest, a_strongly_typed_network_has_no_precisions) {
    network.reset(builder->createNetworkV2(
        1U << static_cast<uint32_t>(nv::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED)));
    nv::ITensor& x = input("x", {2});
    auto* layer = network->addActivation(x, nv::ActivationType::kRELU);
    layer->setPrecision(nv::DataType::kFLOAT);
    EXPECT_FALSE(layer->precisionIsSet());
    EXPECT_NE(logger.errors.back().find("the network is strongly typed"), std::string::npos);
}

} // namespace

} // namespace ingot::test
