// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/timing_cache.h"

#include "api/tensorrt/host_memory.h"
#include "base/hash.h"

#include <cmath>
#include <cstring>

namespace ingot::api {

namespace nv = nvinfer1;

namespace {

constexpr double us_per_ms = 1000;

bool same_key(const nv::TimingCacheKey& a, const nv::TimingCacheKey& b) {
    return std::memcmp(a.data, b.data, sizeof a.data) == 0;
}

} // namespace

nv::TimingCacheKey timing_key(std::string_view entry) {
    Hash128 hash = xxh3_128(std::as_bytes(std::span(entry)));
    nv::TimingCacheKey key{};
    std::memcpy(key.data, &hash.high, sizeof hash.high);
    std::memcpy(key.data + sizeof hash.high, &hash.low, sizeof hash.low);
    return key;
}

void TimingCacheObject::read(std::span<const std::byte> bytes) {
    if (bytes.empty()) {
        return;
    }
    std::string why;
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    auto entries = plan::parse_timings(text, why);
    require(entries.has_value(), ErrorCode::InvalidArgument, "the ", bytes.size(),
            " bytes are no timing cache of this release: ", why, "; start with an empty one");
    timings_->merge(*entries);
}

void TimingCacheObject::check_device() const {
    plan::TimingCache::Entries entries = timings_->entries();
    std::string here = entries.empty() ? std::string() : place_();
    for (const auto& [key, timing] : entries) {
        std::string device = key.substr(0, key.find('\t'));
        require(device == here, ErrorCode::InvalidArgument, "the timing cache is of '", device,
                "', this is '", here,
                "'; ignoreMismatch takes it nevertheless, without effect here");
    }
}

void TimingCacheObject::add(const TimingCacheObject& other, bool ignore_mismatch) {
    if (!ignore_mismatch) {
        TimingCacheObject(report_, place_, other.timings_).check_device();
    }
    timings_->merge(other.timings_->entries());
}

nv::IHostMemory* TimingCacheObject::serialize() const noexcept {
    return report_.guard("ITimingCache::serialize", static_cast<nv::IHostMemory*>(nullptr),
                         [&]() -> nv::IHostMemory* {
                             std::string text = plan::print_timings(timings_->entries());
                             const auto* first = reinterpret_cast<const std::byte*>(text.data());
                             AlignedBytes bytes(first, first + text.size());
                             return std::make_unique<HostMemory>(std::move(bytes)).release();
                         });
}

bool TimingCacheObject::combine(const nv::ITimingCache& input_cache,
                                bool ignore_mismatch) noexcept {
    return report_.guard("ITimingCache::combine", false, [&] {
        add(static_cast<const TimingCacheObject&>(input_cache), ignore_mismatch);
        return true;
    });
}

bool TimingCacheObject::reset() noexcept {
    timings_->assign({});
    return true;
}

int64_t TimingCacheObject::queryKeys(nv::TimingCacheKey* key_buffer,
                                     int64_t capacity) const noexcept {
    return report_.guard("ITimingCache::queryKeys", int64_t{-1}, [&] {
        require(capacity >= 0, ErrorCode::InvalidArgument, "capacity is ", capacity,
                ", expected 0 or more");
        int64_t i = 0;
        for (const auto& entry : timings_->entries()) {
            if (key_buffer != nullptr && i < capacity) {
                key_buffer[i] = timing_key(entry.first);
            }
            ++i;
        }
        return i;
    });
}

nv::TimingCacheValue TimingCacheObject::query(const nv::TimingCacheKey& key) const noexcept {
    const nv::TimingCacheValue none{nv::TimingCacheValue::kINVALID_TACTIC_HASH, 0};
    return report_.guard("ITimingCache::query", none, [&] {
        for (const auto& [entry, timing] : timings_->entries()) {
            if (same_key(timing_key(entry), key)) {
                return nv::TimingCacheValue{plan::tactic_hash(timing.tactic),
                                            static_cast<float>(timing.us / us_per_ms)};
            }
        }
        return none;
    });
}

bool TimingCacheObject::update(const nv::TimingCacheKey& key,
                               const nv::TimingCacheValue& value) noexcept {
    return report_.guard("ITimingCache::update", false, [&] {
        require(timings_->by_layer(), ErrorCode::InvalidArgument,
                "the cache was made without kEDITABLE_TIMING_CACHE: set the flag before "
                "createTimingCache()");
        plan::TimingCache::Entries entries = timings_->entries();
        auto it = entries.begin();
        while (it != entries.end() && !same_key(timing_key(it->first), key)) {
            ++it;
        }
        require(it != entries.end(), ErrorCode::InvalidArgument, "there is no such key");
        std::optional<plan::Timing> now;
        if (!std::isnan(value.timingMSec)) {
            require(value.tacticHash != nv::TimingCacheValue::kINVALID_TACTIC_HASH,
                    ErrorCode::InvalidArgument, "the hash is kINVALID_TACTIC_HASH");
            bool other = plan::tactic_hash(it->second.tactic) != value.tacticHash;
            now = {other ? plan::hashed_tactic(value.tacticHash) : it->second.tactic,
                   static_cast<double>(value.timingMSec) * us_per_ms};
        }
        return timings_->change(it->first, now);
    });
}

} // namespace ingot::api
