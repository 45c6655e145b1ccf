// SPDX-License-Identifier: Apache-2.0
// IOptimizationProfile: the shapes that an engine is built for. Included by NvInferRuntime.h.
#pragma once

#include "ingot/runtime_types.h"

namespace nvinfer1 {

/// Ranges of input shapes, and of the values of shape inputs, in which an engine is to run. Every
/// input with sizes of -1 needs all three shapes; static sizes must agree with the network.
///
/// Lifetime: belongs to the builder whose createOptimizationProfile() made it.
/// Thread safety: as the builder's configuration, one thread at a time.
/// Errors: min <= opt <= max and static sizes are checked when it is added and when the network is
/// built; the message names input and dimension.
class IOptimizationProfile : public INoCopy {
public:
    /// Returns false for an unknown selector, negative sizes, or a rank or min <= opt <= max that
    /// contradicts what is set already.
    virtual bool setDimensions(const char* inputName, OptProfileSelector select,
                               const Dims& dims) noexcept = 0;
    /// nbDims == -1 when it is not set.
    virtual Dims getDimensions(const char* inputName, OptProfileSelector select) const noexcept = 0;
    /// How many values are set for a shape input; -1 when none are.
    virtual int32_t getNbShapeValues(const char* inputName) const noexcept = 0;
    /// The share of the device memory beyond the engine's own that tactics may use, 0 to 1. Default
    /// 1. Returns false for a share out of range.
    virtual bool setExtraMemoryTarget(float target) noexcept = 0;
    virtual float getExtraMemoryTarget() const noexcept = 0;
    /// Whether every shape that is set has all three and min <= opt <= max.
    virtual bool isValid() const noexcept = 0;
    /// Values of a shape input: nbValues of them, as many as it has elements. The build checks them
    /// against the network, every run its values against kMIN and kMAX.
    virtual bool setShapeValuesV2(const char* inputName, OptProfileSelector select,
                                  const int64_t* values, int32_t nbValues) noexcept = 0;
    /// nullptr when they are not set.
    virtual const int64_t* getShapeValuesV2(const char* inputName,
                                            OptProfileSelector select) const noexcept = 0;

    // Older generations.

    TRT_DEPRECATED virtual bool setShapeValues(const char* inputName, OptProfileSelector select,
                                               const int32_t* values,
                                               int32_t nbValues) noexcept = 0;
    /// Values that exceed 32 bits are clamped.
    TRT_DEPRECATED virtual const int32_t*
    getShapeValues(const char* inputName, OptProfileSelector select) const noexcept = 0;

protected:
    ~IOptimizationProfile() = default;
};

} // namespace nvinfer1
