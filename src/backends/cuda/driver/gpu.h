// SPDX-License-Identifier: Apache-2.0
// Gpu: the backend's interface to a device, its driver and a compiler for its kernels. One
// implementation calls the CUDA driver and NVRTC; tests use another that runs kernels on the host.
#pragma once

#include "base/priority.h"
#include "kernels/family.h"
#include "plan/device_parts.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
    /// May start while the previous kernel of the stream still runs (it waits by grid_wait).
    bool overlap = false;
    uint32_t block_y = 1;
    uint32_t block_z = 1;
};

class Stream;

/// Records work, and launches it again.
class StreamRecorder {
public:
    /// Records later work instead of running it, until end_recording. False: recording is not
    /// possible.
    virtual bool begin_recording() = 0;
    virtual std::unique_ptr<Recording> end_recording() = 0;
    virtual void launch(const Recording& r) = 0;

protected:
    ~StreamRecorder() = default;
};

/// Order between a stream and others. `other` is a foreign stream of the same device (a CUstream;
/// null is the default stream).
class StreamOrder {
public:
    /// The stream for other libraries (a CUstream), with its context made current to this thread;
    /// null without one.
    virtual void* native() = 0;
    /// Later work here waits for the earlier work of `other`.
    virtual void wait_for(void* other) = 0;
    /// Later work of `other` waits for the earlier work here.
    virtual void let_wait(void* other) = 0;
    /// Up to leave(), later work here is queued on `other` itself, behind the earlier work of both:
    /// no other stream stands between. Recordings are still made on a stream of its own. `other` is
    /// no default stream. False: not possible, as for one that is captured.
    virtual bool enter(void* other) {
        (void)other;
        return false;
    }
    /// Later work here waits for the work since enter(), also when the stream entered is destroyed.
    virtual void leave() {}
    /// Later work here waits for the earlier work of `other`, a stream of the same Gpu. While
    /// `other` is recorded or captured, later work here is too, until `other` follows this stream.
    virtual void follow(Stream& other) = 0;
    /// Whether `other` is being captured into a graph; not for the default stream.
    virtual bool is_captured(void* other) = 0;
    /// Records a foreign event (a CUevent).
    virtual void record(void* event) = 0;

protected:
    ~StreamOrder() = default;
};

/// How later work on a stream runs.
class StreamPolicy {
public:
    /// Later work here has this priority, or that of `other`: a foreign stream of the same device
    /// (a CUstream). Order with earlier work is kept.
    virtual void set_priority(RunPriority priority) = 0;
    virtual void take_priority(void* other) = 0;
    /// Later kernels keep `limit` bytes of this memory in the L2 cache; 0: none.
    virtual void keep_in_cache(const std::byte* memory, int64_t bytes, int64_t limit) = 0;

protected:
    ~StreamPolicy() = default;
};

/// The parts that a stream has beyond its queue; null where it has none.
struct StreamParts {
    StreamRecorder* recorder = nullptr;
    StreamOrder* order = nullptr;
    StreamPolicy* policy = nullptr;
    plan::DeviceClock* clock = nullptr;
};

/// An ordered queue of work on one device. One thread at a time may use it. All errors are thrown:
/// Device with the driver's name of the error, the attempted call, and for a dead device the first
/// error.
class Stream {
public:
    Stream() = default;
    virtual ~Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    virtual void launch(const Function& f, const LaunchShape& shape, void* const* parameters) = 0;
    virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
    virtual void fill(std::byte* to, int byte, size_t bytes) = 0;
    /// Copies to the host and waits.
    virtual void read(void* to, const std::byte* from, size_t bytes) = 0;
    /// Copies from the host; `from` may change once it returns.
    virtual void write(std::byte* to, const void* from, size_t bytes) = 0;
    /// Copies what `fill` writes: it gets memory for `bytes` bytes, a part after the other, with
    /// the part's first byte. Parts but the last are multiples of 4096 bytes.
    using Fill = std::function<void(size_t at, std::span<std::byte> part)>;
    virtual void write_filled(std::byte* to, size_t bytes, const Fill& fill) {
        constexpr size_t part_bytes = 4 << 20;
        std::vector<std::byte> memory(std::min(bytes, part_bytes));
        for (size_t at = 0; at < bytes; at += part_bytes) {
            std::span<std::byte> part(memory.data(), std::min(bytes - at, part_bytes));
            fill(at, part);
            write(to + at, part.data(), part.size());
        }
    }
    /// Shows what lies on the device after earlier work, in parts of visited_bytes but the last.
    using Visit = std::function<void(size_t at, std::span<const std::byte> part)>;
    static constexpr size_t visited_bytes = 4 << 20;
    virtual void visit(const std::byte* from, size_t bytes, const Visit& visit) {
        std::vector<std::byte> memory(std::min(bytes, visited_bytes));
        for (size_t at = 0; at < bytes; at += visited_bytes) {
            std::span<std::byte> part(memory.data(), std::min(bytes - at, visited_bytes));
            read(part.data(), from + at, part.size());
            visit(at, part);
        }
    }
    virtual void synchronize() = 0;
    /// Copies from memory of Gpu::allocate_shared, which must not change until the copy has run.
    /// Only enqueues; may be recorded.
    virtual void upload(std::byte* to, const std::byte* from, size_t bytes) {
        copy(to, from, bytes);
    }
    const StreamParts& parts() const { return parts_; }

protected:
    /// To be called by constructors; without it the stream has no parts.
    void set_parts(const StreamParts& parts) { parts_ = parts; }

private:
    StreamParts parts_;
};

/// Thread safe.
class Gpu {
public:
    virtual ~Gpu() = default;
    virtual const kernels::Arch& arch() const = 0;
    /// CUDA's device number in this process; -1 for other devices.
    virtual int number() const { return -1; }
    /// "NVIDIA H200, compute capability 9.0, driver 13.0".
    virtual std::string description() const = 0;
    /// The properties that determine the speed of kernels: name and fixed attributes of the device,
    /// no versions.
    virtual std::string identity() const { return description(); }
    /// Identifies compiler and options, for cache keys ("nvrtc 13.0 sm_90a -minimal").
    virtual std::string compiler() const = 0;

    /// Compiles device text to a binary. Errors: Internal with the compiler's log.
    virtual std::string compile(const std::string& text) const = 0;
    /// Does what the first compilation of the process does beside its own work.
    virtual void start_compiler() const {}
    /// `shared`: the largest dynamic shared memory of its launches.
    virtual std::shared_ptr<const Function> load(std::string_view binary, const std::string& entry,
                                                 int64_t shared) = 0;
    /// Raises the dynamic shared memory limit of a loaded function.
    virtual void raise_shared(const Function&, int64_t /*shared*/) {}
    /// With normal priority.
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
    /// Once no queued work uses it.
    virtual void release_shared(std::byte* memory) noexcept { delete[] memory; }
    /// The largest persisting part of the L2 cache; 0 where it cannot be divided.
    virtual int64_t most_cache_bytes() const { return 0; }
    /// Bytes that can be allocated now; -1 when unknown.
    virtual int64_t free_bytes() const { return -1; }
    virtual int64_t total_bytes() const { return -1; }
    /// Writes the 128 bytes of a tensor map over memory at `base`.
    virtual void encode(const kernels::TensorMap& map, std::byte* base,
                        std::byte* encoded) const = 0;
    /// The first error that left the GPU unusable in this process; null while it is sound.
    virtual const char* error() const { return nullptr; }
};

/// The GPU with CUDA's number `index`; null without a driver or such a device, with the reason in
/// `why`. One per process and index.
Gpu* find_gpu(int index, std::string& why);

} // namespace ingot::cuda
