// SPDX-License-Identifier: Apache-2.0
// Gpu: what the CUDA backend needs of a device, its driver and a compiler for its kernels. One
// implementation calls the CUDA driver and NVRTC; the tests have another that runs kernels on the
// host.
#pragma once

#include "base/priority.h"
#include "kernels/family.h"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace ingot::cuda {

/// A loaded kernel. Lives as long as its Gpu.
class Function {
public:
    virtual ~Function() = default;
};

/// Recorded work that can be launched again.
class Recording {
public:
    virtual ~Recording() = default;
};

struct LaunchShape {
    std::array<uint32_t, 3> grid{1, 1, 1};
    uint32_t block = 256;
    uint32_t shared = 0;
    uint32_t cluster = 1;
    /// May start while the kernel before it in the stream still runs (it waits by grid_wait).
    bool overlap = false;
    uint32_t block_y = 1;
    uint32_t block_z = 1;
};

/// An ordered queue of work on one device. Used by one thread at a time. All errors are thrown:
/// Device with the driver's name of the error, what was tried, and for a poisoned device the first
/// cause.
class Stream {
public:
    virtual ~Stream() = default;
    virtual void launch(const Function& f, const LaunchShape& shape, void* const* parameters) = 0;
    virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
    virtual void fill(std::byte* to, int byte, size_t bytes) = 0;
    /// To the host; waits.
    virtual void read(void* to, const std::byte* from, size_t bytes) = 0;
    /// From the host; `from` may change once it returns.
    virtual void write(std::byte* to, const void* from, size_t bytes) = 0;
    virtual void synchronize() = 0;
    /// From memory that Gpu::allocate_shared gave, which stays as it is until this has run. Only
    /// enqueues; may be recorded.
    virtual void upload(std::byte* to, const std::byte* from, size_t bytes) {
        copy(to, from, bytes);
    }

    /// Records what follows instead of running it, until end_recording. False: it cannot.
    virtual bool begin_recording() = 0;
    virtual std::unique_ptr<Recording> end_recording() = 0;
    virtual void launch(const Recording& r) = 0;

    /// The stream as other libraries take it (a CUstream), its context made current to this thread;
    /// null when there is none.
    virtual void* native() { return nullptr; }
    /// What follows here waits for everything that `other` holds: a stream of the same device that
    /// somebody else made (a CUstream; null is the default stream).
    virtual void wait_for(void* other) { (void)other; }
    /// What follows on `other` waits for everything that this one holds.
    virtual void let_wait(void* other) { (void)other; }

    /// What follows here waits for what `other` holds, a stream of the same Gpu. While that one is
    /// recorded or captured, so is what follows here, until that one follows this one.
    virtual void follow(Stream& other) { (void)other; }

    /// What follows here has this priority, or that of `other`: a stream of the same device that
    /// somebody else made (a CUstream). It stays in order with what was before.
    virtual void set_priority(RunPriority priority) { (void)priority; }
    virtual void take_priority(void* other) { (void)other; }

    /// Whether `other` is being captured into a graph; not asked of the default stream.
    virtual bool is_captured(void* other) {
        (void)other;
        return false;
    }
    /// Records an event that somebody else made (a CUevent).
    virtual void record(void* event) { (void)event; }
    /// Kernels launched from here on keep `limit` bytes of this memory in the L2 cache; 0: none.
    virtual void keep_in_cache(const std::byte* memory, int64_t bytes, int64_t limit) {
        (void)memory, (void)bytes, (void)limit;
    }

    /// Marks a point of time; the result is valid for elapsed_ms once the stream has passed it.
    virtual int mark_time() = 0;
    virtual double elapsed_ms(int from, int to) = 0;
    /// Marks made so far may be used again.
    virtual void forget_times() {}
    /// Work between the two is only queued, and starts at resume (after two seconds at the latest).
    virtual void hold() {}
    virtual void resume() {}
};

/// Thread safe.
class Gpu {
public:
    virtual ~Gpu() = default;
    virtual const kernels::Arch& arch() const = 0;
    /// As CUDA numbers the devices of this process; -1 for one that is none of them.
    virtual int number() const { return -1; }
    /// "NVIDIA H200, compute capability 9.0, driver 13.0".
    virtual std::string description() const = 0;
    /// What decides how fast kernels are: name and fixed attributes of the device, no versions.
    virtual std::string identity() const { return description(); }
    /// Identifies compiler and options, for cache keys ("nvrtc 13.0 sm_90a -minimal").
    virtual std::string compiler() const = 0;

    /// Device text to a binary. Errors: Internal with the compiler's log.
    virtual std::string compile(const std::string& text) const = 0;
    /// `shared`: the most dynamic shared memory that launches of it will ask for.
    virtual std::shared_ptr<const Function> load(std::string_view binary, const std::string& entry,
                                                 int64_t shared) = 0;
    /// Later launches of a loaded function will ask for more dynamic shared memory.
    virtual void raise_shared(const Function&, int64_t /*shared*/) {}
    /// Of normal priority.
    virtual std::unique_ptr<Stream> create_stream() = 0;
    virtual std::unique_ptr<Stream> create_stream_of(RunPriority priority) {
        (void)priority;
        return create_stream();
    }
    /// The host's clock, for budgets.
    virtual double now_ms() const {
        std::chrono::duration<double, std::milli> now =
            std::chrono::steady_clock::now().time_since_epoch();
        return now.count();
    }
    /// 256-byte aligned. Errors: OutOfMemory with needed, free and total bytes.
    virtual std::byte* allocate(int64_t bytes) = 0;
    virtual void release(std::byte* memory) noexcept = 0;
    /// Zeroed memory that kernels can write and the host can read at any time. Errors: OutOfMemory.
    virtual std::byte* allocate_shared(int64_t bytes) {
        return new std::byte[static_cast<size_t>(bytes)]();
    }
    virtual void release_shared(std::byte* memory) noexcept { delete[] memory; }
    /// The most that streams can keep in the L2 cache; 0 where it cannot be divided.
    virtual int64_t most_cache_bytes() const { return 0; }
    /// Bytes that could be allocated now; -1 when not known.
    virtual int64_t free_bytes() const { return -1; }
    virtual int64_t total_bytes() const { return -1; }
    /// The 128 bytes of a tensor map over memory at `base`.
    virtual void encode(const kernels::TensorMap& map, std::byte* base,
                        std::byte* encoded) const = 0;
};

/// The GPU that CUDA numbers `index`; null when there is no driver or no such device, and `why`
/// then says so. One per process and index.
Gpu* find_gpu(int index, std::string& why);

} // namespace ingot::cuda
