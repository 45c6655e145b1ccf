// SPDX-License-Identifier: Apache-2.0
// Every setting of every layer is kept, and arguments of add...() may be set later with the same
// effect.
#include "api/network_fixture.h"

namespace ingot::test {

namespace {

using Settings = NetworkTest;

/// Comparison and printing of settings.
template <class T>
auto plain(const T& v) {
    if constexpr (std::is_base_of_v<nv::Dims, T>) {
        return list(v);
    } else if constexpr (std::is_same_v<T, nv::Permutation>) {
        return std::vector<int32_t>(v.order, v.order + nv::Dims::MAX_DIMS);
    } else if constexpr (std::is_same_v<T, nv::Weights>) {
        return std::pair(v.values, v.count);
    } else {
        return v;
    }
}

// The value differs from the layer's, and is returned once set.
#define KEEPS(layer, Name, ...)                                                                    \
    {                                                                                              \
        EXPECT_NE(plain((layer)->get##Name()), plain(__VA_ARGS__)) << #Name " is so already";      \
        (layer)->set##Name(__VA_ARGS__);                                                           \
        EXPECT_EQ(plain((layer)->get##Name()), plain(__VA_ARGS__)) << #Name;                       \
    }

TEST_F(Settings, of_windows_are_kept) {
    nv::ITensor& x = input("x", {1, 2, 9, 9});
    Tensor w = numbers({2, 2, 3, 3});
    const nv::Weights kernel = weights(w);
    const nv::Weights other = weights(numbers({4, 1, 2, 2}));
    const nv::Weights bias = weights(numbers({4}));
    auto windows = [&](auto* layer) {
        KEEPS(layer, NbOutputMaps, 4)
        KEEPS(layer, NbGroups, 2)
        KEEPS(layer, KernelWeights, other)
        KEEPS(layer, BiasWeights, bias)
        KEEPS(layer, KernelSizeNd, nv::DimsHW(2, 2))
        KEEPS(layer, StrideNd, nv::DimsHW(2, 1))
        KEEPS(layer, DilationNd, nv::DimsHW(1, 2))
        KEEPS(layer, PaddingNd, nv::DimsHW(1, 1))
        KEEPS(layer, PrePadding, nv::DimsHW(2, 1))
        KEEPS(layer, PostPadding, nv::DimsHW(0, 3))
        KEEPS(layer, PaddingMode, nv::PaddingMode::kSAME_UPPER)
    };
    windows(network->addConvolutionNd(x, 2, nv::DimsHW(3, 3), kernel, {}));
    windows(network->addDeconvolutionNd(x, 2, nv::DimsHW(3, 3), kernel, {}));
    auto* pool = network->addPoolingNd(x, nv::PoolingType::kMAX, nv::DimsHW(3, 3));
    KEEPS(pool, PoolingType, nv::PoolingType::kMAX_AVERAGE_BLEND)
    KEEPS(pool, BlendFactor, 0.25F)
    KEEPS(pool, AverageCountExcludesPadding, false)
    KEEPS(pool, WindowSizeNd, nv::DimsHW(2, 4))
    KEEPS(pool, StrideNd, nv::DimsHW(2, 2))
    KEEPS(pool, PaddingNd, nv::DimsHW(1, 1))
    KEEPS(pool, PrePadding, nv::DimsHW(0, 1))
    KEEPS(pool, PostPadding, nv::DimsHW(1, 0))
    KEEPS(pool, PaddingMode, nv::PaddingMode::kEXPLICIT_ROUND_UP)
    auto* padding = network->addPaddingNd(x, nv::DimsHW(1, 1), nv::DimsHW(1, 1));
    KEEPS(padding, PrePaddingNd, nv::DimsHW(0, 2))
    KEEPS(padding, PostPaddingNd, nv::DimsHW(-1, 2))
    auto* lrn = network->addLRN(x, 3, 1e-4F, 0.75F, 1);
    KEEPS(lrn, WindowSize, 5)
    KEEPS(lrn, Alpha, 0.5F)
    KEEPS(lrn, Beta, 0.5F)
    KEEPS(lrn, K, 2)
}

TEST_F(Settings, of_sampling_and_norms_are_kept) {
    nv::ITensor& x = input("x", {1, 4, 6, 6});
    auto* resize = network->addResize(x);
    KEEPS(resize, OutputDimensions, nv::Dims4(1, 4, 3, 3))
    const float scales[] = {1, 1, 2, 0.5F};
    resize->setScales(scales, 4);
    float read[4] = {};
    EXPECT_EQ(resize->getScales(4, read), 4);
    EXPECT_TRUE(std::equal(read, read + 4, scales));
    KEEPS(resize, ResizeMode, nv::InterpolationMode::kCUBIC)
    KEEPS(resize, CoordinateTransformation, nv::ResizeCoordinateTransformation::kHALF_PIXEL)
    KEEPS(resize, SelectorForSinglePixel, nv::ResizeSelector::kUPPER)
    KEEPS(resize, NearestRounding, nv::ResizeRoundMode::kCEIL)
    KEEPS(resize, CubicCoeff, -0.5F)
    KEEPS(resize, ExcludeOutside, true)
    auto* sample = network->addGridSample(x, input("grid", {1, 2, 2, 2}));
    KEEPS(sample, InterpolationMode, nv::InterpolationMode::kNEAREST)
    KEEPS(sample, AlignCorners, true)
    KEEPS(sample, SampleMode, nv::SampleMode::kREFLECT)
    Tensor one = numbers({1, 4, 1, 1});
    auto* norm = network->addNormalization(x, constant(one), constant(one), 0b1100);
    KEEPS(norm, Epsilon, 0.5F)
    KEEPS(norm, Axes, 0b1110U)
    KEEPS(norm, NbGroups, 2)
    KEEPS(norm, ComputePrecision, nv::DataType::kHALF)
    const nv::Weights four = weights(numbers({4}));
    auto* scale = network->addScaleNd(x, nv::ScaleMode::kUNIFORM, {}, {}, {}, 1);
    KEEPS(scale, Mode, nv::ScaleMode::kCHANNEL)
    KEEPS(scale, Shift, four)
    KEEPS(scale, Scale, four)
    KEEPS(scale, Power, four)
    KEEPS(scale, ChannelAxis, 0)
}

TEST_F(Settings, of_pointwise_layers_and_reductions_are_kept) {
    nv::ITensor& x = input("x", {4, 6});
    auto* activation = network->addActivation(x, nv::ActivationType::kRELU);
    KEEPS(activation, ActivationType, nv::ActivationType::kCLIP)
    KEEPS(activation, Alpha, -1.5F)
    KEEPS(activation, Beta, 2.5F)
    auto* sum = network->addElementWise(x, x, nv::ElementWiseOperation::kSUM);
    KEEPS(sum, Operation, nv::ElementWiseOperation::kPOW)
    auto* unary = network->addUnary(x, nv::UnaryOperation::kEXP);
    KEEPS(unary, Operation, nv::UnaryOperation::kABS)
    auto* softmax = network->addSoftMax(x);
    KEEPS(softmax, Axes, 0b10U)
    auto* reduce = network->addReduce(x, nv::ReduceOperation::kSUM, 1, false);
    KEEPS(reduce, Operation, nv::ReduceOperation::kMAX)
    KEEPS(reduce, ReduceAxes, 0b11U)
    KEEPS(reduce, KeepDimensions, true)
    auto* top = network->addTopK(x, nv::TopKOperation::kMAX, 2, 1);
    KEEPS(top, Operation, nv::TopKOperation::kMIN)
    KEEPS(top, K, 3)
    KEEPS(top, ReduceAxes, 0b10U)
    KEEPS(top, IndicesType, nv::DataType::kINT64)
    auto* product = network->addMatrixMultiply(x, nv::MatrixOperation::kNONE, x,
                                               nv::MatrixOperation::kTRANSPOSE);
    product->setOperation(0, nv::MatrixOperation::kTRANSPOSE);
    product->setOperation(1, nv::MatrixOperation::kNONE);
    EXPECT_EQ(product->getOperation(0), nv::MatrixOperation::kTRANSPOSE);
    EXPECT_EQ(product->getOperation(1), nv::MatrixOperation::kNONE);
    nv::ITensor* both[] = {&x, &x};
    auto* einsum = network->addEinsum(both, 2, "ij,ij->i");
    EXPECT_TRUE(einsum->setEquation("ij,ik->jk"));
    EXPECT_STREQ(einsum->getEquation(), "ij,ik->jk");
    EXPECT_FALSE(einsum->setEquation("i?j->"));
    EXPECT_STREQ(einsum->getEquation(), "ij,ik->jk");
    auto* running =
        network->addCumulative(x, scalar(0), nv::CumulativeOperation::kSUM, false, false);
    KEEPS(running, Exclusive, true)
    KEEPS(running, Reverse, true)
    EXPECT_TRUE(running->setOperation(nv::CumulativeOperation::kSUM));
    auto* cast = network->addCast(x, nv::DataType::kHALF);
    KEEPS(cast, ToType, nv::DataType::kINT32)
}

TEST_F(Settings, of_shapes_and_indices_are_kept) {
    nv::ITensor& x = input("x", {2, 3, 4});
    nv::ITensor& at = input("at", nv::DataType::kINT32, {2, 3, 4});
    nv::ITensor* both[] = {&x, &x};
    auto* joined = network->addConcatenation(both, 2);
    KEEPS(joined, Axis, 2)
    auto* shuffle = network->addShuffle(x);
    KEEPS(shuffle, FirstTranspose, nv::Permutation{{2, 0, 1, 3, 4, 5, 6, 7}})
    KEEPS(shuffle, ReshapeDimensions, nv::Dims2(0, -1))
    KEEPS(shuffle, SecondTranspose, nv::Permutation{{1, 0, 2, 3, 4, 5, 6, 7}})
    KEEPS(shuffle, ZeroIsPlaceholder, false)
    auto* slice = network->addSlice(x, nv::Dims3(0, 0, 0), nv::Dims3(1, 1, 1), nv::Dims3(1, 1, 1));
    KEEPS(slice, Start, nv::Dims3(1, 0, 1))
    KEEPS(slice, Size, nv::Dims3(1, 2, 2))
    KEEPS(slice, Stride, nv::Dims3(1, 1, 2))
    KEEPS(slice, Mode, nv::SampleMode::kCLAMP)
    KEEPS(slice, Axes, nv::Dims3(0, 1, 2))
    auto* gather = network->addGatherV2(x, at, nv::GatherMode::kDEFAULT);
    KEEPS(gather, Mode, nv::GatherMode::kND)
    KEEPS(gather, GatherAxis, 1)
    KEEPS(gather, NbElementWiseDims, 1)
    auto* scatter = network->addScatter(x, at, x, nv::ScatterMode::kELEMENT);
    KEEPS(scatter, Axis, 2)
    KEEPS(scatter, Mode, nv::ScatterMode::kND)
    auto* hot = network->addOneHot(at, constant(numbers({2})), scalar(5), -1);
    KEEPS(hot, Axis, 0)
    auto* found = network->addNonZero(x);
    KEEPS(found, IndicesType, nv::DataType::kINT64)
    Tensor values = numbers({6});
    auto* fixed = network->addConstant(nv::Dims2(2, 3), weights(values));
    KEEPS(fixed, Dimensions, nv::Dims2(3, 2))
    const nv::Weights other = weights(numbers({6}));
    KEEPS(fixed, Weights, other)
    auto* fill =
        network->addFill(nv::Dims2(2, 3), nv::FillOperation::kLINSPACE, nv::DataType::kFLOAT);
    KEEPS(fill, Dimensions, nv::Dims2(3, 2))
    KEEPS(fill, Operation, nv::FillOperation::kRANDOM_UNIFORM)
    KEEPS(fill, Alpha, -2.5)
    KEEPS(fill, Beta, 7.5)
    KEEPS(fill, ToType, nv::DataType::kHALF)
    KEEPS(fill, AlphaInt64, int64_t{1} << 40)
    KEEPS(fill, BetaInt64, int64_t{3} << 40)
    EXPECT_TRUE(fill->isAlphaBetaInt64());
    auto* nms = network->addNMS(input("boxes", {1, 5, 4}), input("scores", {1, 5, 2}), scalar(3));
    KEEPS(nms, BoundingBoxFormat, nv::BoundingBoxFormat::kCENTER_SIZES)
    KEEPS(nms, TopKBoxLimit, 4)
    KEEPS(nms, IndicesType, nv::DataType::kINT64)
    auto* reversed = network->addReverseSequence(x, indices({1, 2, 3}));
    KEEPS(reversed, BatchAxis, 0)
    KEEPS(reversed, SequenceAxis, 1)
    auto* assertion = network->addAssertion(constant(Tensor::scalar(DType::Bool, 1)), "a message");
    assertion->setMessage("another");
    EXPECT_STREQ(assertion->getMessage(), "another");
}

TEST_F(Settings, of_quantisation_and_transformers_are_kept) {
    nv::ITensor& x = input("x", {2, 4, 3, 16});
    nv::ITensor& one = constant(Tensor::scalar(DType::F32, 1));
    auto* q = network->addQuantize(x, one, nv::DataType::kINT8);
    KEEPS(q, Axis, 1)
    KEEPS(q, ToType, nv::DataType::kFP8)
    KEEPS(q, BlockShape, nv::Dims4(1, 1, 1, 16))
    auto* dq = network->addDequantize(*q->getOutput(0), one, nv::DataType::kFLOAT);
    KEEPS(dq, Axis, 1)
    KEEPS(dq, ToType, nv::DataType::kHALF)
    KEEPS(dq, BlockShape, nv::Dims4(1, 1, 1, 16))
    auto* dynamic = network->addDynamicQuantizeV2(x, nv::Dims4(1, 1, 1, 16), nv::DataType::kFP4,
                                                  nv::DataType::kFP8);
    KEEPS(dynamic, ToType, nv::DataType::kFP8)
    KEEPS(dynamic, ScaleType, nv::DataType::kFLOAT)
    KEEPS(dynamic, BlockShape, nv::Dims4(1, 1, 1, 8))
    KEEPS(dynamic, Axis, 1)
    KEEPS(dynamic, BlockSize, 2)
    nv::ITensor& angles = input("angles", {2, 3, 8});
    auto* rotary = network->addRotaryEmbedding(x, angles, angles, false, 0);
    KEEPS(rotary, Interleaved, true)
    KEEPS(rotary, RotaryEmbeddingDim, 8)
    nv::ITensor& starts = input("starts", nv::DataType::kINT32, {3});
    auto* cache = network->addKVCacheUpdate(x, x, indices({0, 0}), nv::KVCacheMode::kLINEAR);
    EXPECT_TRUE(cache->setCacheMode(nv::KVCacheMode::kLINEAR));
    KEEPS(cache, UpdateForm, nv::AttentionIOForm::kPACKED_NHD)
    KEEPS(cache, UpdateLengths, &starts)
    auto* a = network->addAttentionV2(x, x, x, nv::AttentionNormalizationOp::kSOFTMAX,
                                      nv::CausalMaskKind::kNONE);
    KEEPS(a, NormalizationOperation, nv::AttentionNormalizationOp::kNONE)
    KEEPS(a, CausalKind, nv::CausalMaskKind::kLOWER_RIGHT)
    KEEPS(a, Decomposable, true)
    KEEPS(a, NormalizationQuantizeToType, nv::DataType::kFP8)
    KEEPS(a, QueryForm, nv::AttentionIOForm::kPACKED_NHD)
    KEEPS(a, KeyValueForm, nv::AttentionIOForm::kPACKED_NHD)
    KEEPS(a, QueryLengths, &starts)
    KEEPS(a, KeyValueLengths, &starts)
    EXPECT_EQ(a->getMask(), nullptr);
    EXPECT_TRUE(a->setNormalizationQuantizeScale(one));
    EXPECT_EQ(a->getNormalizationQuantizeScale(), &one);
    EXPECT_TRUE(a->setMetadata("layer.0"));
    EXPECT_STREQ(a->getMetadata(), "layer.0");
    auto* border =
        static_cast<nv::IAttentionBoundaryLayer*>(network->getLayer(network->getNbLayers() - 1));
    EXPECT_EQ(border->getAttention(), a);
}

TEST_F(Settings, of_experts_are_kept) {
    nv::ITensor& x = input("x", {1, 2, 4});
    nv::ITensor& scale = constant(Tensor::scalar(DType::F32, 1));
    auto* moe = network->addMoE(x, constant(Tensor::i64({1, 0}).reshaped({1, 2, 1})),
                                constant(numbers({1, 2, 1})));
    KEEPS(moe, ActivationType, nv::MoEActType::kSILU)
    KEEPS(moe, QuantizationToType, nv::DataType::kFP8)
    KEEPS(moe, QuantizationBlockShape, nv::Dims4(1, 1, 1, 2))
    KEEPS(moe, DynQOutputScaleType, nv::DataType::kFP8)
    KEEPS(moe, SwigluParamLimit, 7.0F)
    KEEPS(moe, SwigluParamAlpha, 1.75F)
    KEEPS(moe, SwigluParamBeta, 1.0F)
    moe->setSwigluParams(3, 2, 0.5F);
    EXPECT_EQ(moe->getSwigluParamLimit(), 3);
    EXPECT_EQ(moe->getSwigluParamAlpha(), 2);
    EXPECT_EQ(moe->getSwigluParamBeta(), 0.5F);
    moe->setQuantizationStatic(scale, nv::DataType::kFP4);
    EXPECT_EQ(moe->getQuantizationToType(), nv::DataType::kFP4);
    EXPECT_EQ(moe->getQuantizationBlockShape().nbDims, 0);
    EXPECT_TRUE(logger.errors.empty()) << logger.errors.back();
}

TEST_F(Settings, of_loops_and_tensors_are_kept) {
    nv::ITensor& x = input("x", {4, 3});
    nv::ILoop* loop = network->addLoop();
    loop->setName("rows");
    EXPECT_STREQ(loop->getName(), "rows");
    auto* limit = loop->addTripLimit(scalar(3), nv::TripLimit::kCOUNT);
    EXPECT_EQ(limit->getTripLimit(), nv::TripLimit::kCOUNT);
    EXPECT_EQ(limit->getLoop(), loop);
    auto* each = loop->addIterator(x);
    KEEPS(each, Axis, 1)
    KEEPS(each, Reverse, true)
    auto* all = loop->addLoopOutput(*each->getOutput(0), nv::LoopOutput::kCONCATENATE, 0);
    EXPECT_EQ(all->getLoopOutput(), nv::LoopOutput::kCONCATENATE);
    KEEPS(all, Axis, 1)
    EXPECT_TRUE(x.isNetworkInput());
    EXPECT_TRUE(x.isExecutionTensor());
    EXPECT_FALSE(x.isNetworkOutput());
    network->markOutput(*all->getOutput(0));
    EXPECT_TRUE(all->getOutput(0)->isNetworkOutput());
    KEEPS(&x, AllowedFormats, nv::TensorFormats{1})
    KEEPS(&x, Dimensions, nv::Dims2(5, 2))
    x.setDimensionName(0, "batch");
    EXPECT_STREQ(x.getDimensionName(0), "batch");
    auto* identity = network->addIdentity(x);
    identity->setMetadata("from here");
    EXPECT_STREQ(identity->getMetadata(), "from here");
    EXPECT_EQ(identity->getOutputType(0), nv::DataType::kFLOAT);
    EXPECT_EQ(identity->getNbRanks(), 1);
}

TEST_F(Settings, places_that_are_not_there_are_reported) {
    input("x", {2});
    auto said = [&] { return logger.errors.empty() ? std::string() : logger.errors.back(); };
    EXPECT_EQ(network->getInput(1), nullptr);
    EXPECT_EQ(said(), "INetworkDefinition::getInput: index 1 is out of range: there are 1");
    EXPECT_EQ(network->getOutput(0), nullptr);
    EXPECT_EQ(said(), "INetworkDefinition::getOutput: index 0 is out of range: there are 0");
    EXPECT_EQ(network->getLayer(-1), nullptr);
    EXPECT_EQ(said(), "INetworkDefinition::getLayer: index -1 is out of range: there are 0");
}

} // namespace

} // namespace ingot::test
