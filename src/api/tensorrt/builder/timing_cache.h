// SPDX-License-Identifier: Apache-2.0
// TimingCacheObject: ITimingCache, the fastest tactics by key.
#pragma once

#include "NvInfer.h"
#include "api/tensorrt/report.h"
#include "cache/timing_cache.h"

#include <functional>
#include <memory>
#include <span>

namespace ingot::api {

/// The key of an entry: a hash of "<device><tab><problem>".
nvinfer1::TimingCacheKey timing_key(std::string_view entry);

class TimingCacheObject final : public nvinfer1::ITimingCache {
public:
    using Timings = std::shared_ptr<plan::TimingCache>;
    /// `place` names the timed device when called (Backend::timing_device()). Entries are editable
    /// where `timings` keeps layers apart.
    TimingCacheObject(const Report& report, std::function<std::string()> place, Timings timings)
        : report_(report), place_(std::move(place)), timings_(std::move(timings)) {}

    /// Errors: InvalidArgument for bytes that serialize() did not write.
    void read(std::span<const std::byte> bytes);
    /// Errors: InvalidArgument for timings of another device.
    void check_device() const;
    /// Adds missing entries. Errors: InvalidArgument for timings of another device.
    void add(const TimingCacheObject& other, bool ignore_mismatch);
    /// The timings that builds look up and extend.
    const Timings& timings() const { return timings_; }

    nvinfer1::IHostMemory* serialize() const noexcept override;
    bool combine(const nvinfer1::ITimingCache& input_cache, bool ignore_mismatch) noexcept override;
    bool reset() noexcept override;
    int64_t queryKeys(nvinfer1::TimingCacheKey* key_buffer,
                      int64_t capacity) const noexcept override;
    nvinfer1::TimingCacheValue query(const nvinfer1::TimingCacheKey& key) const noexcept override;
    bool update(const nvinfer1::TimingCacheKey& key,
                const nvinfer1::TimingCacheValue& value) noexcept override;

private:
    Report report_;
    std::function<std::string()> place_;
    Timings timings_;
};

} // namespace ingot::api
