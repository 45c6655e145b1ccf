// SPDX-License-Identifier: Apache-2.0
// The parts of a device beyond its memory. Planner and runner ask for a part where they need it; a
// device without it, as the host's, has none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot {

struct Rank;
class Tensor;

/// Constants from this size on may be left to plan::ConstantUploads.
inline constexpr size_t streamable_bytes = 4096;

namespace plan {

struct RunContext;
struct SegmentPlan;

/// What a device does with whole plans: it chooses kernels, joins steps, and repeats recordings.
class DeviceLaunches {
public:
    /// Before each plan is made.
    virtual void begin_plan() = 0;
    /// All steps of a plan are prepared, and nothing has memory yet: the device may have one step
    /// do the work of several entries. It leaves empty entries without a step, and storages that
    /// begin where they are written now.
    virtual void join_steps(SegmentPlan& plan) = 0;
    /// After a plan was made: decides what it left open; true when plans that rest on it have to be
    /// made again, which happens at once.
    virtual bool settle() = 0;
    /// Runs the steps of a segment without host work in between (a recorded graph), if it can.
    virtual bool replay(SegmentPlan& plan, const RunContext& context) = 0;

protected:
    ~DeviceLaunches() = default;
};

/// Constants that do not stay on the device: each step that reads one needs an upload before.
class ConstantUploads {
public:
    /// Whether a constant lies on the device from the first plan that reads it on.
    virtual bool keeps(const Tensor& constant) = 0;
    /// Copies a constant that is not kept. Only enqueues. `beside`: after what has been enqueued so
    /// far and beside what is enqueued next, up to end_uploads().
    virtual void upload(std::byte* to, const Tensor& constant, bool beside) = 0;
    /// What follows may read the constants that came beside other work.
    virtual void end_uploads() = 0;
    /// The most bytes of constants that may be on their way for one step while the one before still
    /// has its own; 0: they come in order.
    virtual int64_t room() const = 0;

protected:
    ~ConstantUploads() = default;
};

/// Memory that can still be had.
class DeviceBudget {
public:
    /// Bytes that could be allocated now; -1 when not known.
    virtual int64_t available() const = 0;
    /// Bytes that Device::constant() would allocate for it.
    virtual int64_t missing_bytes(const Tensor& constant) const = 0;

protected:
    ~DeviceBudget() = default;
};

/// What steps leave on the device between runs.
class StepState {
public:
    /// After the last step of a run: the next one draws other random numbers.
    virtual void advance_draws() = 0;
    /// Throws what steps could only report on the device. `waits`: of all that is enqueued; else of
    /// what has run so far.
    virtual void check_errors(bool waits) = 0;

protected:
    ~StepState() = default;
};

/// Times as the device has them.
class DeviceClock {
public:
    /// A point of time, once the device has come to it. Valid until forget().
    virtual int mark() = 0;
    /// Milliseconds between two marks. Waits for the second.
    virtual double elapsed_ms(int from, int to) = 0;
    /// Marks made so far may be used again.
    virtual void forget() = 0;
    /// Work that is enqueued between the two starts at resume() (after two seconds at the latest),
    /// so that nothing in it waits for the host. No other call may wait for the device in between.
    virtual void hold() = 0;
    virtual void resume() = 0;

protected:
    ~DeviceClock() = default;
};

/// Streams and events of callers, as the device's driver has them; a null stream is its default
/// one. The device's own work is ordered on a stream of its own.
class CallerStreams {
public:
    /// The device's own stream, with its context current to this thread; null where other libraries
    /// cannot use it.
    virtual void* native() = 0;
    /// What is enqueued on the device from now on waits for everything that `stream` holds.
    virtual void wait_for(void* stream) = 0;
    /// The other way round.
    virtual void let_wait(void* stream) = 0;
    /// What is enqueued on the device from now on is as urgent as the work of `stream`; of null: as
    /// the options say. In order with what was enqueued before.
    virtual void take_priority(void* stream) = 0;
    /// Whether what goes to `stream` is being captured. Then, between wait_for() and let_wait(),
    /// what is enqueued on the device is captured too, and nothing there may wait or allocate.
    virtual bool is_captured(void* stream) = 0;
    /// Records an event of the caller's.
    virtual void record(void* event) = 0;

protected:
    ~CallerStreams() = default;
};

/// A part of the device's cache that memory can be kept in.
class CacheWindow {
public:
    /// Keeps `limit` bytes of this memory in the cache from now on; 0: of none.
    virtual void keep(const std::byte* memory, int64_t bytes, int64_t limit) = 0;
    /// The most that can be kept.
    virtual int64_t most_bytes() const = 0;

protected:
    ~CacheWindow() = default;
};

/// Exchange of data with other devices, by a communicator of the application's.
class DeviceCommunication {
public:
    /// The rank that the communicator gives this device. Errors: InvalidArgument for one of another
    /// device.
    virtual Rank rank_in(void* communicator) = 0;
    /// Exchanges data by it from now on; null: not any more. Errors: as above.
    virtual void set_communicator(void* communicator) = 0;

protected:
    ~DeviceCommunication() = default;
};

/// Names, for profilers, of what the caller enqueues between begin() and end().
class ProfilerRanges {
public:
    /// Whether a profiler listens.
    virtual bool active() const = 0;
    virtual void begin(const char* name) = 0;
    virtual void end() = 0;

protected:
    ~ProfilerRanges() = default;
};

/// The parts that a device has; null where it has none.
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
