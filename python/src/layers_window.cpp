// SPDX-License-Identifier: Apache-2.0
// Layers with windows and weights: convolution, pooling, normalisation, resizing.
#include "layers.h"

#include <algorithm>

namespace ingot::python {

namespace {

template <class T, class C>
void bind_windows(C& c) {
    prop<&T::getPrePadding, &T::setPrePadding>(c, "pre_padding", "Before each spatial dimension.");
    prop<&T::getPostPadding, &T::setPostPadding>(c, "post_padding", "After each of them.");
    prop<&T::getPaddingMode, &T::setPaddingMode>(c, "padding_mode", "PaddingMode.");
    prop<&T::getPaddingNd, &T::setPaddingNd>(c, "padding_nd", "Pre- and post-padding alike.");
    prop<&T::getStrideNd, &T::setStrideNd>(c, "stride_nd", "Default 1.");
}

template <class T, class C>
void bind_kernels(C& c) {
    bind_windows<T>(c);
    prop<&T::getNbOutputMaps, &T::setNbOutputMaps>(c, "num_output_maps", "Output channels.");
    prop<&T::getNbGroups, &T::setNbGroups>(c, "num_groups", "Divides the channels. Default 1.");
    prop<&T::getKernelWeights, &T::setKernelWeights>(c, "kernel", "A numpy array.");
    prop<&T::getBiasWeights, &T::setBiasWeights>(c, "bias", "A numpy array; empty: no bias.");
    prop<&T::getKernelSizeNd, &T::setKernelSizeNd>(c, "kernel_size_nd", "One to three sizes.");
    prop<&T::getDilationNd, &T::setDilationNd>(c, "dilation_nd", "Distance of the kernel's taps.");
}

void bind_convolutions(nb::module_& m) {
    auto convolution = layer<trt::IConvolutionLayer>(
        m, "IConvolutionLayer",
        "Cross-correlation over one to three spatial dimensions. Inputs: N C spatial; kernel (K, "
        "C / groups, window) and bias (K) as inputs 1 and 2 when the weights are empty.");
    bind_kernels<trt::IConvolutionLayer>(convolution);
    auto deconvolution = layer<trt::IDeconvolutionLayer>(
        m, "IDeconvolutionLayer",
        "Transposed convolution. Padding crops the output. Kernel: C, K / groups, window.");
    bind_kernels<trt::IDeconvolutionLayer>(deconvolution);
    auto pooling = layer<trt::IPoolingLayer>(m, "IPoolingLayer", "Reduces windows.");
    bind_windows<trt::IPoolingLayer>(pooling);
    INGOT_PROP(pooling, IPoolingLayer, "type", PoolingType, "PoolingType.");
    INGOT_PROP(pooling, IPoolingLayer, "blend_factor", BlendFactor, "0 to 1. Default 0.");
    INGOT_PROP(pooling, IPoolingLayer, "average_count_excludes_padding",
               AverageCountExcludesPadding, "Default True.");
    INGOT_PROP(pooling, IPoolingLayer, "window_size_nd", WindowSizeNd, "One to three sizes.");
    auto padding = layer<trt::IPaddingLayer>(
        m, "IPaddingLayer", "Zeros around, or (negative) cropping of, the last two dimensions.");
    INGOT_PROP(padding, IPaddingLayer, "pre_padding_nd", PrePaddingNd,
               "Before the last two dimensions; negative crops.");
    INGOT_PROP(padding, IPaddingLayer, "post_padding_nd", PostPaddingNd,
               "After the last two dimensions; negative crops.");
}

void bind_normalization(nb::module_& m) {
    auto lrn = layer<trt::ILRNLayer>(
        m, "ILRNLayer", "x / (k + alpha / window * sum of squares over window channels) ^ beta.");
    INGOT_PROP(lrn, ILRNLayer, "window_size", WindowSize, "Odd.");
    INGOT_PROP(lrn, ILRNLayer, "alpha", Alpha, "Factor of the mean of squares.");
    INGOT_PROP(lrn, ILRNLayer, "beta", Beta, "The exponent.");
    INGOT_PROP(lrn, ILRNLayer, "k", K, "What is added to the squares.");
    auto scale = layer<trt::IScaleLayer>(m, "IScaleLayer", "(x * scale + shift) ^ power.");
    INGOT_PROP(scale, IScaleLayer, "mode", Mode, "ScaleMode.");
    INGOT_PROP(scale, IScaleLayer, "shift", Shift, "A numpy array.");
    INGOT_PROP(scale, IScaleLayer, "scale", Scale, "A numpy array.");
    INGOT_PROP(scale, IScaleLayer, "power", Power, "A numpy array.");
    INGOT_PROP(scale, IScaleLayer, "channel_axis", ChannelAxis,
               "Default 1; the third from the end for add_scale().");
    auto norm = layer<trt::INormalizationLayer>(
        m, "INormalizationLayer",
        "(x - mean) / sqrt(variance + epsilon) * scale + bias over axes. Inputs: tensor, scale, "
        "bias.");
    INGOT_PROP(norm, INormalizationLayer, "epsilon", Epsilon, "Default 1e-5.");
    INGOT_PROP(norm, INormalizationLayer, "axes", Axes, "Bits of the axes.");
    INGOT_PROP(norm, INormalizationLayer, "num_groups", NbGroups, "Groups of channels.");
    INGOT_PROP(norm, INormalizationLayer, "compute_precision", ComputePrecision,
               "Older setting: the type that is computed in. Default FLOAT.");
    prop_ro<&trt::INormalizationLayer::isV2>(norm, "is_v2",
                                             "Whether add_normalization_v2() made it.");
}

std::vector<float> scales_of(const trt::IResizeLayer& layer) {
    float scales[trt::Dims::MAX_DIMS];
    const int32_t count = layer.getScales(trt::Dims::MAX_DIMS, scales);
    return {scales, scales + std::clamp(count, 0, trt::Dims::MAX_DIMS)};
}

void bind_sampling(nb::module_& m) {
    auto resize = layer<trt::IResizeLayer>(
        m, "IResizeLayer", "Resamples. The size comes from shape, scales, or input 1.");
    INGOT_PROP(resize, IResizeLayer, "shape", OutputDimensions,
               "Of the result; empty when scales or input 1 give it.");
    INGOT_PROP(resize, IResizeLayer, "resize_mode", ResizeMode, "Default NEAREST.");
    INGOT_PROP(resize, IResizeLayer, "coordinate_transformation", CoordinateTransformation,
               "Default ASYMMETRIC.");
    INGOT_PROP(resize, IResizeLayer, "selector_for_single_pixel", SelectorForSinglePixel,
               "What is taken when an output dimension has size 1. Default FORMULA.");
    INGOT_PROP(resize, IResizeLayer, "nearest_rounding", NearestRounding, "Default FLOOR.");
    INGOT_PROP(resize, IResizeLayer, "cubic_coeff", CubicCoeff, "Default -0.75.");
    INGOT_PROP(resize, IResizeLayer, "exclude_outside", ExcludeOutside, "Default False.");
    INGOT_PROP(resize, IResizeLayer, "align_corners", AlignCorners,
               "Older form of coordinate_transformation: True stands for ALIGN_CORNERS.");
    resize.def_prop_rw(
        "scales", &scales_of,
        [](trt::IResizeLayer& l, const std::vector<float>& scales) {
            l.setScales(scales.data(), static_cast<int32_t>(scales.size()));
        },
        "A factor per dimension; [] when the shape is given otherwise.");
    auto grid = layer<trt::IGridSampleLayer>(
        m, "IGridSampleLayer", "Samples N C H W at the places of input 1, N H' W' 2, in -1 to 1.");
    INGOT_PROP(grid, IGridSampleLayer, "interpolation_mode", InterpolationMode, "Default LINEAR.");
    INGOT_PROP(grid, IGridSampleLayer, "align_corners", AlignCorners, "Default False.");
    INGOT_PROP(grid, IGridSampleLayer, "sample_mode", SampleMode, "FILL, CLAMP or REFLECT.");
}

} // namespace

void bind_window_layers(nb::module_& m) {
    bind_convolutions(m);
    bind_normalization(m);
    bind_sampling(m);
}

} // namespace ingot::python
