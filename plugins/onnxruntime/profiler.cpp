// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/profiler.h"

#include <unistd.h>

#include <iterator>

namespace ingot::ort {

namespace {

constexpr int32_t kernel_category = 2; // OrtProfilingEventCategory_KERNEL

/// The host writes texts into JSON as they are.
std::string plain(std::string text) {
    for (char& c : text) {
        bool is_special = c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
        c = is_special ? ' ' : c;
    }
    return text;
}

} // namespace

void Profilers::enter(Profiler& p) {
    std::lock_guard<std::mutex> lock(mutex_);
    at_work_.insert(&p);
    count_ = at_work_.size();
}

void Profilers::leave(Profiler& p) {
    std::lock_guard<std::mutex> lock(mutex_);
    at_work_.erase(&p);
    count_ = at_work_.size();
}

void Profilers::add(const TimedRun& run) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Profiler* p : at_work_) {
        p->runs_.push_back(run);
    }
}

Profiler::Profiler(const Host& host, std::shared_ptr<Profilers> all)
    : OrtEpProfilerImpl{}, host_(host), all_(std::move(all)) {
    ort_version_supported = host.version;
    Release = [](OrtEpProfilerImpl* self) {
        std::unique_ptr<Profiler>(static_cast<Profiler*>(self)).reset();
    };
    StartProfiling = start;
    // The host has events of its own for the nodes.
    StartEvent = [](OrtEpProfilerImpl*, uint64_t) { return static_cast<OrtStatus*>(nullptr); };
    StopEvent = [](OrtEpProfilerImpl*, uint64_t, const OrtProfilingEvent*) {
        return static_cast<OrtStatus*>(nullptr);
    };
    EndProfiling = end;
}

Profiler::~Profiler() {
    all_->leave(*this);
}

OrtStatus* Profiler::start(OrtEpProfilerImpl* self, int64_t offset_ns) {
    auto& me = *static_cast<Profiler*>(self);
    return guard(me.host_, [&] {
        me.start_ = std::chrono::steady_clock::now();
        me.offset_ns_ = offset_ns;
        me.all_->enter(me);
    });
}

OrtStatus* Profiler::end(OrtEpProfilerImpl* self, OrtProfilingEventsContainer* container) {
    auto& me = *static_cast<Profiler*>(self);
    return guard(me.host_, [&] {
        me.all_->leave(me);
        me.add_events(container);
    });
}

void Profiler::add_events(OrtProfilingEventsContainer* container) const {
    using Event = std::unique_ptr<OrtProfilingEvent, decltype(host_.ep->ReleaseProfilingEvent)>;
    std::vector<Event> owned;
    std::vector<const OrtProfilingEvent*> events;
    for (const TimedRun& run : runs_) {
        using ns = std::chrono::nanoseconds;
        auto since = std::chrono::duration_cast<ns>(run.start - start_).count() + offset_ns_;
        double at = static_cast<double>(since) / 1000;
        std::string part = plain(run.what);
        for (const LayerTime& l : run.layers) {
            std::string name = plain(l.name);
            const char* keys[] = {"provider", "onnx_nodes", "subgraph"};
            const char* values[] = {ep_name, name.c_str(), part.c_str()};
            OrtProfilingEvent* made = nullptr;
            host_.check(host_.ep->CreateProfilingEvent(
                kernel_category, getpid(), run.thread, name.c_str(), static_cast<int64_t>(at),
                static_cast<int64_t>(l.us), keys, values, std::size(keys), &made));
            owned.emplace_back(made, host_.ep->ReleaseProfilingEvent);
            events.push_back(made);
            at += l.us;
        }
    }
    if (!events.empty()) {
        host_.check(
            host_.ep->ProfilingEventsContainer_AddEvents(container, events.data(), events.size()));
    }
}

} // namespace ingot::ort
