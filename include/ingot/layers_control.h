// SPDX-License-Identifier: Apache-2.0
// Loops and conditionals. Included by NvInfer.h.
//
// A body is what lies between the boundary layers of a loop or conditional; it is found from them.
#pragma once

#include "ingot/tensor.h"

namespace nvinfer1 {

class ILoop;
class IIfConditional;

/// Base of the layers at the border of a loop.
class ILoopBoundaryLayer : public ILayer {
public:
    virtual ILoop* getLoop() const noexcept = 0;

protected:
    ~ILoopBoundaryLayer() = default;
};

/// A value that one iteration hands to the next. Inputs: 0 the first value, from outside; 1 (to be
/// set) the next one, from inside, of the same type and shape.
class IRecurrenceLayer : public ILoopBoundaryLayer {
protected:
    ~IRecurrenceLayer() = default;
};

enum class LoopOutput : int32_t {
    kLAST_VALUE = 0,
    kCONCATENATE = 1, ///< The values of all iterations along a new axis
    kREVERSE = 2,     ///< The same, last one first
};
INGOT_ENUM_MAX(LoopOutput, 3)

/// A result of a loop. Inputs: 0 the value, from inside; 1 (to be set, for all but kLAST_VALUE) the
/// length of the new axis, a scalar shape tensor from outside.
class ILoopOutputLayer : public ILoopBoundaryLayer {
public:
    virtual LoopOutput getLoopOutput() const noexcept = 0;
    /// The new axis. Default 0.
    virtual void setAxis(int32_t axis) noexcept = 0;
    virtual int32_t getAxis() const noexcept = 0;

protected:
    ~ILoopOutputLayer() = default;
};

enum class TripLimit : int32_t {
    kCOUNT = 0, ///< A scalar INT32 or INT64 from outside: how many iterations
    kWHILE = 1, ///< A scalar BOOL from inside: whether to run the iteration
};
INGOT_ENUM_MAX(TripLimit, 2)

/// When a loop ends.
class ITripLimitLayer : public ILoopBoundaryLayer {
public:
    virtual TripLimit getTripLimit() const noexcept = 0;

protected:
    ~ITripLimitLayer() = default;
};

/// Hands iteration i the i-th slice of a tensor.
class IIteratorLayer : public ILoopBoundaryLayer {
public:
    virtual void setAxis(int32_t axis) noexcept = 0;
    virtual int32_t getAxis() const noexcept = 0;
    /// From the end.
    virtual void setReverse(bool reverse) noexcept = 0;
    virtual bool getReverse() const noexcept = 0;

protected:
    ~IIteratorLayer() = default;
};

/// A loop in a network: at most one limit of each kind, at least one.
/// Lifetime: belongs to the network.
class ILoop : public INoCopy {
public:
    virtual IRecurrenceLayer* addRecurrence(ITensor& initialValue) noexcept = 0;
    /// nullptr for a second limit of the kind.
    virtual ITripLimitLayer* addTripLimit(ITensor& tensor, TripLimit limit) noexcept = 0;
    virtual IIteratorLayer* addIterator(ITensor& tensor, int32_t axis = 0,
                                        bool reverse = false) noexcept = 0;
    virtual ILoopOutputLayer* addLoopOutput(ITensor& tensor, LoopOutput outputKind,
                                            int32_t axis = 0) noexcept = 0;
    virtual void setName(const char* name) noexcept = 0;
    virtual const char* getName() const noexcept = 0;

protected:
    ~ILoop() = default;
};

/// Base of the layers at the border of a conditional.
class IIfConditionalBoundaryLayer : public ILayer {
public:
    virtual IIfConditional* getConditional() const noexcept = 0;

protected:
    ~IIfConditionalBoundaryLayer() = default;
};

/// Its condition, a scalar BOOL.
class IConditionLayer : public IIfConditionalBoundaryLayer {
protected:
    ~IConditionLayer() = default;
};

/// A result: input 0 of the branch for true, 1 of that for false, of the same type and rank.
class IIfConditionalOutputLayer : public IIfConditionalBoundaryLayer {
protected:
    ~IIfConditionalOutputLayer() = default;
};

/// A value that branches use.
class IIfConditionalInputLayer : public IIfConditionalBoundaryLayer {
protected:
    ~IIfConditionalInputLayer() = default;
};

/// Two branches in a network, of which one runs.
/// Lifetime: belongs to the network.
class IIfConditional : public INoCopy {
public:
    /// nullptr when there is a condition already, or it is no scalar BOOL.
    virtual IConditionLayer* setCondition(ITensor& condition) noexcept = 0;
    virtual IIfConditionalOutputLayer* addOutput(ITensor& trueSubgraphOutput,
                                                 ITensor& falseSubgraphOutput) noexcept = 0;
    virtual IIfConditionalInputLayer* addInput(ITensor& input) noexcept = 0;
    virtual void setName(const char* name) noexcept = 0;
    virtual const char* getName() const noexcept = 0;

protected:
    ~IIfConditional() = default;
};

} // namespace nvinfer1
