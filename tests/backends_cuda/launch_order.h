// SPDX-License-Identifier: Apache-2.0
// LaunchOrder: which launches of a fake driver come behind which, by the events between its
// streams.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace ingot::test::fake {

class LaunchOrder {
public:
    void launch(const void* stream) {
        Reached& here = reached_[stream];
        bool behind = launches_ == 0 || has_last(here) || has_last(waited_for_);
        unordered_ += behind ? 0 : 1;
        last_stream_ = stream;
        here[stream] = ++launches_;
    }
    void record(const void* event, const void* stream) { passed_[event] = reached_[stream]; }
    void wait(const void* stream, const void* event) { merge(reached_[stream], passed_[event]); }
    void host_waits_for_stream(const void* stream) { merge(waited_for_, reached_[stream]); }
    void host_waits_for_event(const void* event) { merge(waited_for_, passed_[event]); }
    /// The stream is gone; its handle may be another's from now on.
    void end_stream(const void* stream) { reached_.erase(stream); }
    /// Launches that nothing keeps behind the launch before.
    int64_t unordered() const { return unordered_; }

private:
    /// Launches are numbered: by stream, the last one that later work comes behind.
    using Reached = std::map<const void*, int64_t>;
    bool has_last(const Reached& r) const {
        auto last = r.find(last_stream_);
        return last != r.end() && last->second == launches_;
    }
    static void merge(Reached& into, const Reached& from) {
        for (const auto& [stream, launch] : from) {
            into[stream] = std::max(into[stream], launch);
        }
    }

    std::map<const void*, Reached> reached_; // by a stream's later work
    std::map<const void*, Reached> passed_;  // by an event
    Reached waited_for_;                     // by the host
    const void* last_stream_ = nullptr;      // of the last launch
    int64_t launches_ = 0;
    int64_t unordered_ = 0;
};

} // namespace ingot::test::fake
