// SPDX-License-Identifier: Apache-2.0
// Settings of convolutions, pooling, padding, resizing and norms.
#include "api/layer_effects.h"

namespace ingot::test {

namespace {

nv::ITensor& image(OneLayer& n) {
    return n.input("x", {1, 2, 9, 9});
}

nv::IConvolutionLayer* conv(OneLayer& n) {
    return n.net().addConvolutionNd(image(n), 2, nv::DimsHW(3, 3), n.weights(36), n.weights(2));
}

nv::IDeconvolutionLayer* deconv(OneLayer& n) {
    return n.net().addDeconvolutionNd(image(n), 2, nv::DimsHW(3, 3), n.weights(36), n.weights(2));
}

nv::IPoolingLayer* pool(OneLayer& n, nv::PoolingType t = nv::PoolingType::kAVERAGE) {
    auto* l = n.net().addPoolingNd(image(n), t, nv::DimsHW(3, 3));
    l->setStrideNd(nv::DimsHW(2, 2));
    return l;
}

/// With a border, for modes that average over it.
nv::IPoolingLayer* padded_pool(OneLayer& n) {
    auto* l = pool(n);
    l->setPaddingNd(nv::DimsHW(1, 1));
    return l;
}

/// Sizes that do not divide evenly.
nv::IPoolingLayer* even_pool(OneLayer& n) {
    auto* l =
        n.net().addPoolingNd(n.input("x", {1, 2, 8, 8}), nv::PoolingType::kMAX, nv::DimsHW(3, 3));
    l->setStrideNd(nv::DimsHW(2, 2));
    return l;
}

template <class Layer>
Layer* strided(Layer* l) {
    l->setStrideNd(nv::DimsHW(2, 2));
    return l;
}

nv::IPaddingLayer* padding(OneLayer& n) {
    return n.net().addPaddingNd(image(n), nv::DimsHW(1, 1), nv::DimsHW(1, 1));
}

nv::ILRNLayer* lrn(OneLayer& n) {
    return n.net().addLRN(image(n), 3, 1e-4F, 0.75F, 1);
}

const std::array<float, 4> twice = {1, 1, 2, 2};
const std::array<float, 4> less = {1, 1, 0.5F, 0.7F};

nv::IResizeLayer* resize(OneLayer& n, nv::InterpolationMode mode) {
    auto* l = n.net().addResize(image(n));
    l->setScales(less.data(), 4);
    l->setResizeMode(mode);
    l->setCoordinateTransformation(nv::ResizeCoordinateTransformation::kHALF_PIXEL);
    return l;
}

nv::IResizeLayer* to_one(OneLayer& n) {
    auto* l = n.net().addResize(image(n));
    l->setOutputDimensions(nv::Dims4(1, 2, 1, 1));
    l->setCoordinateTransformation(nv::ResizeCoordinateTransformation::kHALF_PIXEL);
    l->setResizeMode(nv::InterpolationMode::kNEAREST);
    return l;
}

nv::IGridSampleLayer* sample(OneLayer& n) {
    return n.net().addGridSample(image(n), n.input("grid", {1, 4, 4, 2}));
}

nv::INormalizationLayer* norm(OneLayer& n) {
    nv::ITensor& x = n.input("x", {1, 4, 6, 6});
    return n.net().addNormalization(x, n.constant({1, 4, 1, 1}), n.constant({1, 4, 1, 1}), 0b1100);
}

nv::IScaleLayer* scale(OneLayer& n) {
    nv::ITensor& x = n.input("x", {1, 3, 3, 3});
    return n.net().addScaleNd(x, nv::ScaleMode::kCHANNEL, n.weights(3), n.weights(3, 2),
                              n.weights(3, 3), 1);
}

} // namespace

std::vector<LayerSetting> window_settings() {
    using Mode = nv::InterpolationMode;
    return {
        SETTING(IConvolutionLayer, StrideNd, conv(n), nv::DimsHW(2, 1)),
        SETTING(IConvolutionLayer, DilationNd, conv(n), nv::DimsHW(1, 2)),
        SETTING(IConvolutionLayer, PaddingNd, conv(n), nv::DimsHW(1, 1)),
        SETTING(IConvolutionLayer, PrePadding, conv(n), nv::DimsHW(2, 1)),
        SETTING(IConvolutionLayer, PostPadding, conv(n), nv::DimsHW(0, 3)),
        SETTING(IConvolutionLayer, PaddingMode, conv(n), nv::PaddingMode::kSAME_UPPER),
        SETTING(IConvolutionLayer, KernelWeights, conv(n), n.weights(36, 5)),
        SETTING(IConvolutionLayer, BiasWeights, conv(n), n.weights(2, 5)),
        SETTING(IConvolutionLayer, KernelSizeNd, conv(n), nv::DimsHW(9, 1)),
        SETTING(IConvolutionLayer, NbGroups, conv(n), 2), // the weights do not fit: refused
        SETTING(IConvolutionLayer, NbOutputMaps, conv(n), 4),
        SETTING(IDeconvolutionLayer, StrideNd, deconv(n), nv::DimsHW(2, 1)),
        SETTING(IDeconvolutionLayer, DilationNd, deconv(n), nv::DimsHW(1, 2)),
        SETTING(IDeconvolutionLayer, PaddingNd, deconv(n), nv::DimsHW(1, 1)),
        SETTING(IDeconvolutionLayer, PrePadding, deconv(n), nv::DimsHW(2, 1)),
        SETTING(IDeconvolutionLayer, PostPadding, deconv(n), nv::DimsHW(0, 3)),
        SETTING(IDeconvolutionLayer, PaddingMode, strided(deconv(n)), nv::PaddingMode::kSAME_UPPER),
        SETTING(IDeconvolutionLayer, KernelWeights, deconv(n), n.weights(36, 5)),
        SETTING(IDeconvolutionLayer, BiasWeights, deconv(n), n.weights(2, 5)),
        SETTING(IDeconvolutionLayer, KernelSizeNd, deconv(n), nv::DimsHW(9, 1)),
        SETTING(IDeconvolutionLayer, NbGroups, deconv(n), 2),
        SETTING(IDeconvolutionLayer, NbOutputMaps, deconv(n), 4),
        SETTING(IPoolingLayer, PoolingType, pool(n), nv::PoolingType::kMAX),
        SETTING(IPoolingLayer, BlendFactor, pool(n, nv::PoolingType::kMAX_AVERAGE_BLEND), 0.25F),
        SETTING(IPoolingLayer, AverageCountExcludesPadding, padded_pool(n), false),
        SETTING(IPoolingLayer, WindowSizeNd, pool(n), nv::DimsHW(2, 4)),
        SETTING(IPoolingLayer, StrideNd, pool(n), nv::DimsHW(1, 2)),
        SETTING(IPoolingLayer, PaddingNd, pool(n), nv::DimsHW(1, 1)),
        SETTING(IPoolingLayer, PrePadding, pool(n), nv::DimsHW(0, 1)),
        SETTING(IPoolingLayer, PostPadding, pool(n), nv::DimsHW(2, 0)),
        SETTING(IPoolingLayer, PaddingMode, even_pool(n), nv::PaddingMode::kEXPLICIT_ROUND_UP),
        SETTING(IPaddingLayer, PrePaddingNd, padding(n), nv::DimsHW(0, 2)),
        SETTING(IPaddingLayer, PostPaddingNd, padding(n), nv::DimsHW(-1, 2)),
        SETTING(ILRNLayer, WindowSize, lrn(n), 5),
        SETTING(ILRNLayer, Alpha, lrn(n), 0.5F),
        SETTING(ILRNLayer, Beta, lrn(n), 0.5F),
        SETTING(ILRNLayer, K, lrn(n), 2),
        SETTING(IResizeLayer, OutputDimensions, resize(n, Mode::kLINEAR), nv::Dims4(1, 2, 3, 3)),
        SETTING(IResizeLayer, Scales, resize(n, Mode::kLINEAR), twice.data(), 4),
        SETTING(IResizeLayer, ResizeMode, resize(n, Mode::kLINEAR), Mode::kCUBIC),
        SETTING(IResizeLayer, CoordinateTransformation, resize(n, Mode::kLINEAR),
                nv::ResizeCoordinateTransformation::kALIGN_CORNERS),
        SETTING(IResizeLayer, AlignCorners, resize(n, Mode::kLINEAR), true),
        SETTING(IResizeLayer, SelectorForSinglePixel, to_one(n), nv::ResizeSelector::kUPPER),
        SETTING(IResizeLayer, NearestRounding, resize(n, Mode::kNEAREST),
                nv::ResizeRoundMode::kCEIL),
        SETTING(IResizeLayer, CubicCoeff, resize(n, Mode::kCUBIC), -0.5F),
        SETTING(IResizeLayer, ExcludeOutside, resize(n, Mode::kCUBIC), true),
        SETTING(IGridSampleLayer, InterpolationMode, sample(n), Mode::kNEAREST),
        SETTING(IGridSampleLayer, AlignCorners, sample(n), true),
        SETTING(IGridSampleLayer, SampleMode, sample(n), nv::SampleMode::kREFLECT),
        SETTING(INormalizationLayer, Epsilon, norm(n), 0.5F),
        SETTING(INormalizationLayer, Axes, norm(n), 0b1000U),
        SETTING(INormalizationLayer, NbGroups, norm(n), 2),
        SETTING(INormalizationLayer, ComputePrecision, norm(n), nv::DataType::kHALF),
        SETTING(IScaleLayer, Mode, scale(n), nv::ScaleMode::kUNIFORM),
        SETTING(IScaleLayer, Shift, scale(n), n.weights(3, 7)),
        SETTING(IScaleLayer, Scale, scale(n), n.weights(3, 7)),
        SETTING(IScaleLayer, Power, scale(n), n.weights(3, 7)),
        SETTING(IScaleLayer, ChannelAxis, scale(n), 2),
    };
}

} // namespace ingot::test
