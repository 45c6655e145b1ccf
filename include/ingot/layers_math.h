// SPDX-License-Identifier: Apache-2.0
// Layers that compute: pointwise, reductions, products, quantisation. Included by NvInfer.h.
//
// Broadcasting: ranks are equal, sizes are equal or 1.
#pragma once

#include "ingot/tensor.h"

namespace nvinfer1 {

/// Functions of IActivationLayer; a is alpha, b is beta.
enum class ActivationType : int32_t {
    kRELU = 0,
    kSIGMOID = 1,
    kTANH = 2,
    kLEAKY_RELU = 3, ///< x >= 0 ? x : a x
    kELU = 4,        ///< x >= 0 ? x : a (exp(x) - 1)
    kSELU = 5,       ///< b (x > 0 ? x : a exp(x) - a)
    kSOFTSIGN = 6,   ///< x / (1 + |x|)
    kSOFTPLUS = 7,   ///< a log(exp(b x) + 1)
    kCLIP = 8,       ///< max(a, min(b, x))
    kHARD_SIGMOID = 9,
    kSCALED_TANH = 10,      ///< a tanh(b x)
    kTHRESHOLDED_RELU = 11, ///< x > a ? x : 0
    kGELU_ERF = 12,         ///< x / 2 (1 + erf(x / sqrt(2)))
    kGELU_TANH = 13,        ///< Its approximation with tanh
};
INGOT_ENUM_MAX(ActivationType, 14)

/// A function of one value, element by element.
class IActivationLayer : public ILayer {
public:
    virtual void setActivationType(ActivationType type) noexcept = 0;
    virtual ActivationType getActivationType() const noexcept = 0;
    /// Default 0.
    virtual void setAlpha(float alpha) noexcept = 0;
    /// Default 0.
    virtual void setBeta(float beta) noexcept = 0;
    virtual float getAlpha() const noexcept = 0;
    virtual float getBeta() const noexcept = 0;

protected:
    ~IActivationLayer() = default;
};

/// x >= 0 ? x : slope x. Inputs: tensor, slope (broadcast to it).
class IParametricReLULayer : public ILayer {
protected:
    ~IParametricReLULayer() = default;
};

enum class ElementWiseOperation : int32_t {
    kSUM = 0,
    kPROD = 1,
    kMAX = 2,
    kMIN = 3,
    kSUB = 4,
    kDIV = 5, ///< Integers: towards zero
    kPOW = 6,
    kFLOOR_DIV = 7, ///< Towards minus infinity
    kAND = 8,       ///< kAND to kXOR take and give BOOL
    kOR = 9,
    kXOR = 10,
    kEQUAL = 11, ///< kEQUAL to kLESS give BOOL
    kGREATER = 12,
    kLESS = 13,
};
INGOT_ENUM_MAX(ElementWiseOperation, 14)

/// A function of two tensors of one type, broadcast.
class IElementWiseLayer : public ILayer {
public:
    virtual void setOperation(ElementWiseOperation op) noexcept = 0;
    virtual ElementWiseOperation getOperation() const noexcept = 0;

protected:
    ~IElementWiseLayer() = default;
};

enum class UnaryOperation : int32_t {
    kEXP = 0,
    kLOG = 1,
    kSQRT = 2,
    kRECIP = 3,
    kABS = 4,
    kNEG = 5,
    kSIN = 6,
    kCOS = 7,
    kTAN = 8,
    kSINH = 9,
    kCOSH = 10,
    kASIN = 11,
    kACOS = 12,
    kATAN = 13,
    kASINH = 14,
    kACOSH = 15,
    kATANH = 16,
    kCEIL = 17,
    kFLOOR = 18,
    kERF = 19,
    kNOT = 20, ///< For BOOL
    kSIGN = 21,
    kROUND = 22, ///< Halves to even
    kISINF = 23, ///< Gives BOOL
    kISNAN = 24, ///< Gives BOOL
};
INGOT_ENUM_MAX(UnaryOperation, 25)

/// A function of one value, element by element.
class IUnaryLayer : public ILayer {
public:
    virtual void setOperation(UnaryOperation op) noexcept = 0;
    virtual UnaryOperation getOperation() const noexcept = 0;

protected:
    ~IUnaryLayer() = default;
};

/// Exponentials divided by their sum along an axis.
class ISoftMaxLayer : public ILayer {
public:
    /// One bit. Default: axis max(0, rank - 3).
    virtual void setAxes(uint32_t axes) noexcept = 0;
    virtual uint32_t getAxes() const noexcept = 0;

protected:
    ~ISoftMaxLayer() = default;
};

/// Softmax over the first bounds[...] elements of the last dimension of input 0; the rest is 0.
/// Inputs: tensor Z x S, bounds Z x 1.
class IRaggedSoftMaxLayer : public ILayer {
protected:
    ~IRaggedSoftMaxLayer() = default;
};

enum class ReduceOperation : int32_t {
    kSUM = 0,
    kPROD = 1,
    kMAX = 2,
    kMIN = 3,
    kAVG = 4,
    kNONE = 5, ///< For IDistCollectiveLayer only
};
INGOT_ENUM_MAX(ReduceOperation, 6)

/// Reduces axes. Without elements: sum 0, product 1, maximum and minimum the extreme of the type,
/// average NaN.
class IReduceLayer : public ILayer {
public:
    virtual void setOperation(ReduceOperation op) noexcept = 0;
    virtual ReduceOperation getOperation() const noexcept = 0;
    /// Bits of the axes.
    virtual void setReduceAxes(uint32_t reduceAxes) noexcept = 0;
    virtual uint32_t getReduceAxes() const noexcept = 0;
    /// Whether reduced axes stay with size 1.
    virtual void setKeepDimensions(bool keepDimensions) noexcept = 0;
    virtual bool getKeepDimensions() const noexcept = 0;

protected:
    ~IReduceLayer() = default;
};

enum class TopKOperation : int32_t {
    kMAX = 0,
    kMIN = 1,
};
INGOT_ENUM_MAX(TopKOperation, 2)

/// The k largest or smallest along an axis, sorted; of equal ones the lower index first. Outputs:
/// values, indices. Input 1, a scalar shape tensor, may give k.
class ITopKLayer : public ILayer {
public:
    virtual void setOperation(TopKOperation op) noexcept = 0;
    virtual TopKOperation getOperation() const noexcept = 0;
    virtual void setK(int32_t k) noexcept = 0;
    /// -1 when input 1 gives it.
    virtual int32_t getK() const noexcept = 0;
    /// One bit.
    virtual void setReduceAxes(uint32_t reduceAxes) noexcept = 0;
    virtual uint32_t getReduceAxes() const noexcept = 0;
    /// kINT32 (the default) or kINT64; false for others.
    virtual bool setIndicesType(DataType type) noexcept = 0;
    virtual DataType getIndicesType() const noexcept = 0;

protected:
    ~ITopKLayer() = default;
};

enum class MatrixOperation : int32_t {
    kNONE = 0,
    kTRANSPOSE = 1,
    kVECTOR = 2, ///< The last dimension is a vector; it has no second one
};
INGOT_ENUM_MAX(MatrixOperation, 3)

/// Products of the last two dimensions; those before are broadcast.
class IMatrixMultiplyLayer : public ILayer {
public:
    /// The operation on input 0 or 1.
    virtual void setOperation(int32_t index, MatrixOperation op) noexcept = 0;
    virtual MatrixOperation getOperation(int32_t index) const noexcept = 0;

protected:
    ~IMatrixMultiplyLayer() = default;
};

/// Sums of products by an equation such as "ij,jk->ik".
class IEinsumLayer : public ILayer {
public:
    /// Returns false when it is malformed.
    virtual bool setEquation(const char* equation) noexcept = 0;
    virtual const char* getEquation() const noexcept = 0;

protected:
    ~IEinsumLayer() = default;
};

enum class CumulativeOperation : int32_t {
    kSUM = 0,
};
INGOT_ENUM_MAX(CumulativeOperation, 1)

/// Running sums along an axis. Inputs: tensor, axis (a constant scalar).
class ICumulativeLayer : public ILayer {
public:
    virtual bool setOperation(CumulativeOperation op) noexcept = 0;
    virtual CumulativeOperation getOperation() const noexcept = 0;
    /// Leave the element itself out. Default false.
    virtual void setExclusive(bool exclusive) noexcept = 0;
    virtual bool getExclusive() const noexcept = 0;
    /// From the end. Default false.
    virtual void setReverse(bool reverse) noexcept = 0;
    virtual bool getReverse() const noexcept = 0;

protected:
    ~ICumulativeLayer() = default;
};

/// round_half_even(x / scale), clamped to the type: (U)INT8, FP8 (+-448), INT4 -8..7 or FP4 (+-6).
/// Inputs: tensor, scale (a scalar, one per element of the axis, or one per block); 2, optional, a
/// zero point, which is all 0.
class IQuantizeLayer : public ILayer {
public:
    /// The axis of scales that are a vector. Default -1: none.
    virtual int32_t getAxis() const noexcept = 0;
    virtual void setAxis(int32_t axis) noexcept = 0;
    virtual DataType getToType() const noexcept = 0;
    virtual void setToType(DataType toType) noexcept = 0;
    /// Sizes of the blocks that share a scale; nbDims == 0 when there are none.
    virtual Dims getBlockShape() const noexcept = 0;
    /// As many sizes as the tensor has; -1 for the whole dimension. Returns false for others.
    virtual bool setBlockShape(const Dims& blockShape) noexcept = 0;

protected:
    ~IQuantizeLayer() = default;
};

/// x * scale. Inputs and settings as IQuantizeLayer.
class IDequantizeLayer : public ILayer {
public:
    virtual int32_t getAxis() const noexcept = 0;
    virtual void setAxis(int32_t axis) noexcept = 0;
    virtual DataType getToType() const noexcept = 0;
    virtual void setToType(DataType toType) noexcept = 0;
    virtual Dims getBlockShape() const noexcept = 0;
    virtual bool setBlockShape(const Dims& blockShape) noexcept = 0;

protected:
    ~IDequantizeLayer() = default;
};

/// Quantises blocks by scales that it computes. Inputs: tensor; 1, optional, the scale of the
/// scales. Outputs: quantised, scales.
class IDynamicQuantizeLayer : public ILayer {
public:
    /// FP4 or FP8.
    virtual DataType getToType() const noexcept = 0;
    virtual void setToType(DataType toType) noexcept = 0;
    /// FP8 or E8M0.
    virtual DataType getScaleType() const noexcept = 0;
    virtual void setScaleType(DataType scaleType) noexcept = 0;
    /// \see IQuantizeLayer::setBlockShape
    virtual Dims getBlockShape() const noexcept = 0;
    virtual void setBlockShape(const Dims& blockShape) noexcept = 0;

    // Older generations: blocks along one axis.

    TRT_DEPRECATED virtual void setAxis(int32_t axis) noexcept = 0;
    TRT_DEPRECATED virtual int32_t getAxis() const noexcept = 0;
    TRT_DEPRECATED virtual void setBlockSize(int32_t size) noexcept = 0;
    TRT_DEPRECATED virtual int32_t getBlockSize() const noexcept = 0;

protected:
    ~IDynamicQuantizeLayer() = default;
};

} // namespace nvinfer1
