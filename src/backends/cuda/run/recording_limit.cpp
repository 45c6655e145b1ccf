// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/recording_limit.h"

#include "backends/cuda/options.h"

#include <utility>

namespace ingot::cuda {

uint64_t RecordingLimit::add() {
    std::list<Place> gone; // destroyed outside the lock: the driver is called
    std::scoped_lock lock(mutex_);
    places_.push_front({++last_, nullptr});
    by_number_.emplace(last_, places_.begin());
    if (places_.size() > most_) {
        by_number_.erase(places_.back().number);
        gone.splice(gone.begin(), places_, std::prev(places_.end()));
    }
    return last_;
}

void RecordingLimit::keep(uint64_t place, std::shared_ptr<const Recording> recording) {
    std::scoped_lock lock(mutex_);
    if (auto it = by_number_.find(place); it != by_number_.end()) {
        std::swap(it->second->recording, recording);
    }
}

bool RecordingLimit::use(uint64_t place, std::shared_ptr<const Recording>& recording) {
    std::scoped_lock lock(mutex_);
    auto it = by_number_.find(place);
    if (it == by_number_.end()) {
        return false;
    }
    places_.splice(places_.begin(), places_, it->second);
    recording = it->second->recording;
    return true;
}

void RecordingLimit::give_up(uint64_t place) noexcept {
    std::list<Place> gone;
    std::scoped_lock lock(mutex_);
    if (auto it = by_number_.find(place); it != by_number_.end()) {
        gone.splice(gone.begin(), places_, it->second);
        by_number_.erase(it);
    }
}

size_t RecordingLimit::count() const {
    std::scoped_lock lock(mutex_);
    size_t count = 0;
    for (const Place& p : places_) {
        count += p.recording == nullptr ? 0 : 1;
    }
    return count;
}

std::shared_ptr<RecordingLimit> make_recording_limit(size_t most) {
    return std::make_shared<RecordingLimit>(most);
}

size_t most_recordings(const RecordingLimit& limit) {
    return limit.most();
}

size_t count_recordings(const RecordingLimit& limit) {
    return limit.count();
}

} // namespace ingot::cuda
