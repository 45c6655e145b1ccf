// SPDX-License-Identifier: Apache-2.0
// Layers with windows and weights: convolution, pooling, normalisation, resizing. Included by
// NvInfer.h.
//
// Shapes are those of images without regard to memory format: N C H W, or N C D H W. "Spatial" are
// the dimensions after C. Weights given to a layer are not copied: they live until the network is
// built (until the refit ends, for a refittable engine).
#pragma once

#include "ingot/tensor.h"

namespace nvinfer1 {

/// Rounding of output sizes, and whether the layer or its settings choose the padding.
enum class PaddingMode : int32_t {
    kEXPLICIT_ROUND_DOWN = 0, ///< floor((in + pre + post - window) / stride) + 1
    kEXPLICIT_ROUND_UP = 1,   ///< The same with ceil
    kSAME_UPPER = 2,          ///< ceil(in / stride); the odd one is padded after
    kSAME_LOWER = 3,          ///< ceil(in / stride); the odd one is padded before
};
INGOT_ENUM_MAX(PaddingMode, 4)

/// Cross-correlation over one to three spatial dimensions.
///
/// Inputs: 0 the tensor, N C spatial; 1 the kernel and 2 the bias as tensors, when the weights are
/// empty. Kernel: K, C / groups, window; bias: K. C is static.
class IConvolutionLayer : public ILayer {
public:
    virtual void setNbOutputMaps(int64_t nbOutputMaps) noexcept = 0;
    virtual int64_t getNbOutputMaps() const noexcept = 0;
    /// Divides input and output channels. Default 1.
    virtual void setNbGroups(int64_t nbGroups) noexcept = 0;
    virtual int64_t getNbGroups() const noexcept = 0;
    virtual void setKernelWeights(Weights weights) noexcept = 0;
    virtual Weights getKernelWeights() const noexcept = 0;
    /// Empty: no bias.
    virtual void setBiasWeights(Weights weights) noexcept = 0;
    virtual Weights getBiasWeights() const noexcept = 0;
    /// Zeros before each spatial dimension. Default 0.
    virtual void setPrePadding(const Dims& padding) noexcept = 0;
    virtual Dims getPrePadding() const noexcept = 0;
    /// Zeros after each spatial dimension. Default 0.
    virtual void setPostPadding(const Dims& padding) noexcept = 0;
    virtual Dims getPostPadding() const noexcept = 0;
    /// Default kEXPLICIT_ROUND_DOWN.
    virtual void setPaddingMode(PaddingMode paddingMode) noexcept = 0;
    virtual PaddingMode getPaddingMode() const noexcept = 0;
    virtual void setKernelSizeNd(const Dims& kernelSize) noexcept = 0;
    virtual Dims getKernelSizeNd() const noexcept = 0;
    /// Default 1.
    virtual void setStrideNd(const Dims& stride) noexcept = 0;
    virtual Dims getStrideNd() const noexcept = 0;
    /// Pre- and post-padding alike.
    virtual void setPaddingNd(const Dims& padding) noexcept = 0;
    virtual Dims getPaddingNd() const noexcept = 0;
    /// Distance of the kernel's taps. Default 1.
    virtual void setDilationNd(const Dims& dilation) noexcept = 0;
    virtual Dims getDilationNd() const noexcept = 0;

protected:
    ~IConvolutionLayer() = default;
};

/// Transposed convolution over one to three spatial dimensions. Padding crops the output.
///
/// Inputs as IConvolutionLayer. Kernel: C, K / groups, window; bias: K.
class IDeconvolutionLayer : public ILayer {
public:
    virtual void setNbOutputMaps(int64_t nbOutputMaps) noexcept = 0;
    virtual int64_t getNbOutputMaps() const noexcept = 0;
    /// Default 1.
    virtual void setNbGroups(int64_t nbGroups) noexcept = 0;
    virtual int64_t getNbGroups() const noexcept = 0;
    virtual void setKernelWeights(Weights weights) noexcept = 0;
    virtual Weights getKernelWeights() const noexcept = 0;
    virtual void setBiasWeights(Weights weights) noexcept = 0;
    virtual Weights getBiasWeights() const noexcept = 0;
    /// Cropped before each spatial dimension. Default 0.
    virtual void setPrePadding(const Dims& padding) noexcept = 0;
    virtual Dims getPrePadding() const noexcept = 0;
    /// Cropped after each spatial dimension; negative adds to the output. Default 0.
    virtual void setPostPadding(const Dims& padding) noexcept = 0;
    virtual Dims getPostPadding() const noexcept = 0;
    /// Default kEXPLICIT_ROUND_DOWN.
    virtual void setPaddingMode(PaddingMode paddingMode) noexcept = 0;
    virtual PaddingMode getPaddingMode() const noexcept = 0;
    virtual void setKernelSizeNd(const Dims& kernelSize) noexcept = 0;
    virtual Dims getKernelSizeNd() const noexcept = 0;
    /// Default 1.
    virtual void setStrideNd(const Dims& stride) noexcept = 0;
    virtual Dims getStrideNd() const noexcept = 0;
    virtual void setPaddingNd(const Dims& padding) noexcept = 0;
    virtual Dims getPaddingNd() const noexcept = 0;
    /// Default 1.
    virtual void setDilationNd(const Dims& dilation) noexcept = 0;
    virtual Dims getDilationNd() const noexcept = 0;

protected:
    ~IDeconvolutionLayer() = default;
};

enum class PoolingType : int32_t {
    kMAX = 0,
    kAVERAGE = 1,
    kMAX_AVERAGE_BLEND = 2, ///< (1 - blend) * max + blend * average
};
INGOT_ENUM_MAX(PoolingType, 3)

/// Reduces windows of one to three spatial dimensions.
class IPoolingLayer : public ILayer {
public:
    virtual void setPoolingType(PoolingType type) noexcept = 0;
    virtual PoolingType getPoolingType() const noexcept = 0;
    /// 0 to 1. Default 0.
    virtual void setBlendFactor(float blendFactor) noexcept = 0;
    virtual float getBlendFactor() const noexcept = 0;
    /// True: averages are over the elements inside the tensor only. Default true.
    virtual void setAverageCountExcludesPadding(bool exclusive) noexcept = 0;
    virtual bool getAverageCountExcludesPadding() const noexcept = 0;
    /// Default 0.
    virtual void setPrePadding(const Dims& padding) noexcept = 0;
    virtual Dims getPrePadding() const noexcept = 0;
    /// Default 0.
    virtual void setPostPadding(const Dims& padding) noexcept = 0;
    virtual Dims getPostPadding() const noexcept = 0;
    /// Default kEXPLICIT_ROUND_DOWN.
    virtual void setPaddingMode(PaddingMode paddingMode) noexcept = 0;
    virtual PaddingMode getPaddingMode() const noexcept = 0;
    virtual void setWindowSizeNd(const Dims& windowSize) noexcept = 0;
    virtual Dims getWindowSizeNd() const noexcept = 0;
    /// Default 1.
    virtual void setStrideNd(const Dims& stride) noexcept = 0;
    virtual Dims getStrideNd() const noexcept = 0;
    virtual void setPaddingNd(const Dims& padding) noexcept = 0;
    virtual Dims getPaddingNd() const noexcept = 0;

protected:
    ~IPoolingLayer() = default;
};

/// x / (k + alpha / window * sum of squares over `window` neighbouring channels) ^ beta.
class ILRNLayer : public ILayer {
public:
    /// Odd.
    virtual void setWindowSize(int64_t windowSize) noexcept = 0;
    virtual int64_t getWindowSize() const noexcept = 0;
    virtual void setAlpha(float alpha) noexcept = 0;
    virtual float getAlpha() const noexcept = 0;
    virtual void setBeta(float beta) noexcept = 0;
    virtual float getBeta() const noexcept = 0;
    virtual void setK(float k) noexcept = 0;
    virtual float getK() const noexcept = 0;

protected:
    ~ILRNLayer() = default;
};

enum class ScaleMode : int32_t {
    kUNIFORM = 0,     ///< One number
    kCHANNEL = 1,     ///< One per channel
    kELEMENTWISE = 2, ///< One per element of the channel axis and what follows it
};
INGOT_ENUM_MAX(ScaleMode, 3)

/// (x * scale + shift) ^ power; empty weights leave their step out.
class IScaleLayer : public ILayer {
public:
    virtual void setMode(ScaleMode mode) noexcept = 0;
    virtual ScaleMode getMode() const noexcept = 0;
    virtual void setShift(Weights shift) noexcept = 0;
    virtual Weights getShift() const noexcept = 0;
    virtual void setScale(Weights scale) noexcept = 0;
    virtual Weights getScale() const noexcept = 0;
    virtual void setPower(Weights power) noexcept = 0;
    virtual Weights getPower() const noexcept = 0;
    /// Default 1; the third from last for INetworkDefinition::addScale().
    virtual int32_t getChannelAxis() const noexcept = 0;
    virtual void setChannelAxis(int32_t channelAxis) noexcept = 0;

protected:
    ~IScaleLayer() = default;
};

/// Zeros around, or (negative) cropping of, the last two dimensions.
class IPaddingLayer : public ILayer {
public:
    /// Before; two sizes.
    virtual void setPrePaddingNd(const Dims& padding) noexcept = 0;
    virtual Dims getPrePaddingNd() const noexcept = 0;
    /// After; two sizes.
    virtual void setPostPaddingNd(const Dims& padding) noexcept = 0;
    virtual Dims getPostPaddingNd() const noexcept = 0;

protected:
    ~IPaddingLayer() = default;
};

enum class InterpolationMode : int32_t {
    kNEAREST = 0,
    kLINEAR = 1,
    kCUBIC = 2,
};
INGOT_ENUM_MAX(InterpolationMode, 3)
using ResizeMode = InterpolationMode;

/// Which place of the input an index of the output stands for.
enum class ResizeCoordinateTransformation : int32_t {
    kALIGN_CORNERS = 0, ///< x * (in - 1) / (out - 1)
    kASYMMETRIC = 1,    ///< x * in / out
    kHALF_PIXEL = 2,    ///< (x + 0.5) * in / out - 0.5
};
INGOT_ENUM_MAX(ResizeCoordinateTransformation, 3)

/// The source index when an output dimension has size 1.
enum class ResizeSelector : int32_t {
    kFORMULA = 0, ///< The coordinate transformation
    kUPPER = 1,   ///< Index 0
};
INGOT_ENUM_MAX(ResizeSelector, 2)

/// How the nearest neighbour is rounded.
enum class ResizeRoundMode : int32_t {
    kHALF_UP = 0,
    kHALF_DOWN = 1,
    kFLOOR = 2,
    kCEIL = 3,
};
INGOT_ENUM_MAX(ResizeRoundMode, 4)

/// Resamples. The size comes from one of: output dimensions, scales, input 1 (a shape tensor).
class IResizeLayer : public ILayer {
public:
    virtual void setOutputDimensions(const Dims& dimensions) noexcept = 0;
    virtual Dims getOutputDimensions() const noexcept = 0;
    /// A factor per dimension; sizes are rounded down.
    virtual void setScales(const float* scales, int32_t nbScales) noexcept = 0;
    /// Copies up to `size` factors. Returns how many there are, -1 when none are set.
    virtual int32_t getScales(int32_t size, float* scales) const noexcept = 0;
    /// Default kNEAREST. kLINEAR works on up to the last three dimensions, kCUBIC on two.
    virtual void setResizeMode(InterpolationMode interpolationMode) noexcept = 0;
    virtual InterpolationMode getResizeMode() const noexcept = 0;
    /// Default kASYMMETRIC.
    virtual void
    setCoordinateTransformation(ResizeCoordinateTransformation coordTransform) noexcept = 0;
    virtual ResizeCoordinateTransformation getCoordinateTransformation() const noexcept = 0;
    /// Default kFORMULA.
    virtual void setSelectorForSinglePixel(ResizeSelector selector) noexcept = 0;
    virtual ResizeSelector getSelectorForSinglePixel() const noexcept = 0;
    /// Default kFLOOR.
    virtual void setNearestRounding(ResizeRoundMode value) noexcept = 0;
    virtual ResizeRoundMode getNearestRounding() const noexcept = 0;
    /// Default -0.75.
    virtual void setCubicCoeff(float A) noexcept = 0;
    virtual float getCubicCoeff() const noexcept = 0;
    /// Leave neighbours outside the input out of the weights. Default false.
    virtual void setExcludeOutside(bool excludeFlag) noexcept = 0;
    virtual bool getExcludeOutside() const noexcept = 0;

    // Older generations.

    TRT_DEPRECATED void setAlignCorners(bool alignCorners) noexcept {
        setCoordinateTransformation(alignCorners ? ResizeCoordinateTransformation::kALIGN_CORNERS
                                                 : ResizeCoordinateTransformation::kASYMMETRIC);
    }
    TRT_DEPRECATED bool getAlignCorners() const noexcept {
        return getCoordinateTransformation() == ResizeCoordinateTransformation::kALIGN_CORNERS;
    }

protected:
    ~IResizeLayer() = default;
};

/// The values at positions outside a tensor.
enum class SampleMode : int32_t {
    kSTRICT_BOUNDS = 0, ///< An error
    kWRAP = 1,
    kCLAMP = 2,
    kFILL = 3, ///< Zero, or the fill input
    kREFLECT = 4,
};
INGOT_ENUM_MAX(SampleMode, 5)
using SliceMode = SampleMode;

/// Samples input 0, N C H W, at the places of input 1, N H' W' 2, whose x and y run from -1 to 1.
class IGridSampleLayer : public ILayer {
public:
    /// Default kLINEAR.
    virtual void setInterpolationMode(InterpolationMode mode) noexcept = 0;
    virtual InterpolationMode getInterpolationMode() const noexcept = 0;
    /// True: -1 and 1 are the centres of the border pixels; false (the default): their outer edges.
    virtual void setAlignCorners(bool alignCorners) noexcept = 0;
    virtual bool getAlignCorners() const noexcept = 0;
    /// kFILL (the default), kCLAMP or kREFLECT; false for others.
    virtual bool setSampleMode(SampleMode mode) noexcept = 0;
    virtual SampleMode getSampleMode() const noexcept = 0;

protected:
    ~IGridSampleLayer() = default;
};

/// (x - mean) / sqrt(variance + epsilon) * scale + bias over axes. Inputs: tensor, scale, bias.
class INormalizationLayer : public ILayer {
public:
    /// Default 1e-5.
    virtual void setEpsilon(float eps) noexcept = 0;
    virtual float getEpsilon() const noexcept = 0;
    /// Bits of the axes that mean and variance are over.
    virtual void setAxes(uint32_t axesMask) noexcept = 0;
    virtual uint32_t getAxes() const noexcept = 0;
    /// Groups of channels that are normalised apart. Default 1; others need axes to be the spatial
    /// ones.
    virtual void setNbGroups(int64_t nbGroups) noexcept = 0;
    virtual int64_t getNbGroups() const noexcept = 0;
    /// Whether scale and bias of groups have the channels' shape, not that of groups: of a model's
    /// node, and from addNormalizationV2(). Those of a node lack the leading dimensions of 1.
    virtual bool isV2() const noexcept = 0;

    // Older generations.

    /// Type that the computation is done in. Default kFLOAT.
    TRT_DEPRECATED virtual void setComputePrecision(DataType type) noexcept = 0;
    TRT_DEPRECATED virtual DataType getComputePrecision() const noexcept = 0;

protected:
    ~INormalizationLayer() = default;
};

} // namespace nvinfer1
