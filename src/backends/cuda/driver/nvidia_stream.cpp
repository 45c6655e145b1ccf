// SPDX-License-Identifier: Apache-2.0
// NvidiaStream: a stream of the CUDA driver, or several with different priorities, one in use at a
// time.
#include "backends/cuda/driver/device_context.h"
#include "backends/cuda/driver/gate.h"
#include "base/error.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace ingot::cuda {

namespace {

class NvidiaRecording : public Recording {
public:
    NvidiaRecording(const DeviceContext& device, CUgraphExec exec) : device_(device), graph(exec) {}
    ~NvidiaRecording() override {
        Entered entered = device_.enter_quietly();
        device_.d.graph_exec_destroy(graph);
    }
    NvidiaRecording(const NvidiaRecording&) = delete;
    NvidiaRecording& operator=(const NvidiaRecording&) = delete;

private:
    const DeviceContext& device_;

public:
    CUgraphExec graph;
};

/// Page-locked staging memory for copies from and to the host, in two halves: one is filled while
/// the other is copied.
constexpr size_t staging_bytes = 8 << 20;
constexpr size_t half_bytes = staging_bytes / 2;

class NvidiaStream final : public Stream,
                           StreamRecorder,
                           StreamOrder,
                           StreamPolicy,
                           plan::DeviceClock {
public:
    NvidiaStream(const DeviceContext& device, RunPriority priority) : device_(device) {
        set_parts({.recorder = this, .order = this, .policy = this, .clock = this});
        Entered entered = device_.enter();
        device_.check(device_.d.stream_priorities(&least_, &greatest_),
                      "cuCtxGetStreamPriorityRange");
        stream_ = stream_of(number_of(priority)).handle;
    }
    ~NvidiaStream() override {
        resume();
        Entered entered = device_.enter_quietly();
        Relaxed relaxed(device_.d);
        if (is_elsewhere_) {
            device_.d.event_synchronize(left_);
        }
        device_.d.stream_synchronize(stream_);
        give_cache_back();
        for (CUevent e : events_) {
            device_.d.event_destroy(e);
        }
        for (CUevent e : {half_done_[0], half_done_[1], before_, after_, left_}) {
            if (e != nullptr) {
                device_.d.event_destroy(e);
            }
        }
        if (staging_ != nullptr) {
            device_.unlock_memory(staging_, staging_bytes);
        }
        for (const Level& l : levels_) {
            device_.d.stream_destroy(l.handle);
        }
    }
    NvidiaStream(const NvidiaStream&) = delete;
    NvidiaStream& operator=(const NvidiaStream&) = delete;

    void launch(const Function& f, const LaunchShape& shape, void* const* parameters) override {
        Entered entered = device_.enter();
        CUlaunchAttribute attributes[2] = {};
        unsigned int count = 0;
        if (shape.cluster > 1) {
            attributes[count].id = launch_cluster_dimension;
            attributes[count].dims[0] = shape.cluster;
            attributes[count].dims[1] = 1;
            attributes[count++].dims[2] = 1;
        }
        if (shape.overlap && !joined_) {
            attributes[count].id = launch_programmatic_serialization;
            attributes[count++].flag = 1;
        }
        CUlaunchConfig config = {{shape.grid[0], shape.grid[1], shape.grid[2]},
                                 {shape.block, shape.block_y, shape.block_z},
                                 shape.shared,
                                 queue(),
                                 attributes,
                                 count};
        device_.check(device_.d.launch(&config, static_cast<const NvidiaFunction&>(f).function,
                                       const_cast<void**>(parameters), nullptr),
                      "cuLaunchKernelEx");
        joined_ = false;
    }

    void* native() override {
        Entered entered = device_.enter();
        joined_ = true; // foreign work may be several nodes of a graph
        return queue();
    }

    void copy(std::byte* to, const std::byte* from, size_t bytes) override {
        if (bytes > 0) {
            Entered entered = device_.enter();
            device_.check(device_.d.copy_on_device(address(to), address(from), bytes, queue()),
                          "copying on the device");
        }
    }

    void fill(std::byte* to, int byte, size_t bytes) override {
        if (bytes > 0) {
            Entered entered = device_.enter();
            device_.check(
                device_.d.fill(address(to), static_cast<unsigned char>(byte), bytes, queue()),
                "filling device memory");
        }
    }

    void read(void* to, const std::byte* from, size_t bytes) override {
        Entered entered = device_.enter();
        synchronize();
        visit_parts(from, bytes, staging_bytes, [to](size_t at, std::span<const std::byte> part) {
            std::memcpy(static_cast<std::byte*>(to) + at, part.data(), part.size());
        });
    }

    void visit(const std::byte* from, size_t bytes, const Visit& visit) override {
        Entered entered = device_.enter();
        static_assert(visited_bytes <= staging_bytes);
        visit_parts(from, bytes, visited_bytes, visit);
    }

    void write(std::byte* to, const void* from, size_t bytes) override {
        write_filled(to, bytes, [from](size_t at, std::span<std::byte> part) {
            std::memcpy(part.data(), static_cast<const std::byte*>(from) + at, part.size());
        });
    }

    void write_filled(std::byte* to, size_t bytes, const Fill& fill) override {
        Entered entered = device_.enter();
        for (size_t at = 0; at < bytes; at += half_bytes) {
            size_t part = std::min(bytes - at, half_bytes);
            std::byte* half = staging() + half_ * half_bytes;
            if (half_used_[half_]) { // wait until it is copied
                device_.check(device_.d.event_synchronize(half_done_[half_]), "cuEventSynchronize");
            }
            fill(at, {half, part});
            device_.check(device_.d.copy_to_device(address(to + at), half, part, queue()),
                          "copying to the device");
            device_.check(device_.d.event_record(half_done_[half_], queue()), "cuEventRecord");
            half_used_[half_] = true;
            half_ = 1 - half_;
        }
    }

    void upload(std::byte* to, const std::byte* from, size_t bytes) override {
        Entered entered = device_.enter();
        device_.check(device_.d.copy_to_device(address(to), from, bytes, queue()),
                      "copying weights to the device");
    }

    void synchronize() override {
        Entered entered = device_.enter();
        device_.check(device_.d.stream_synchronize(queue()), "waiting for the GPU");
    }

    bool begin_recording() override {
        Entered entered = device_.enter();
        device_.check(device_.d.begin_capture(stream_, capture_thread_local),
                      "cuStreamBeginCapture");
        is_recording_ = true;
        return true;
    }

    std::unique_ptr<Recording> end_recording() override {
        Entered entered = device_.enter();
        is_recording_ = false;
        CUgraph graph = nullptr;
        device_.check(device_.d.end_capture(stream_, &graph), "cuStreamEndCapture");
        CUgraphExec exec = nullptr;
        CUresult r = device_.d.graph_instantiate(&exec, graph, 0);
        device_.d.graph_destroy(graph);
        device_.check(r, "cuGraphInstantiate");
        try {
            return std::make_unique<NvidiaRecording>(device_, exec);
        } catch (...) {
            device_.d.graph_exec_destroy(exec);
            throw;
        }
    }

    void launch(const Recording& r) override {
        Entered entered = device_.enter();
        device_.check(device_.d.graph_launch(static_cast<const NvidiaRecording&>(r).graph, queue()),
                      "cuGraphLaunch");
    }

    void wait_for(void* other) override {
        Entered entered = device_.enter();
        CUstream own = queue(); // a capture that it joins begins after what it has to wait for
        pass_order(static_cast<CUstream>(other), own, before_);
    }
    void let_wait(void* other) override {
        Entered entered = device_.enter();
        pass_order(queue(), static_cast<CUstream>(other), after_);
    }

    bool enter(void* other) override {
        Entered entered = device_.enter();
        auto next = static_cast<CUstream>(other);
        if (kept_ != 0 || captures(next)) { // launches on the own stream keep the cache
            return false;
        }
        make_event(left_);
        if (is_used_) {
            pass_order(stream_, next, after_);
            is_used_ = false;
        } else if (is_elsewhere_) { // it may be another stream, or one with a dead one's handle
            device_.check(device_.d.stream_wait_event(next, left_, 0), "cuStreamWaitEvent");
        }
        entered_ = next;
        joined_ = true; // the caller's work before it may be of any kind
        return true;
    }

    void leave() override {
        CUstream from = std::exchange(entered_, nullptr);
        joined_ = true;
        Entered entered = device_.enter();
        CUresult r = device_.d.event_record(left_, from);
        if (r != 0) {
            device_.d.stream_synchronize(from); // nothing else can wait for it
            device_.check(r, "cuEventRecord");
        }
        is_elsewhere_ = true;
    }

    void follow(Stream& other) override {
        Entered entered = device_.enter();
        auto& first = static_cast<NvidiaStream&>(other);
        pass_order(first.queue(), queue(), first.after_);
        joined_ = true;
    }

    void set_priority(RunPriority priority) override { move_to(number_of(priority)); }

    void take_priority(void* other) override {
        Entered entered = device_.enter();
        int priority = 0;
        device_.check(device_.d.stream_priority(static_cast<CUstream>(other), &priority),
                      "asking for the priority of the caller's stream");
        move_to(priority);
    }

    bool is_captured(void* other) override {
        Entered entered = device_.enter();
        return captures(static_cast<CUstream>(other));
    }

    void record(void* event) override {
        Entered entered = device_.enter();
        device_.check(device_.d.event_record(static_cast<CUevent>(event), queue()),
                      "recording the event for inputs");
    }

    void keep_in_cache(const std::byte* memory, int64_t bytes, int64_t limit) override {
        Entered entered = device_.enter();
        limit = memory == nullptr || bytes == 0 ? 0 : limit;
        int64_t most = device_.attribute(DeviceAttribute::MaxAccessPolicyWindowSize);
        CUaccessPolicyWindow window{};
        if (limit > 0) {
            window.base = const_cast<std::byte*>(memory);
            window.bytes = static_cast<size_t>(std::min(bytes, most));
            window.hit_ratio = static_cast<float>(
                std::min(1.0, static_cast<double>(limit) / static_cast<double>(window.bytes)));
            constexpr int streaming = 1;
            constexpr int persisting = 2;
            window.hit = persisting;
            window.miss = streaming;
        }
        if (limit != kept_) {
            device_.set_aside(limit - kept_);
            kept_ = limit;
        }
        window_ = window;
        set_window(*level_of(stream_));
    }

    /// In a caller's graph, every launch takes the time stamp again.
    int mark() override {
        Entered entered = device_.enter();
        if (used_events_ == events_.size()) {
            events_.reserve(events_.size() + 1);
            CUevent e = nullptr;
            device_.check(device_.d.event_create(&e, 0), "cuEventCreate");
            events_.push_back(e);
        }
        CUstream s = queue();
        unsigned int flags = captures(s) ? event_record_external : 0;
        device_.check(device_.d.event_record_with_flags(events_[used_events_], s, flags),
                      "cuEventRecord");
        return static_cast<int>(used_events_++);
    }

    double elapsed_ms(int from, int to) override {
        Entered entered = device_.enter();
        float ms = 0;
        device_.check(device_.d.event_synchronize(events_.at(static_cast<size_t>(to))),
                      "cuEventSynchronize");
        device_.check(device_.d.event_elapsed(&ms, events_.at(static_cast<size_t>(from)),
                                              events_.at(static_cast<size_t>(to))),
                      "cuEventElapsedTime");
        return static_cast<double>(ms);
    }

    void forget() override { used_events_ = 0; }

    void hold() override {
        Entered entered = device_.enter();
        gate_.close();
        CUresult r = device_.d.launch_host(
            queue(), [](void* gate) { static_cast<Gate*>(gate)->pass(); }, &gate_);
        if (r != 0) {
            gate_.open();
            device_.check(r, "cuLaunchHostFunc");
        }
    }
    void resume() override { gate_.open(); }

private:
    template <class F>
    void visit_parts(const std::byte* from, size_t bytes, size_t most, const F& visit) {
        for (size_t at = 0; at < bytes; at += most) {
            std::span<std::byte> part(staging(), std::min(bytes - at, most));
            device_.check(
                device_.d.copy_to_host(part.data(), address(from + at), part.size(), queue()),
                "copying to the host");
            synchronize();
            visit(at, part);
        }
    }

    /// A stream of the driver with its priority.
    struct Level {
        int priority = 0;
        CUstream handle = nullptr;
        bool keeps = false; // it has an access policy window
    };

    /// In the driver's numbering, smaller numbers are more urgent; the default is 0, which is also
    /// the least on present GPUs.
    int number_of(RunPriority priority) const {
        return priority == RunPriority::Low      ? least_
               : priority == RunPriority::Normal ? std::clamp(0, greatest_, least_)
                                                 : greatest_;
    }

    Level* level_of(CUstream s) {
        return &*std::find_if(levels_.begin(), levels_.end(),
                              [s](const Level& l) { return l.handle == s; });
    }

    /// Made on first use.
    Level& stream_of(int priority) {
        auto it = std::find_if(levels_.begin(), levels_.end(),
                               [priority](const Level& l) { return l.priority == priority; });
        if (it != levels_.end()) {
            return *it;
        }
        levels_.reserve(levels_.size() + 1);
        Relaxed relaxed(device_.d);
        Level made{priority};
        device_.check(device_.d.stream_create(&made.handle, stream_non_blocking, priority),
                      "cuStreamCreateWithPriority");
        return levels_.emplace_back(made);
    }

    /// Graphs run at the priority of the launching stream: recordings stay valid.
    void move_to(int priority) {
        if (level_of(stream_)->priority == priority) {
            return;
        }
        Entered entered = device_.enter();
        Level& next = stream_of(priority);
        if (kept_ != 0 || next.keeps) {
            set_window(next);
        }
        pass_order(stream_, next.handle, after_);
        stream_ = next.handle;
        joined_ = true;
    }

    void set_window(Level& l) {
        device_.check(
            device_.d.stream_set_attribute(l.handle, stream_access_policy_window, &window_),
            "keeping memory in the cache");
        l.keeps = kept_ != 0;
    }

    bool captures(CUstream s) const {
        int status = 0;
        device_.check(device_.d.stream_capturing(s, &status), "cuStreamIsCapturing");
        return status != 0;
    }

    void give_cache_back() noexcept {
        try {
            if (kept_ != 0) {
                device_.set_aside(-kept_);
            }
        } catch (const std::exception&) {
            kept_ = 0; // the device is gone
        }
    }

    /// The driver's stream for the next work. The context is current.
    CUstream queue() {
        if (is_recording_) {
            return stream_;
        }
        if (entered_ != nullptr) {
            return entered_;
        }
        if (is_elsewhere_) {
            device_.check(device_.d.stream_wait_event(stream_, left_, 0), "cuStreamWaitEvent");
            is_elsewhere_ = false;
            joined_ = true;
        }
        is_used_ = true;
        return stream_;
    }

    void make_event(CUevent& event) const {
        if (event == nullptr) {
            device_.check(device_.d.event_create(&event, event_without_timing), "cuEventCreate");
        }
    }

    /// Later work of `second` waits for the earlier work of `first`. A waiter keeps waiting for the
    /// event's old record when the event is recorded again.
    void pass_order(CUstream first, CUstream second, CUevent& event) {
        Entered entered = device_.enter();
        make_event(event);
        device_.check(device_.d.event_record(event, first), "cuEventRecord");
        device_.check(device_.d.stream_wait_event(second, event, 0), "cuStreamWaitEvent");
    }

    std::byte* staging() {
        Entered entered = device_.enter();
        if (staging_ == nullptr) {
            staging_ = device_.lock_memory(staging_bytes);
        }
        for (CUevent& e : half_done_) {
            if (e == nullptr) {
                device_.check(device_.d.event_create(&e, 0), "cuEventCreate");
            }
        }
        return static_cast<std::byte*>(staging_);
    }

    const DeviceContext& device_;
    int least_ = 0;
    int greatest_ = 0;
    std::vector<Level> levels_;
    CUstream stream_ = nullptr;  // the one in use, beside a caller's
    CUstream entered_ = nullptr; // the caller's stream in use
    CUevent left_ = nullptr;     // passes when the work on the stream that was left is complete
    bool is_elsewhere_ = false;  // ... for which the own stream has not waited yet
    bool is_used_ = false;       // the own stream has work since a caller's was entered
    bool is_recording_ = false;
    CUaccessPolicyWindow window_{};
    CUevent before_ = nullptr;
    CUevent after_ = nullptr;
    void* staging_ = nullptr;
    CUevent half_done_[2] = {};
    bool half_used_[2] = {};
    size_t half_ = 0;
    // the next launch waits for more than one kernel of ours: an ordinary edge
    bool joined_ = false;
    std::vector<CUevent> events_;
    size_t used_events_ = 0;
    int64_t kept_ = 0; // in the cache
    Gate gate_;
};

} // namespace

std::unique_ptr<Stream> make_nvidia_stream(const DeviceContext& device, RunPriority priority) {
    return std::make_unique<NvidiaStream>(device, priority);
}

} // namespace ingot::cuda
