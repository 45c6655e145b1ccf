// SPDX-License-Identifier: Apache-2.0
// Profiler: the layers of our runs in ONNX Runtime's own profile (1.25 and later).
#pragma once

#include "plugins/onnxruntime/host.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace ingot::ort {

/// One layer of a run. The times follow each other from the run's start on.
struct LayerTime {
    std::string name;
    double us = 0;
};
struct TimedRun {
    std::string what;   // the part of the model that ran
    int32_t thread = 0; // as the system numbers it
    std::chrono::steady_clock::time_point start;
    std::vector<LayerTime> layers;
};

class Profiler;

/// The profilers of a session that are at work. Thread safe.
class Profilers {
public:
    bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
    /// Hands a run to each of them.
    void add(const TimedRun& run);

private:
    friend class Profiler;
    void enter(Profiler& p);
    void leave(Profiler& p);
    std::atomic<size_t> count_ = 0;
    std::mutex mutex_;
    std::set<Profiler*> at_work_;
};

/// The host deletes it by Release().
class Profiler final : public OrtEpProfilerImpl {
public:
    Profiler(const Host& host, std::shared_ptr<Profilers> all);
    ~Profiler();
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;

private:
    friend class Profilers;
    static OrtStatus* start(OrtEpProfilerImpl* self, int64_t offset_ns);
    static OrtStatus* end(OrtEpProfilerImpl* self, OrtProfilingEventsContainer* container);
    void add_events(OrtProfilingEventsContainer* container) const;

    Host host_;
    std::shared_ptr<Profilers> all_;
    std::chrono::steady_clock::time_point start_;
    int64_t offset_ns_ = 0;      // of start_ in the host's profile
    std::vector<TimedRun> runs_; // under the mutex of all_
};

} // namespace ingot::ort
