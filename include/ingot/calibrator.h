// SPDX-License-Identifier: Apache-2.0
// Calibrators: where INT8 ranges come from in a network without Q/DQ. Included by NvInfer.h.
#pragma once

#include "ingot/runtime_types.h"

namespace nvinfer1 {

/// The flags of IBuilderConfig::setQuantizationFlag().
enum class QuantizationFlag : int32_t {
    kCALIBRATE_BEFORE_FUSION = 0, ///< Always so
};
INGOT_ENUM_MAX(QuantizationFlag, 1)
/// Set of QuantizationFlag: bit i stands for flag i.
using QuantizationFlags = uint32_t;

/// How a calibrator turns histograms of values into ranges.
enum class CalibrationAlgoType : int32_t {
    kLEGACY_CALIBRATION = 0,    ///< A quantile
    kENTROPY_CALIBRATION = 1,   ///< Least Kullback-Leibler divergence
    kENTROPY_CALIBRATION_2 = 2, ///< The same, per tensor, as the next generation has it
    kMINMAX_CALIBRATION = 3,    ///< The largest value
};
INGOT_ENUM_MAX(CalibrationAlgoType, 4)

/// Feeds a build sample inputs, batch by batch, or the cache of an earlier one. Derive from one of
/// the classes below, which choose the algorithm.
///
/// Ranges by ITensor::setDynamicRange() go before those of a calibrator. By entropy, zeros do not
/// count, and tensors with fewer than 2048 other elements keep their largest magnitude.
///
/// Lifetime: outlives the build. Calls come from the thread that builds.
/// Errors: a batch without an address for an input, no batch at all, and a cache that cannot be
/// read or has no tensor of the network end the build.
class IInt8Calibrator : public IVersionedInterface {
public:
    /// How many samples a batch has, for inputs whose first size neither the network nor a
    /// calibration profile says; 0 when it is the first optimisation profile's.
    virtual int32_t getBatchSize() const noexcept = 0;
    /// Gives the addresses of the next batch in device memory (host memory on the CPU backend):
    /// bindings[i] is for input names[i]. Returns false when there are no more.
    virtual bool getBatch(void* bindings[], const char* names[], int32_t nbBindings) noexcept = 0;
    /// The cache that writeCalibrationCache() got in an earlier build; nullptr: calibrate.
    virtual const void* readCalibrationCache(std::size_t& length) noexcept = 0;
    /// Takes the cache after calibrating; the memory is valid during the call.
    virtual void writeCalibrationCache(const void* ptr, std::size_t length) noexcept = 0;
    virtual CalibrationAlgoType getAlgorithm() noexcept = 0;

    IInt8Calibrator() = default;
    ~IInt8Calibrator() override = default;

protected:
    IInt8Calibrator(const IInt8Calibrator&) = default;
    IInt8Calibrator(IInt8Calibrator&&) = default;
    IInt8Calibrator& operator=(const IInt8Calibrator&) & = default;
    IInt8Calibrator& operator=(IInt8Calibrator&&) & = default;
};

/// Superseded by IInt8EntropyCalibrator2.
class IInt8EntropyCalibrator : public IInt8Calibrator {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"IInt8EntropyCalibrator", 1, 0};
    }
    CalibrationAlgoType getAlgorithm() noexcept override {
        return CalibrationAlgoType::kENTROPY_CALIBRATION;
    }
};

/// The one to take for convolutional networks.
class IInt8EntropyCalibrator2 : public IInt8Calibrator {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"IInt8EntropyCalibrator2", 1, 0};
    }
    CalibrationAlgoType getAlgorithm() noexcept override {
        return CalibrationAlgoType::kENTROPY_CALIBRATION_2;
    }
};

/// The one to take for language models.
class IInt8MinMaxCalibrator : public IInt8Calibrator {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"IInt8MinMaxCalibrator", 1, 0};
    }
    CalibrationAlgoType getAlgorithm() noexcept override {
        return CalibrationAlgoType::kMINMAX_CALIBRATION;
    }
};

/// Ranges by a quantile, which the application chooses.
class IInt8LegacyCalibrator : public IInt8Calibrator {
public:
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"IInt8LegacyCalibrator", 1, 0};
    }
    CalibrationAlgoType getAlgorithm() noexcept override {
        return CalibrationAlgoType::kLEGACY_CALIBRATION;
    }
    /// Share of values inside the range, 0 to 1.
    virtual double getQuantile() const noexcept = 0;
    /// Share of the range below which nothing is cut off, 0 to 1.
    virtual double getRegressionCutoff() const noexcept = 0;
    /// As readCalibrationCache(), of histograms.
    virtual const void* readHistogramCache(std::size_t& length) noexcept = 0;
    virtual void writeHistogramCache(const void* ptr, std::size_t length) noexcept = 0;
};

namespace v_1_0 {
using nvinfer1::IInt8Calibrator;
using nvinfer1::IInt8EntropyCalibrator;
using nvinfer1::IInt8EntropyCalibrator2;
using nvinfer1::IInt8LegacyCalibrator;
using nvinfer1::IInt8MinMaxCalibrator;
} // namespace v_1_0

} // namespace nvinfer1
