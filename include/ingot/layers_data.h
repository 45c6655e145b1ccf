// SPDX-License-Identifier: Apache-2.0
// Layers that move, make or select data. Included by NvInfer.h.
#pragma once

#include "ingot/layers_window.h"
#include "ingot/tensor.h"

namespace nvinfer1 {

/// Joins tensors along an axis; other sizes are equal.
class IConcatenationLayer : public ILayer {
public:
    /// Default max(0, rank - 3).
    virtual void setAxis(int32_t axis) noexcept = 0;
    virtual int32_t getAxis() const noexcept = 0;

protected:
    ~IConcatenationLayer() = default;
};

/// Dimension i of the result is dimension order[i] of the input.
struct Permutation {
    int32_t order[Dims::MAX_DIMS];
};

/// Transposes, reshapes, transposes again; each step is optional. Input 1, a shape tensor, may give
/// the shape.
class IShuffleLayer : public ILayer {
public:
    virtual void setFirstTranspose(const Permutation& permutation) noexcept = 0;
    virtual Permutation getFirstTranspose() const noexcept = 0;
    /// -1: what is left, at most once; 0: that of the input in the same place, see
    /// setZeroIsPlaceholder().
    virtual void setReshapeDimensions(const Dims& dimensions) noexcept = 0;
    /// nbDims == -1 when input 1 gives it.
    virtual Dims getReshapeDimensions() const noexcept = 0;
    virtual void setSecondTranspose(const Permutation& permutation) noexcept = 0;
    virtual Permutation getSecondTranspose() const noexcept = 0;
    /// False: 0 is a size. Default true.
    virtual void setZeroIsPlaceholder(bool zeroIsPlaceholder) noexcept = 0;
    virtual bool getZeroIsPlaceholder() const noexcept = 0;

protected:
    ~IShuffleLayer() = default;
};

/// Every stride-th element from start. Optional inputs: 1 start, 2 size, 3 stride (shape tensors),
/// 4 the fill value (a scalar), 5 axes.
class ISliceLayer : public ILayer {
public:
    virtual void setStart(const Dims& start) noexcept = 0;
    virtual Dims getStart() const noexcept = 0;
    /// The size of the output.
    virtual void setSize(const Dims& size) noexcept = 0;
    virtual Dims getSize() const noexcept = 0;
    /// May be negative.
    virtual void setStride(const Dims& stride) noexcept = 0;
    virtual Dims getStride() const noexcept = 0;
    /// Default kSTRICT_BOUNDS.
    virtual void setMode(SampleMode mode) noexcept = 0;
    virtual SampleMode getMode() const noexcept = 0;
    /// The axes that start, size and stride are for; default all.
    virtual void setAxes(const Dims& axes) noexcept = 0;
    virtual Dims getAxes() const noexcept = 0;

protected:
    ~ISliceLayer() = default;
};

/// The shape of the input as a vector of INT64.
class IShapeLayer : public ILayer {
protected:
    ~IShapeLayer() = default;
};

enum class GatherMode : int32_t {
    kDEFAULT = 0, ///< ONNX Gather
    kELEMENT = 1, ///< ONNX GatherElements
    kND = 2,      ///< ONNX GatherND
};
INGOT_ENUM_MAX(GatherMode, 3)

/// Elements or slices of input 0 at the indices of input 1. Negative indices count from the end.
class IGatherLayer : public ILayer {
public:
    /// For kDEFAULT and kELEMENT. Default 0.
    virtual void setGatherAxis(int32_t axis) noexcept = 0;
    virtual int32_t getGatherAxis() const noexcept = 0;
    /// Leading dimensions that both inputs share: 0 or 1 for kDEFAULT, any for kND.
    virtual void setNbElementWiseDims(int32_t elementWiseDims) noexcept = 0;
    virtual int32_t getNbElementWiseDims() const noexcept = 0;
    virtual void setMode(GatherMode mode) noexcept = 0;
    virtual GatherMode getMode() const noexcept = 0;

protected:
    ~IGatherLayer() = default;
};

enum class ScatterMode : int32_t {
    kELEMENT = 0, ///< ONNX ScatterElements
    kND = 1,      ///< ONNX ScatterND
};
INGOT_ENUM_MAX(ScatterMode, 2)

/// A copy of input 0 with input 2 written at the indices of input 1. If several updates
/// have one position, any one of them stays.
class IScatterLayer : public ILayer {
public:
    virtual void setMode(ScatterMode mode) noexcept = 0;
    virtual ScatterMode getMode() const noexcept = 0;
    /// For kELEMENT. Default 0.
    virtual void setAxis(int32_t axis) noexcept = 0;
    virtual int32_t getAxis() const noexcept = 0;

protected:
    ~IScatterLayer() = default;
};

/// Inputs: indices, values (off, on), depth (a scalar shape tensor).
class IOneHotLayer : public ILayer {
public:
    /// The axis of the output that is the new dimension.
    virtual void setAxis(int32_t axis) noexcept = 0;
    virtual int32_t getAxis() const noexcept = 0;

protected:
    ~IOneHotLayer() = default;
};

/// Indices of elements that are not zero: rank x count, in row-major order. The count depends on
/// data.
class INonZeroLayer : public ILayer {
public:
    /// kINT32 (the default) or kINT64; false for others.
    virtual bool setIndicesType(DataType type) noexcept = 0;
    virtual DataType getIndicesType() const noexcept = 0;

protected:
    ~INonZeroLayer() = default;
};

/// condition ? then : else, broadcast. Inputs: condition (BOOL), then, else.
class ISelectLayer : public ILayer {
protected:
    ~ISelectLayer() = default;
};

/// Weights as a tensor. They are not copied: see layers_window.h.
class IConstantLayer : public ILayer {
public:
    virtual void setWeights(Weights weights) noexcept = 0;
    virtual Weights getWeights() const noexcept = 0;
    virtual void setDimensions(const Dims& dimensions) noexcept = 0;
    virtual Dims getDimensions() const noexcept = 0;

protected:
    ~IConstantLayer() = default;
};

/// The input itself.
class IIdentityLayer : public ILayer {
protected:
    ~IIdentityLayer() = default;
};

/// Converts types: floating point to integer towards zero, anything to BOOL as != 0.
class ICastLayer : public ILayer {
public:
    virtual void setToType(DataType toType) noexcept = 0;
    virtual DataType getToType() const noexcept = 0;

protected:
    ~ICastLayer() = default;
};

enum class FillOperation : int32_t {
    kLINSPACE = 0,       ///< alpha + beta * index (beta per dimension)
    kRANDOM_UNIFORM = 1, ///< From alpha to beta
    kRANDOM_NORMAL = 2,  ///< Mean alpha, standard deviation beta
};
INGOT_ENUM_MAX(FillOperation, 3)

/// Makes a tensor. Optional inputs: 0 the shape (a shape tensor), 1 alpha, 2 beta. The state of
/// random numbers belongs to the context.
class IFillLayer : public ILayer {
public:
    virtual void setDimensions(const Dims& dimensions) noexcept = 0;
    virtual Dims getDimensions() const noexcept = 0;
    virtual void setOperation(FillOperation op) noexcept = 0;
    virtual FillOperation getOperation() const noexcept = 0;
    /// Default 0.
    virtual void setAlpha(double alpha) noexcept = 0;
    virtual double getAlpha() const noexcept = 0;
    /// Default 1.
    virtual void setBeta(double beta) noexcept = 0;
    virtual double getBeta() const noexcept = 0;
    virtual void setAlphaInt64(int64_t alpha) noexcept = 0;
    virtual int64_t getAlphaInt64() const noexcept = 0;
    virtual void setBetaInt64(int64_t beta) noexcept = 0;
    virtual int64_t getBetaInt64() const noexcept = 0;
    /// Whether alpha and beta were last set as integers.
    virtual bool isAlphaBetaInt64() const noexcept = 0;
    virtual void setToType(DataType toType) noexcept = 0;
    virtual DataType getToType() const noexcept = 0;

protected:
    ~IFillLayer() = default;
};

/// Removes axes of size 1. Inputs: tensor, axes (constant).
class ISqueezeLayer : public ILayer {
protected:
    ~ISqueezeLayer() = default;
};

/// Adds axes of size 1. Inputs: tensor, axes of the output (constant).
class IUnsqueezeLayer : public ILayer {
protected:
    ~IUnsqueezeLayer() = default;
};

enum class BoundingBoxFormat : int32_t {
    kCORNER_PAIRS = 0, ///< x1, y1, x2, y2
    kCENTER_SIZES = 1, ///< x, y of the centre, width, height
};
INGOT_ENUM_MAX(BoundingBoxFormat, 2)

/// Non-maximum suppression. Inputs: boxes N x boxes x 4 (or x classes x 4), scores N x boxes x
/// classes, the most boxes per class; 3 and 4, optional, thresholds of IoU and score, by default 0
/// (all three scalars).
/// Outputs: count x 3 indices (batch, class, box), count. The count depends on data.
class INMSLayer : public ILayer {
public:
    /// Default kCORNER_PAIRS.
    virtual void setBoundingBoxFormat(BoundingBoxFormat fmt) noexcept = 0;
    virtual BoundingBoxFormat getBoundingBoxFormat() const noexcept = 0;
    /// Most boxes of a batch item that are looked at, over all classes, by score. Default 5000.
    virtual void setTopKBoxLimit(int32_t limit) noexcept = 0;
    virtual int32_t getTopKBoxLimit() const noexcept = 0;
    /// kINT32 (the default) or kINT64; false for others.
    virtual bool setIndicesType(DataType type) noexcept = 0;
    virtual DataType getIndicesType() const noexcept = 0;

protected:
    ~INMSLayer() = default;
};

/// Reverses the first lengths[b] elements of each sequence b. Inputs: tensor, lengths.
class IReverseSequenceLayer : public ILayer {
public:
    /// Default 1.
    virtual void setBatchAxis(int32_t batchAxis) noexcept = 0;
    virtual int32_t getBatchAxis() const noexcept = 0;
    /// Default 0.
    virtual void setSequenceAxis(int32_t sequenceAxis) noexcept = 0;
    virtual int32_t getSequenceAxis() const noexcept = 0;

protected:
    ~IReverseSequenceLayer() = default;
};

/// Fails the build or the run unless all elements of its input, a BOOL shape tensor, are true.
class IAssertionLayer : public ILayer {
public:
    virtual void setMessage(const char* message) noexcept = 0;
    virtual const char* getMessage() const noexcept = 0;

protected:
    ~IAssertionLayer() = default;
};

/// A layer of the application, older generation.
class IPluginV2Layer : public ILayer {
public:
    virtual IPluginV2& getPlugin() noexcept = 0;

protected:
    ~IPluginV2Layer() = default;
};

/// A layer of the application.
class IPluginV3Layer : public ILayer {
public:
    virtual IPluginV3& getPlugin() noexcept = 0;

protected:
    ~IPluginV3Layer() = default;
};

} // namespace nvinfer1
