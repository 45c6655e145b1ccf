// SPDX-License-Identifier: Apache-2.0
#include "base/trace.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

namespace ingot {

namespace {

using Clock = std::chrono::steady_clock;

struct Recording {
    std::mutex mutex;
    std::atomic<uint64_t> number{0}; // of the recording that goes on; 0: none
    uint64_t last = 0;
    std::atomic<Clock::rep> start{0};
    std::map<std::thread::id, int> threads;
    std::vector<TraceEvent> events;

    double now_ms() const {
        Clock::duration since(Clock::now().time_since_epoch().count() - start.load());
        return std::chrono::duration<double, std::milli>(since).count();
    }
};

Recording& recording() {
    static Recording r;
    return r;
}

} // namespace

void start_trace() {
    Recording& r = recording();
    std::scoped_lock lock(r.mutex);
    r.events.clear();
    r.threads.clear();
    r.start = Clock::now().time_since_epoch().count();
    r.number = ++r.last;
}

std::vector<TraceEvent> end_trace() {
    Recording& r = recording();
    std::scoped_lock lock(r.mutex);
    r.number = 0;
    std::vector<TraceEvent> events = std::move(r.events);
    r.events.clear();
    std::stable_sort(events.begin(), events.end(), [](const TraceEvent& a, const TraceEvent& b) {
        return a.start_ms < b.start_ms;
    });
    return events;
}

TraceSpan::TraceSpan(std::string_view phase, std::string_view detail) noexcept : phase_(phase) {
    Recording& r = recording();
    recording_ = r.number.load(std::memory_order_acquire);
    if (recording_ == 0) {
        return;
    }
    try {
        detail_ = detail;
        start_ms_ = r.now_ms();
    } catch (const std::exception&) { // without memory there is no picture
        recording_ = 0;
    }
}

TraceSpan::~TraceSpan() {
    if (recording_ == 0) {
        return;
    }
    Recording& r = recording();
    try {
        double end = r.now_ms();
        std::scoped_lock lock(r.mutex);
        if (r.number == recording_) {
            auto thread =
                r.threads.emplace(std::this_thread::get_id(), static_cast<int>(r.threads.size()));
            r.events.push_back(
                {std::string(phase_), std::move(detail_), thread.first->second, start_ms_, end});
        }
    } catch (const std::exception&) { // without memory there is no picture
        recording_ = 0;
    }
}

} // namespace ingot
