// SPDX-License-Identifier: Apache-2.0
// Misuse of networks and builders, and the whole text of each message.
#include "api/network_fixture.h"

namespace ingot::test {

namespace {

/// The tensors of the misuses: x f32[2,3,4], i i32[3], b bool[3], s f32[3].
struct Scene {
    nv::IBuilder& builder;
    nv::IBuilderConfig& config;
    nv::INetworkDefinition& n;
    nv::INetworkDefinition& other;
    nv::ITensor& x;
    nv::ITensor& i;
    nv::ITensor& b;
    nv::ITensor& s;

    void build() const { EXPECT_EQ(builder.buildSerializedNetwork(n, config), nullptr); }
};

struct Misuse {
    const char* message;
    void (*run)(const Scene& c);
};

const nv::Weights no_weights{nv::DataType::kFLOAT, nullptr, 0};
const float some[4] = {1, 2, 3, 4};
const nv::Weights four{nv::DataType::kFLOAT, some, 4};

nv::ITensor& image(const Scene& c) {
    return *c.n.addInput("image", nv::DataType::kFLOAT, dims({1, 4, 5, 5}));
}

const Misuse misuses[] = {
    {"INetworkDefinition::addInput: the name of an input is empty",
     [](const Scene& c) { c.n.addInput(nullptr, nv::DataType::kFLOAT, dims({1})); }},
    {"INetworkDefinition::addInput: the name 'x' is taken by another input or output",
     [](const Scene& c) { c.n.addInput("x", nv::DataType::kFLOAT, dims({1})); }},
    {"INetworkDefinition::addInput: input 'y': its shape is [1,-2], expected sizes of 0 or more, "
     "or -1",
     [](const Scene& c) {
         c.n.addInput("y", nv::DataType::kFLOAT, dims({1, -2}));
     }},
    {"INetworkDefinition::addInput: input 'y': its shape has 9 dimensions, expected 0 to 8",
     [](const Scene& c) {
         c.n.addInput("y", nv::DataType::kFLOAT, {9, {}});
     }},
    {"INetworkDefinition::addInput: input 'y': data type 77 does not exist",
     [](const Scene& c) { c.n.addInput("y", static_cast<nv::DataType>(77), dims({1})); }},
    {"INetworkDefinition::addInput: input 'y': type E8M0 is not supported",
     [](const Scene& c) { c.n.addInput("y", nv::DataType::kE8M0, dims({1})); }},
    {"INetworkDefinition::addActivation: the activation type is 99, expected 0 to 13",
     [](const Scene& c) { c.n.addActivation(c.x, static_cast<nv::ActivationType>(99)); }},
    {"INetworkDefinition::addActivation: layer '(Unnamed Layer* 0) [Activation]' (Activation): "
     "input 0 'i' is i32[3], expected a floating-point type",
     [](const Scene& c) { c.n.addActivation(c.i, nv::ActivationType::kSIGMOID); }},
    {"INetworkDefinition::addIdentity: input 0 'x' belongs to another network",
     [](const Scene& c) { c.other.addIdentity(c.x); }},
    {"INetworkDefinition::addElementWise: layer '(Unnamed Layer* 0) [ElementWise]' (ElementWise): "
     "input 1 's' is f32[3], expected as many dimensions as input 0 'x', which is f32[2,3,4]",
     [](const Scene& c) { c.n.addElementWise(c.x, c.s, nv::ElementWiseOperation::kSUM); }},
    {"INetworkDefinition::addElementWise: layer '(Unnamed Layer* 0) [ElementWise]' (ElementWise): "
     "input 1 's' is f32[3], expected i32 as input 0 'i'",
     [](const Scene& c) { c.n.addElementWise(c.i, c.s, nv::ElementWiseOperation::kSUM); }},
    {"INetworkDefinition::addElementWise: layer '(Unnamed Layer* 0) [ElementWise]' (ElementWise): "
     "input 0 'i' is i32[3], expected bool",
     [](const Scene& c) { c.n.addElementWise(c.i, c.b, nv::ElementWiseOperation::kAND); }},
    {"INetworkDefinition::addUnary: layer '(Unnamed Layer* 0) [Unary]' (Unary): input 0 'x' is "
     "f32[2,3,4], expected bool",
     [](const Scene& c) { c.n.addUnary(c.x, nv::UnaryOperation::kNOT); }},
    {"INetworkDefinition::addConstant: the weights have a count of 4, expected 6 for f32[2,3]",
     [](const Scene& c) {
         c.n.addConstant(dims({2, 3}), four);
     }},
    {"INetworkDefinition::addConstant: the weights have a count of 2, but values is nullptr",
     [](const Scene& c) {
         c.n.addConstant(dims({2}), {nv::DataType::kFLOAT, nullptr, 2});
     }},
    {"INetworkDefinition::addConcatenation: nbInputs is 0, expected 1 or more",
     [](const Scene& c) { c.n.addConcatenation(nullptr, 0); }},
    {"INetworkDefinition::addConcatenation: input 1 is nullptr",
     [](const Scene& c) {
         nv::ITensor* const in[] = {&c.x, nullptr};
         c.n.addConcatenation(in, 2);
     }},
    {"INetworkDefinition::addConvolutionNd: the window [] has 0 sizes, expected 1 to 3",
     [](const Scene& c) { c.n.addConvolutionNd(image(c), 2, dims({}), no_weights, no_weights); }},
    {"INetworkDefinition::addConvolutionNd: the number of output maps is 0, expected 1 or more",
     [](const Scene& c) {
         c.n.addConvolutionNd(image(c), 0, dims({3, 3}), no_weights, no_weights);
     }},
    {"INetworkDefinition::addConvolutionNd: layer '(Unnamed Layer* 0) [Convolution]' "
     "(Convolution): input 0 'x' is f32[2,3,4], expected 4 dimensions",
     [](const Scene& c) {
         c.n.addConvolutionNd(c.x, 2, dims({3, 3}), no_weights, no_weights);
     }},
    {"ITensor::getDimensions: layer '(Unnamed Layer* 0) [Convolution]' (Convolution): there are "
     "neither kernel weights nor input 1",
     [](const Scene& c) {
         c.n.addConvolutionNd(image(c), 2, dims({3, 3}), no_weights, no_weights)
             ->getOutput(0)
             ->getDimensions();
     }},
    {"ITensor::getDimensions: layer '(Unnamed Layer* 0) [Convolution]' (Convolution): the kernel "
     "weights have a count of 4, expected 72 for f32[2,4,3,3]",
     [](const Scene& c) {
         c.n.addConvolutionNd(image(c), 2, dims({3, 3}), four, no_weights)
             ->getOutput(0)
             ->getDimensions();
     }},
    {"ITensor::getDimensions: layer '(Unnamed Layer* 0) [Convolution]' (Convolution): 4 channels "
     "and 3 output maps do not divide into 2 groups",
     [](const Scene& c) {
         auto* conv = c.n.addConvolutionNd(image(c), 3, dims({1, 1}), four, no_weights);
         conv->setNbGroups(2);
         conv->getOutput(0)->getDimensions();
     }},
    {"IConvolutionLayer::setStrideNd: layer '(Unnamed Layer* 0) [Convolution]' (Convolution): the "
     "stride is [1,0], expected sizes of 1 or more",
     [](const Scene& c) {
         c.n.addConvolutionNd(image(c), 1, dims({1, 1}), four, no_weights)
             ->setStrideNd(dims({1, 0}));
     }},
    {"IConvolutionLayer::setDilationNd: layer '(Unnamed Layer* 0) [Convolution]' (Convolution): "
     "the dilation [1] has 1 sizes, the window [1,1] has 2",
     [](const Scene& c) {
         c.n.addConvolutionNd(image(c), 1, dims({1, 1}), four, no_weights)
             ->setDilationNd(dims({1}));
     }},
    {"IPoolingLayer::setBlendFactor: layer '(Unnamed Layer* 0) [Pooling]' (Pooling): the blend "
     "factor is 2, expected 0 to 1",
     [](const Scene& c) {
         c.n.addPoolingNd(image(c), nv::PoolingType::kMAX, dims({1, 1}))->setBlendFactor(2);
     }},
    {"ISoftMaxLayer::setAxes: layer '(Unnamed Layer* 0) [SoftMax]' (SoftMax): axes are 3, expected "
     "exactly one bit",
     [](const Scene& c) { c.n.addSoftMax(c.x)->setAxes(3); }},
    {"INetworkDefinition::addReduce: layer '(Unnamed Layer* 0) [Reduce]' (Reduce): the axes name "
     "axis 5, but the input has 3 dimensions",
     [](const Scene& c) { c.n.addReduce(c.x, nv::ReduceOperation::kSUM, 1U << 5U, false); }},
    {"INetworkDefinition::addReduce: the operation is kNONE, which is for collectives only",
     [](const Scene& c) { c.n.addReduce(c.x, nv::ReduceOperation::kNONE, 1, false); }},
    {"INetworkDefinition::addTopK: the type of indices is FLOAT, expected INT32 or INT64",
     [](const Scene& c) { c.n.addTopK(c.x, nv::TopKOperation::kMAX, 1, 1, nv::DataType::kFLOAT); }},
    {"ITensor::getDimensions: layer '(Unnamed Layer* 0) [TopK]' (TopK): k is 9, but axis 2 of "
     "input 0 'x' has 4 elements",
     [](const Scene& c) {
         c.n.addTopK(c.x, nv::TopKOperation::kMAX, 9, 4, nv::DataType::kINT32)
             ->getOutput(0)
             ->getDimensions();
     }},
    {"INetworkDefinition::addGather: layer '(Unnamed Layer* 0) [Gather]' (Gather): the axis is 3, "
     "but input 0 'x' is f32[2,3,4]",
     [](const Scene& c) { c.n.addGather(c.x, c.i, 3); }},
    {"INetworkDefinition::addGather: layer '(Unnamed Layer* 0) [Gather]' (Gather): input 1 's' is "
     "f32[3], expected i32 or i64",
     [](const Scene& c) { c.n.addGather(c.x, c.s, 0); }},
    {"ITensor::getDimensions: layer '(Unnamed Layer* 0) [Matrix Multiply]' (Matrix Multiply): "
     "input 0 'x' is f32[2,3,4] and input 1 'x' is f32[2,3,4]: rows of 4 and columns of 3 elements "
     "do not multiply",
     [](const Scene& c) {
         c.n.addMatrixMultiply(c.x, nv::MatrixOperation::kNONE, c.x, nv::MatrixOperation::kNONE)
             ->getOutput(0)
             ->getDimensions();
     }},
    {"INetworkDefinition::addEinsum: the equation 'ij,j?' is malformed, expected one such as "
     "'ij,jk->ik'",
     [](const Scene& c) {
         nv::ITensor* const in[] = {&c.x, &c.s};
         c.n.addEinsum(in, 2, "ij,j?");
     }},
    {"INetworkDefinition::addEinsum: layer '(Unnamed Layer* 0) [Einsum]' (Einsum): the equation "
     "'i,j' has 2 terms, but there is 1 input",
     [](const Scene& c) {
         nv::ITensor* const in[] = {&c.s};
         c.n.addEinsum(in, 1, "i,j");
     }},
    {"ITensor::getDimensions: layer '(Unnamed Layer* 0) [Shuffle]' (Shuffle): the first transpose "
     "is [0,0,1], which is no permutation of the dimensions of f32[2,3,4]",
     [](const Scene& c) {
         auto* s = c.n.addShuffle(c.x);
         s->setFirstTranspose({{0, 0, 1}});
         s->getOutput(0)->getDimensions();
     }},
    {"IShuffleLayer::setReshapeDimensions: layer '(Unnamed Layer* 0) [Shuffle]' (Shuffle): the "
     "shape is [-1,-1], expected -1 at most once",
     [](const Scene& c) {
         c.n.addShuffle(c.x)->setReshapeDimensions(dims({-1, -1}));
     }},
    {"ITensor::getDimensions: layer '(Unnamed Layer* 0) [Slice]' (Slice): start [2], size [3] and "
     "stride [1] leave input 0 's', which is f32[3], on axis 0; set another mode than "
     "kSTRICT_BOUNDS",
     [](const Scene& c) {
         c.n.addSlice(c.s, dims({2}), dims({3}), dims({1}))->getOutput(0)->getDimensions();
     }},
    {"ITensor::getDimensions: layer '(Unnamed Layer* 0) [Resize]' (Resize): there are neither "
     "output dimensions nor scales nor input 1",
     [](const Scene& c) { c.n.addResize(c.x)->getOutput(0)->getDimensions(); }},
    {"IGridSampleLayer::setSampleMode: layer '(Unnamed Layer* 1) [GridSample]' (GridSample): the "
     "sample mode is 1, expected kFILL, kCLAMP or kREFLECT",
     [](const Scene& c) {
         nv::ITensor& x = image(c);
         nv::ITensor& grid = *c.n.addIdentity(x)->getOutput(0);
         c.n.addGridSample(x, grid)->setSampleMode(nv::SampleMode::kWRAP);
     }},
    {"INetworkDefinition::addQuantize: the type is FLOAT, expected INT8, UINT8, FP8, INT4 "
     "or FP4",
     [](const Scene& c) { c.n.addQuantize(c.x, c.s, nv::DataType::kFLOAT); }},
    {"ITensor::getDimensions: layer '(Unnamed Layer* 0) [Quantize]' (Quantize): input 1 's' is "
     "f32[3], but no axis is set; set one with setAxis()",
     [](const Scene& c) {
         c.n.addQuantize(c.x, c.s, nv::DataType::kINT8)->getOutput(0)->getDimensions();
     }},
    {"INetworkDefinition::addDynamicQuantizeV2: scales of type E8M0 are not supported; take FP8",
     [](const Scene& c) {
         c.n.addDynamicQuantizeV2(c.x, dims({1, 1, 4}), nv::DataType::kFP8, nv::DataType::kE8M0);
     }},
    {"INetworkDefinition::addLRN: the window is 4, expected an odd number of 1 or more",
     [](const Scene& c) { c.n.addLRN(c.x, 4, 1, 1, 1); }},
    {"INetworkDefinition::addPaddingNd: the padding before [1] has 1 sizes, expected 2",
     [](const Scene& c) { c.n.addPaddingNd(c.x, dims({1}), dims({1})); }},
    {"INetworkDefinition::addCast: data type 40 does not exist",
     [](const Scene& c) { c.n.addCast(c.x, static_cast<nv::DataType>(40)); }},
    {"INetworkDefinition::addSelect: layer '(Unnamed Layer* 0) [Select]' (Select): input 0 's' is "
     "f32[3], expected bool",
     [](const Scene& c) { c.n.addSelect(c.s, c.s, c.s); }},
    {"ILayer::setInput: layer '(Unnamed Layer* 0) [Identity]' (Identity): index 1 is out of range: "
     "it has 1 input",
     [](const Scene& c) { c.n.addIdentity(c.x)->setInput(1, c.s); }},
    {"ILayer::setNbRanks: layer '(Unnamed Layer* 0) [Identity]' (Identity): nbRanks is 0, expected "
     "1 or more",
     [](const Scene& c) { c.n.addIdentity(c.x)->setNbRanks(0); }},
    {"ITensor::setDimensions: tensor '(Unnamed Layer* 0) [Identity]_output' is no network input: "
     "its dimensions follow from layer '(Unnamed Layer* 0) [Identity]'",
     [](const Scene& c) { c.n.addIdentity(c.x)->getOutput(0)->setDimensions(dims({1})); }},
    {"ITensor::setDimensionName: index 7 is out of range: input 'x' has 3 dimensions",
     [](const Scene& c) { c.x.setDimensionName(7, "n"); }},
    {"INetworkDefinition::markOutput: tensor 'x' is an output already",
     [](const Scene& c) {
         c.n.markOutput(c.x);
         c.n.markOutput(c.x);
     }},
    {"INetworkDefinition::unmarkOutput: tensor 'x' is no output",
     [](const Scene& c) { c.n.unmarkOutput(c.x); }},
    {"INetworkDefinition::markOutputForShapes: tensor 'x' is f32[2,3,4], expected INT32 or INT64 "
     "of at most one dimension",
     [](const Scene& c) { c.n.markOutputForShapes(c.x); }},
    {"INetworkDefinition::removeTensor: tensor 'x' is used by layer '(Unnamed Layer* 0) "
     "[Identity]' (Identity)",
     [](const Scene& c) {
         c.n.addIdentity(c.x);
         c.n.removeTensor(c.x);
     }},
    {"INetworkDefinition::setWeightsName: no layer uses the weights for 'w'",
     [](const Scene& c) { c.n.setWeightsName(four, "w"); }},
    {"INetworkDefinition::markWeightsRefittable: no weights have the name 'w'",
     [](const Scene& c) { c.n.markWeightsRefittable("w"); }},
    {"IIfConditional::setCondition: layer '(Unnamed Layer* 0) [Condition]' (Condition): input 0 "
     "'b' is bool[3], expected 0 dimensions",
     [](const Scene& c) { c.n.addIfConditional()->setCondition(c.b); }},
    {"IBuilder::buildSerializedNetwork: the network has no outputs; mark at least one tensor with "
     "markOutput()",
     [](const Scene& c) { c.build(); }},
    {"IBuilder::buildSerializedNetwork: of kREFIT, kREFIT_IDENTICAL and kREFIT_INDIVIDUAL more "
     "than one is set",
     [](const Scene& c) {
         c.config.setFlag(nv::BuilderFlag::kREFIT);
         c.config.setFlag(nv::BuilderFlag::kREFIT_IDENTICAL);
         c.build();
     }},
    {"IBuilder::buildSerializedNetwork: kINT8 is set, but the ranges of tensors are not known: "
     "give a calibrator (setInt8Calibrator), dynamic ranges (ITensor::setDynamicRange) or a "
     "network with quantise layers, or ask for ranges guessed from random inputs, which make "
     "results poor, with setBuildRoute(\"-int8_without_calibration=on\")",
     [](const Scene& c) {
         c.n.markOutput(c.x);
         c.config.setFlag(nv::BuilderFlag::kINT8);
         c.build();
     }},
    {"IBuilder::buildSerializedNetwork: the engine capability is not kSTANDARD; safety and DLA "
     "engines are not supported",
     [](const Scene& c) {
         c.config.setEngineCapability(nv::EngineCapability::kSAFETY);
         c.build();
     }},
    {"IBuilder::createNetworkV2: the flags 2147483648 have bits that are no "
     "NetworkDefinitionCreationFlag",
     [](const Scene& c) { c.builder.createNetworkV2(1U << 31U); }},
    {"IBuilder::setMaxThreads: maxThreads is 0, expected 1 or more",
     [](const Scene& c) { c.builder.setMaxThreads(0); }},
    {"IBuilderConfig::setBuilderOptimizationLevel: the level is 6, expected 0 to 5",
     [](const Scene& c) { c.config.setBuilderOptimizationLevel(6); }},
    {"IBuilderConfig::setMemoryPoolLimit: the pool is 9, expected 0 to 5",
     [](const Scene& c) { c.config.setMemoryPoolLimit(static_cast<nv::MemoryPoolType>(9), 1); }},
    {"IBuilderConfig::addOptimizationProfile: the profile is nullptr",
     [](const Scene& c) { c.config.addOptimizationProfile(nullptr); }},
    {"IOptimizationProfile::setDimensions: input 'x': min is [-1], expected sizes of 0 or more",
     [](const Scene& c) {
         c.builder.createOptimizationProfile()->setDimensions("x", nv::OptProfileSelector::kMIN,
                                                              dims({-1}));
     }},
    {"IOptimizationProfile::setDimensions: input 'x', dimension 0: min is 3 and opt is 2, expected "
     "min <= opt",
     [](const Scene& c) {
         nv::IOptimizationProfile* p = c.builder.createOptimizationProfile();
         p->setDimensions("x", nv::OptProfileSelector::kMIN, dims({3}));
         p->setDimensions("x", nv::OptProfileSelector::kOPT, dims({2}));
     }},
    {"IBuilder::buildSerializedNetwork: optimisation profile 0 has no shapes for input 'open', "
     "which is [-1]",
     [](const Scene& c) {
         c.n.markOutput(*c.n.addInput("open", nv::DataType::kFLOAT, dims({-1})));
         c.config.addOptimizationProfile(c.builder.createOptimizationProfile());
         c.build();
     }},
    {"IBuilderConfig::setComputeCapability: index 0 is out of range: there are 0; see "
     "setNbComputeCapabilities()",
     [](const Scene& c) { c.config.setComputeCapability(nv::ComputeCapability::kSM90, 0); }},
    {"IBuilderConfig::setBuildRoute: the options '-x=1' are not known; there is "
     "-int8_without_calibration=on (or off)",
     [](const Scene& c) { c.config.setBuildRoute("-x=1"); }},
};

using MisuseTest = NetworkTest;

TEST_F(MisuseTest, each_is_told_what_is_wrong) {
    static_assert(std::size(misuses) >= 60);
    for (const Misuse& m : misuses) {
        SCOPED_TRACE(m.message);
        logger.errors.clear();
        config.reset(builder->createBuilderConfig());
        network.reset(builder->createNetworkV2(0));
        std::unique_ptr<nv::INetworkDefinition> other(builder->createNetworkV2(0));
        m.run({*builder, *config, *network, *other, input("x", {2, 3, 4}),
               input("i", nv::DataType::kINT32, {3}), input("b", nv::DataType::kBOOL, {3}),
               input("s", {3})});
        ASSERT_FALSE(logger.errors.empty());
        EXPECT_EQ(logger.errors.back(), m.message);
    }
}

TEST_F(MisuseTest, a_refused_layer_leaves_the_network_as_it_was) {
    nv::ITensor& x = input("x", {2, 3});
    EXPECT_EQ(network->addUnary(x, nv::UnaryOperation::kNOT), nullptr);
    EXPECT_EQ(network->getNbLayers(), 0);
    auto* relu = network->addActivation(x, nv::ActivationType::kRELU);
    relu->setActivationType(static_cast<nv::ActivationType>(50));
    EXPECT_EQ(relu->getActivationType(), nv::ActivationType::kRELU);
    EXPECT_EQ(list(relu->getOutput(0)->getDimensions()), (std::vector<int64_t>{2, 3}));
}

TEST_F(MisuseTest, settings_after_a_question_count) {
    nv::ITensor& x = input("x", {4, 6});
    auto* s = network->addShuffle(x);
    EXPECT_EQ(list(s->getOutput(0)->getDimensions()), (std::vector<int64_t>{4, 6}));
    s->setReshapeDimensions(dims({3, -1}));
    EXPECT_EQ(list(s->getOutput(0)->getDimensions()), (std::vector<int64_t>{3, 8}));
    x.setDimensions(dims({2, 6}));
    EXPECT_EQ(list(s->getOutput(0)->getDimensions()), (std::vector<int64_t>{3, 4}));
}

} // namespace

} // namespace ingot::test
