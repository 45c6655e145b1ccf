// SPDX-License-Identifier: Apache-2.0
// TimingCacheObject: ITimingCache, choices by key.
#pragma once

#include "NvInfer.h"
#include "api/tensorrt/report.h"

#include <array>
#include <map>
#include <span>

namespace ingot::api {

class TimingCacheObject final : public nvinfer1::ITimingCache {
public:
    explicit TimingCacheObject(const Report& report) : report_(report) {}
    /// Errors: InvalidArgument for bytes that serialize() did not write.
    TimingCacheObject(const Report& report, std::span<const std::byte> bytes);

    nvinfer1::IHostMemory* serialize() const noexcept override;
    bool combine(const nvinfer1::ITimingCache& input_cache, bool ignore_mismatch) noexcept override;
    bool reset() noexcept override;
    int64_t queryKeys(nvinfer1::TimingCacheKey* key_buffer,
                      int64_t capacity) const noexcept override;
    nvinfer1::TimingCacheValue query(const nvinfer1::TimingCacheKey& key) const noexcept override;
    bool update(const nvinfer1::TimingCacheKey& key,
                const nvinfer1::TimingCacheValue& value) noexcept override;

private:
    using Key = std::array<uint8_t, 16>;
    static Key key_of(const nvinfer1::TimingCacheKey& key);
    Report report_;
    std::map<Key, nvinfer1::TimingCacheValue> entries_;
};

} // namespace ingot::api
