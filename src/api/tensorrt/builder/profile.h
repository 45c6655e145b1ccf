// SPDX-License-Identifier: Apache-2.0
// ProfileObject: IOptimizationProfile, as named triples of shapes and of values.
#pragma once

#include "api/tensorrt/report.h"
#include "ir/profile.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>
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

    /// Errors: InvalidArgument naming an input that lacks a shape, or whose sizes are out of order.
    void check() const;
    /// The shapes. Errors: as check().
    Profile profile() const;
    bool has_shape(const std::string& input) const { return shapes_.contains(input); }
    /// Values of shape inputs: min, opt, max of each. Errors: as check().
    std::map<std::string, std::array<Shape, 3>> values() const;

private:
    using Triple = std::array<std::optional<Shape>, 3>; // indexed by OptProfileSelector
    static void check_triple(const std::string& input, const Triple& t, bool complete);

    Report report_;
    std::map<std::string, Triple> shapes_;
    std::map<std::string, Triple> values_;
    // for getShapeValues()
    mutable std::map<std::string, std::array<std::vector<int32_t>, 3>> narrow_;
    float extra_memory_ = 1;
};

/// The profiles that a builder made. Lives as long as the builder or one of its configurations.
/// Thread safe.
class ProfileList {
public:
    ProfileObject* add(const Report& report) {
        auto made = std::make_shared<ProfileObject>(report);
        std::scoped_lock lock(mutex_);
        return all_.emplace_back(std::move(made)).get();
    }
    /// Null for a foreign profile.
    std::shared_ptr<ProfileObject> find(const nvinfer1::IOptimizationProfile* profile) const {
        std::scoped_lock lock(mutex_);
        for (const std::shared_ptr<ProfileObject>& p : all_) {
            if (p.get() == profile) {
                return p;
            }
        }
        return nullptr;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<ProfileObject>> all_;
};

} // namespace ingot::api
