// SPDX-License-Identifier: Apache-2.0
// ProfileObject: IOptimizationProfile, as named triples of shapes and of values.
#pragma once

#include "api/tensorrt/report.h"
#include "ir/profile.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ingot::api {

class ProfileObject final : public nvinfer1::IOptimizationProfile {
public:
    explicit ProfileObject(const Report& report) : report_(report) {}
    virtual ~ProfileObject() = default;

    bool setDimensions(const char* input_name, nvinfer1::OptProfileSelector select,
                       const nvinfer1::Dims& dims) noexcept override;
    nvinfer1::Dims getDimensions(const char* input_name,
                                 nvinfer1::OptProfileSelector select) const noexcept override;
    int32_t getNbShapeValues(const char* input_name) const noexcept override;
    bool setExtraMemoryTarget(float target) noexcept override;
    float getExtraMemoryTarget() const noexcept override { return extra_memory_; }
    bool isValid() const noexcept override;
    bool setShapeValuesV2(const char* input_name, nvinfer1::OptProfileSelector select,
                          const int64_t* values, int32_t nb_values) noexcept override;
    const int64_t* getShapeValuesV2(const char* input_name,
                                    nvinfer1::OptProfileSelector select) const noexcept override;
    bool setShapeValues(const char* input_name, nvinfer1::OptProfileSelector select,
                        const int32_t* values, int32_t nb_values) noexcept override;
    const int32_t* getShapeValues(const char* input_name,
                                  nvinfer1::OptProfileSelector select) const noexcept override;

    /// Errors: InvalidArgument naming an input that lacks a shape, or whose sizes are not in order.
    void check() const;
    /// The shapes. Errors: as check().
    Profile profile() const;
    bool has_shape(const std::string& input) const { return shapes_.contains(input); }

private:
    using Triple = std::array<std::optional<Shape>, 3>; // by OptProfileSelector
    static void check_triple(const std::string& input, const Triple& t, bool complete);

    Report report_;
    std::map<std::string, Triple> shapes_;
    std::map<std::string, Triple> values_;
    mutable std::map<std::string, std::array<std::vector<int32_t>, 3>> narrow_; // getShapeValues()
    float extra_memory_ = 1;
};

} // namespace ingot::api
