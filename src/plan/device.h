// SPDX-License-Identifier: Apache-2.0
// Device: the memory in which steps read and write, as the runner sees it. The CPU's is the
// process's own; a GPU's is behind a stream, on which every operation here is ordered.
#pragma once

#include "ir/tensor.h"

#include <cstddef>
#include <map>
#include <memory>

namespace ingot {
struct MemorySource;
struct Rank;
} // namespace ingot

namespace ingot::plan {

struct SegmentPlan;
struct RunContext;

/// One per execution; used by one thread at a time.
class Device {
public:
    Device() = default;
    virtual ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    /// At least 256-byte aligned on a GPU, 64 on the host. Errors: OutOfMemory with what was
    /// needed.
    virtual std::byte* allocate(int64_t bytes) = 0;
    virtual void release(std::byte* memory) noexcept = 0;
    /// Gives what is allocated from now on; null: who gave it in the beginning. Each block goes
    /// back to where it came from.
    virtual void set_memory(std::shared_ptr<MemorySource> source) = 0;
    /// Where kernels read a constant; valid as long as the device and the tensor's bytes.
    virtual const std::byte* constant(const Tensor& t) = 0;
    /// Whether a constant lies on the device from the first plan that reads it on; else each step
    /// that reads it needs an upload() before.
    virtual bool keeps(const Tensor& constant) {
        (void)constant;
        return true;
    }
    /// Copies a constant that is not kept. Only enqueues.
    virtual void upload(std::byte* to, const Tensor& constant) {
        write(to, constant.bytes().data(), constant.bytes().size());
    }
    /// The same, after what has been enqueued so far and beside what is enqueued next, up to
    /// end_uploads(): what follows that may read the constants.
    virtual void begin_upload(std::byte* to, const Tensor& constant) { upload(to, constant); }
    virtual void end_uploads() {}
    /// The most bytes of constants that may be on their way for one step while the one before still
    /// has its own; 0: they come in order.
    virtual int64_t upload_room() const { return 0; }
    virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
    virtual void fill(std::byte* to, int byte, size_t bytes) = 0;
    /// To the host; everything before it has run when it returns.
    virtual void read(void* to, const std::byte* from, size_t bytes) = 0;
    /// From the host; `from` may change once it returns.
    virtual void write(std::byte* to, const void* from, size_t bytes) = 0;
    /// Waits until everything so far has run.
    virtual void synchronize() = 0;
    /// Runs the steps of a segment without host work in between (a recorded graph), if it can.
    virtual bool replay(SegmentPlan&, const RunContext&) { return false; }

    virtual bool is_host() const { return false; }
    /// The stream that work here is ordered on, as other libraries take it (a CUstream), with its
    /// context current to this thread; null on the host.
    virtual void* native_stream() { return nullptr; }
    /// For steps that draw random numbers on the host: how many runs before this one have.
    uint64_t draw() {
        draws_ = true;
        return runs_that_drew_;
    }
    /// After the last step of a run: the next one draws other numbers.
    virtual void end_draws() {
        runs_that_drew_ += draws_ ? 1 : 0;
        draws_ = false;
    }
    /// After the last step of a run: throws what steps could only report on the device.
    virtual void finish_run() {}
    /// A point of time on the device, and the milliseconds between two; -1 and 0 when not measured.
    virtual int mark_time() { return -1; }
    virtual double elapsed_ms(int, int) { return 0; }
    virtual void forget_times() {}
    /// What is enqueued between the two starts at the second, if the device can do so: then nothing
    /// waits for the host. No other call may wait for the device in between.
    virtual void hold() {}
    virtual void resume() {}

    /// What is enqueued here from now on waits for everything that `stream` holds, and the other
    /// way round: a stream of this device that is the caller's (a CUstream; null is the default
    /// one).
    virtual void wait_for(void* stream) { (void)stream; }
    virtual void let_wait(void* stream) { (void)stream; }
    /// What is enqueued here from now on is as urgent as the work of `stream`, the caller's; of
    /// null: as CompileOptions::priority says. In order with what was enqueued before.
    virtual void take_priority(void* stream) { (void)stream; }
    /// Throws what steps of earlier runs have reported on the device, without waiting for them.
    virtual void check_errors() {}

    /// Whether what goes to `stream` is being captured. Then, between wait_for() and let_wait(),
    /// what is enqueued here is captured too, and nothing here may wait or allocate.
    virtual bool is_captured(void* stream) {
        (void)stream;
        return false;
    }
    /// Records an event of the caller's (a CUevent).
    virtual void record(void* event) { (void)event; }
    /// Keeps `limit` bytes of this memory in the cache from now on; 0: of none.
    virtual void keep_in_cache(const std::byte* memory, int64_t bytes, int64_t limit) {
        (void)memory, (void)bytes, (void)limit;
    }
    /// The most that can be kept.
    virtual int64_t most_cache_bytes() const { return 0; }

    /// The rank that an application's communicator (an ncclComm_t) gives this device. Errors:
    /// Unsupported where data is not exchanged by one; InvalidArgument for one of another device.
    virtual Rank rank_in(void* communicator);
    /// Exchanges data by it from now on; null: not any more. Errors: as above.
    virtual void set_communicator(void* communicator);

    /// Before each plan is made.
    virtual void begin_plan() {}
    /// All steps of a plan are prepared, and nothing has memory yet: the device may have one step
    /// do the work of several entries. It leaves empty entries without a step, and storages that
    /// begin where they are written now.
    virtual void join_steps(SegmentPlan& plan) { (void)plan; }
    /// After a plan was made: decides what it left open; true when plans that rest on it have to be
    /// made again, which happens at once.
    virtual bool settle() { return false; }
    /// Names what the caller enqueues in between, for profilers.
    virtual bool has_ranges() const { return false; } // a profiler listens
    virtual void begin_range(const char*) {}
    virtual void end_range() {}
    /// Bytes that could be allocated now; -1 when not known.
    virtual int64_t available() const { return -1; }
    /// Bytes that `constant` would allocate for it.
    virtual int64_t missing_bytes(const Tensor&) const { return 0; }

    /// Uninitialised; its bytes are in this device's memory, which is used again when the tensor is
    /// gone. Not to outlive the device.
    Tensor tensor(DType dtype, Shape shape);
    /// What steps of one execution share under a key, null at first; it goes with the device.
    std::shared_ptr<void>& shared_state(const void* key) { return states_[key]; }

protected:
    /// Gives back what tensors that are gone have left. To be called by destructors.
    void release_spare() noexcept;
    /// What keeps this host's device while a tensor of it is kept; null: it stays anyway.
    virtual std::shared_ptr<void> owner() { return nullptr; }

private:
    struct Spare;
    uint64_t runs_that_drew_ = 0;
    bool draws_ = false;           // this run
    std::shared_ptr<Spare> spare_; // null: none was needed yet
    std::map<const void*, std::shared_ptr<void>> states_;
};

/// The process's memory.
Device& host_device();
/// The same, with blocks that `source` gives; null: the system.
std::shared_ptr<Device> make_host_device(std::shared_ptr<MemorySource> source);

/// Memory of a device that only grows.
class GrowingBuffer {
public:
    explicit GrowingBuffer(Device& device) : device_(&device) {}
    ~GrowingBuffer();
    GrowingBuffer(const GrowingBuffer&) = delete;
    GrowingBuffer& operator=(const GrowingBuffer&) = delete;
    GrowingBuffer(GrowingBuffer&& o) noexcept;
    GrowingBuffer& operator=(GrowingBuffer&& o) noexcept;
    /// True when the memory moved; what it held is lost. Errors: OutOfMemory.
    bool reserve(int64_t bytes);
    void give_back();
    /// Uses the caller's memory from now on; null goes back to memory of its own. What it held is
    /// lost. reserve() then fails for more than `bytes`.
    void lend(std::byte* memory, int64_t bytes);
    std::byte* data() const { return data_; }
    int64_t bytes() const { return bytes_; }

private:
    Device* device_;
    std::byte* data_ = nullptr;
    int64_t bytes_ = 0;
    bool lent_ = false;
};

} // namespace ingot::plan
