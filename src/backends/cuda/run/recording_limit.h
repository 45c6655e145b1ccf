// SPDX-License-Identifier: Apache-2.0
// RecordingLimit: how many recordings devices keep together.
#pragma once

#include "backends/cuda/driver/gpu.h"

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace ingot::cuda {

/// Places for recordings; the one used least recently makes way for a new one. Thread safe.
class RecordingLimit {
public:
    static constexpr size_t usual = 16;
    explicit RecordingLimit(size_t most) : most_(most) {}
    size_t most() const { return most_; }
    /// The number of a new, empty place.
    uint64_t add();
    /// Puts a recording into a place, if there still is one.
    void keep(uint64_t place, std::shared_ptr<const Recording> recording);
    /// False where the place has made way; else it is now the last used, and `recording` what it
    /// holds. A recording that makes way meanwhile lives as long as this pointer.
    bool use(uint64_t place, std::shared_ptr<const Recording>& recording);
    void give_up(uint64_t place) noexcept;
    /// Recordings in all places.
    size_t count() const;

private:
    struct Place {
        uint64_t number = 0;
        std::shared_ptr<const Recording> recording;
    };
    size_t most_;
    mutable std::mutex mutex_;
    uint64_t last_ = 0;
    std::list<Place> places_; // the last used first
    std::unordered_map<uint64_t, std::list<Place>::iterator> by_number_;
};

/// One place of a limit, given up at the end.
class RecordingPlace {
public:
    explicit RecordingPlace(std::shared_ptr<RecordingLimit> limit)
        : limit_(std::move(limit)), number_(limit_->add()) {}
    ~RecordingPlace() { limit_->give_up(number_); }
    RecordingPlace(const RecordingPlace&) = delete;
    RecordingPlace& operator=(const RecordingPlace&) = delete;
    bool use(std::shared_ptr<const Recording>& recording) {
        return limit_->use(number_, recording);
    }
    void keep(std::shared_ptr<const Recording> recording) {
        limit_->keep(number_, std::move(recording));
    }

private:
    std::shared_ptr<RecordingLimit> limit_;
    uint64_t number_;
};

} // namespace ingot::cuda
