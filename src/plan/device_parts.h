// SPDX-License-Identifier: Apache-2.0
// The parts of a device beyond its memory. Planner and runner query a part where they need it; a
// device may lack any of them, as the host's does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot {

struct Rank;

/// Constants from this size on may be left to plan::ConstantUploads.
inline constexpr size_t streamable_bytes = 4096;

namespace plan {

class StoredConstant;
struct RunContext;
struct SegmentPlan;

/// Work of a device on whole plans: it chooses kernels, joins steps, and replays recordings.
class DeviceLaunches {
public:
    /// Called before each plan is made.
    virtual void begin_plan() = 0;
    /// Called when all steps of a plan are prepared and nothing has memory yet: the device may
    /// merge several entries into one step. It leaves merged entries without a step, and updates
    /// where storages are first written.
    virtual void join_steps(SegmentPlan& plan) = 0;
    /// Called after a plan was made: settles open choices; true when dependent plans must be made
    /// again, which happens at once.
    virtual bool settle() = 0;
    /// Runs the steps of a segment without host work between them (a recorded graph), if it can.
    virtual bool replay(SegmentPlan& plan, const RunContext& context) = 0;

protected:
    ~DeviceLaunches() = default;
};

/// Constants that do not stay on the device: each step that reads one needs an upload before.
class ConstantUploads {
public:
    /// Whether a constant stays on the device from the first plan that reads it.
    virtual bool keeps(const StoredConstant& constant) = 0;
    /// Copies a constant that does not stay. Only enqueues. `beside`: after earlier work and
    /// concurrent with later work, up to end_uploads().
    virtual void upload(std::byte* to, const StoredConstant& constant, bool beside) = 0;
    /// Later work may read the constants that were uploaded concurrently.
    virtual void end_uploads() = 0;
    /// The limit in bytes on constants in transit for one step while the previous step still holds
    /// its own; 0: uploads are sequential.
    virtual int64_t room() const = 0;

protected:
    ~ConstantUploads() = default;
};

/// Memory that can still be had.
class DeviceBudget {
public:
    /// Bytes that can be allocated now; -1 when unknown.
    virtual int64_t available() const = 0;
    /// Bytes that Device::constant() would allocate for it.
    virtual int64_t missing_bytes(const StoredConstant& constant) const = 0;

protected:
    ~DeviceBudget() = default;
};

/// State of steps on the device between runs.
class StepState {
public:
    /// After the last step of a run: the next one draws other random numbers.
    virtual void advance_draws() = 0;
    /// Throws errors that steps reported on the device. `waits`: of all enqueued work; else of
    /// completed work.
    virtual void check_errors(bool waits) = 0;

protected:
    ~StepState() = default;
};

/// Times by the device's clock.
class DeviceClock {
public:
    /// A time stamp, taken when the device reaches it. Valid until forget().
    virtual int mark() = 0;
    /// Milliseconds between two marks. Waits for the second.
    virtual double elapsed_ms(int from, int to) = 0;
    /// Earlier time stamps may be reused.
    virtual void forget() = 0;
    /// Work enqueued between the two starts at resume() (after two seconds at the latest), so that
    /// it never waits for the host. No other call may wait for the device between them.
    virtual void hold() = 0;
    virtual void resume() = 0;

protected:
    ~DeviceClock() = default;
};

/// Streams and events of callers, as handles of the device's driver; a null stream is its default
/// one. The device's work is on a stream of its own, or on theirs from wait_for() to let_wait().
class CallerStreams {
public:
    /// The device's own stream, with its context current to this thread; null where other libraries
    /// cannot use it.
    virtual void* native() = 0;
    /// Later work of the device waits for the earlier work of `stream`.
    virtual void wait_for(void* stream) = 0;
    /// Later work of `stream` waits for the earlier work of the device.
    virtual void let_wait(void* stream) = 0;
    /// Later work of the device has the priority of `stream`; for null, that of the options. Order
    /// with earlier work is kept.
    virtual void take_priority(void* stream) = 0;
    /// Whether `stream` is being captured. Then, between wait_for() and let_wait(), work enqueued
    /// on the device is captured too, and nothing there may wait or allocate.
    virtual bool is_captured(void* stream) = 0;
    /// Records a caller's event.
    virtual void record(void* event) = 0;

protected:
    ~CallerStreams() = default;
};

/// A part of the device's cache that memory can be kept in.
class CacheWindow {
public:
    /// Keeps `limit` bytes of this memory in the cache from now on; 0: none.
    virtual void keep(const std::byte* memory, int64_t bytes, int64_t limit) = 0;
    /// The largest such limit.
    virtual int64_t most_bytes() const = 0;

protected:
    ~CacheWindow() = default;
};

/// Exchange of data with other devices, through an application's communicator.
class DeviceCommunication {
public:
    /// This device's rank in the communicator. Errors: InvalidArgument for a communicator of
    /// another device.
    virtual Rank rank_in(void* communicator) = 0;
    /// Sets the communicator of collectives; null: none. Errors: as above.
    virtual void set_communicator(void* communicator) = 0;

protected:
    ~DeviceCommunication() = default;
};

/// Names the work enqueued between begin() and end(), for profilers.
class ProfilerRanges {
public:
    /// Whether a profiler listens.
    virtual bool active() const = 0;
    virtual void begin(const char* name) = 0;
    virtual void end() = 0;

protected:
    ~ProfilerRanges() = default;
};

/// The parts of a device; null for those that it lacks.
struct DeviceParts {
    DeviceLaunches* launches = nullptr;
    ConstantUploads* uploads = nullptr;
    DeviceBudget* budget = nullptr;
    StepState* state = nullptr;
    DeviceClock* clock = nullptr;
    CallerStreams* streams = nullptr;
    CacheWindow* cache = nullptr;
    DeviceCommunication* communication = nullptr;
    ProfilerRanges* ranges = nullptr;
};

} // namespace plan

} // namespace ingot
