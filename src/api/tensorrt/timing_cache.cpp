// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/timing_cache.h"

#include "api/tensorrt/host_memory.h"

#include <cmath>
#include <cstring>
#include <memory>

namespace ingot::api {

namespace nv = nvinfer1;

namespace {

// Magic, then rows of key, hash and time.
constexpr std::array<char, 8> magic = {'I', 'N', 'G', 'O', 'T', 'T', 'C', '1'};
constexpr size_t row_bytes = 16 + sizeof(uint64_t) + sizeof(float);

} // namespace

TimingCacheObject::TimingCacheObject(const Report& report, std::span<const std::byte> bytes)
    : report_(report) {
    if (bytes.empty()) {
        return;
    }
    require(bytes.size() >= magic.size() &&
                std::memcmp(bytes.data(), magic.data(), magic.size()) == 0 &&
                (bytes.size() - magic.size()) % row_bytes == 0,
            ErrorCode::InvalidArgument, "the ", bytes.size(),
            " bytes are no timing cache of this release; start with an empty one");
    for (size_t at = magic.size(); at < bytes.size(); at += row_bytes) {
        Key key{};
        nv::TimingCacheValue value{};
        const std::byte* row = bytes.data() + at;
        std::memcpy(key.data(), row, key.size());
        std::memcpy(&value.tacticHash, row + key.size(), sizeof value.tacticHash);
        std::memcpy(&value.timingMSec, row + key.size() + sizeof value.tacticHash, sizeof(float));
        entries_[key] = value;
    }
}

TimingCacheObject::Key TimingCacheObject::key_of(const nv::TimingCacheKey& key) {
    Key out{};
    std::memcpy(out.data(), key.data, out.size());
    return out;
}

nv::IHostMemory* TimingCacheObject::serialize() const noexcept {
    return report_.guard("ITimingCache::serialize", static_cast<nv::IHostMemory*>(nullptr),
                         [&]() -> nv::IHostMemory* {
                             AlignedBytes out;
                             auto put = [&](const void* data, size_t bytes) {
                                 const auto* p = static_cast<const std::byte*>(data);
                                 out.insert(out.end(), p, p + bytes);
                             };
                             put(magic.data(), magic.size());
                             for (const auto& [key, value] : entries_) {
                                 put(key.data(), key.size());
                                 put(&value.tacticHash, sizeof value.tacticHash);
                                 put(&value.timingMSec, sizeof value.timingMSec);
                             }
                             return std::make_unique<HostMemory>(std::move(out)).release();
                         });
}

bool TimingCacheObject::combine(const nv::ITimingCache& input_cache, bool) noexcept {
    return report_.guard("ITimingCache::combine", false, [&] {
        const auto& other = static_cast<const TimingCacheObject&>(input_cache);
        entries_.insert(other.entries_.begin(), other.entries_.end());
        return true;
    });
}

bool TimingCacheObject::reset() noexcept {
    entries_.clear();
    return true;
}

int64_t TimingCacheObject::queryKeys(nv::TimingCacheKey* key_buffer,
                                     int64_t capacity) const noexcept {
    return report_.guard("ITimingCache::queryKeys", int64_t{-1}, [&] {
        require(capacity >= 0, ErrorCode::InvalidArgument, "capacity is ", capacity,
                ", expected 0 or more");
        int64_t i = 0;
        for (const auto& entry : entries_) {
            if (key_buffer != nullptr && i < capacity) {
                std::memcpy(key_buffer[i].data, entry.first.data(), entry.first.size());
            }
            ++i;
        }
        return i;
    });
}

nv::TimingCacheValue TimingCacheObject::query(const nv::TimingCacheKey& key) const noexcept {
    auto it = entries_.find(key_of(key));
    return it != entries_.end()
               ? it->second
               : nv::TimingCacheValue{nv::TimingCacheValue::kINVALID_TACTIC_HASH, 0};
}

bool TimingCacheObject::update(const nv::TimingCacheKey& key,
                               const nv::TimingCacheValue& value) noexcept {
    return report_.guard("ITimingCache::update", false, [&] {
        auto it = entries_.find(key_of(key));
        require(it != entries_.end(), ErrorCode::InvalidArgument, "there is no such key");
        if (std::isnan(value.timingMSec)) {
            entries_.erase(it);
            return true;
        }
        require(value.tacticHash != nv::TimingCacheValue::kINVALID_TACTIC_HASH,
                ErrorCode::InvalidArgument, "the hash is kINVALID_TACTIC_HASH");
        it->second = value;
        return true;
    });
}

} // namespace ingot::api
