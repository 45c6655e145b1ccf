// SPDX-License-Identifier: Apache-2.0
// The interface through which the engine reaches a backend: a graph becomes an Executable (shared,
// immutable), which makes Executions (one per context: plans, arena, buffers).
#pragma once

#include "base/status.h"
#include "plan/compile_options.h"

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// Where an input or output of a run lies: in the memory of the device; on the host in any.
struct Binding {
    void* address = nullptr;
    Shape shape; // of an input; of an output filled in by the run
    /// Of an output: it lies in memory of the execution, until the next run; the run fills in
    /// where.
    bool own = false;
};
/// Gives memory for an output once its shape is known, at least `bytes`; null ends the run with an
/// error.
using OutputMemory = std::function<void*(size_t output, const Shape& shape, int64_t bytes)>;

/// Milliseconds of the last run, as the device's clock has them.
struct RunTimes {
    double to_device = 0; // copying inputs
    double compute = 0;
    double to_host = 0; // copying results
    double enqueue = 0; // the caller's time until everything was handed over
};

/// Bytes that an execution holds.
struct MemoryUse {
    int64_t activations = 0; // the arena
    int64_t scratch = 0;     // of them: for the step of the last plan that needs most
    int64_t streamed = 0;    // of them: in which constants pass that do not stay on the device
    int64_t persistent = 0;  // beside them: copies of inputs and outputs
};

/// What an execution tells of itself.
class ExecutionReport {
public:
    /// Steps of the last prepared or run plan, in order.
    virtual std::vector<StepInfo> steps() const = 0;
    /// The plan that was prepared or run last, as plan/plan_text.h writes it. What a size that
    /// depends on data comes before is there once a run has planned it.
    virtual std::string plan_text() = 0;
    virtual MemoryUse memory_use() const = 0;
    /// Bytes that activations take under these shapes of the inputs (where sizes depend on data:
    /// those of the part before). Plans for them; the next run has to be prepared again. Errors: as
    /// prepare.
    virtual int64_t activation_bytes(std::span<const Shape> inputs) = 0;
    /// Of the last run; zeros where the backend does not measure them.
    virtual RunTimes times() const { return {}; }
    /// Waits for the last run that was timed for later and tells the timer its times (of a captured
    /// run: those of the last launch of its graph). False when there is none. Errors: Device.
    virtual bool report_times() { return false; }

protected:
    ~ExecutionReport() = default;
};

/// The plans and memory of one context. Used by one thread at a time.
class Execution : public ExecutionReport {
public:
    virtual ~Execution() = default;

    /// Plans for these shapes of the inputs, in order (or finds the plan made before). Errors:
    /// InvalidArgument naming input, dimension, got and expected; OutOfMemory; Unsupported.
    virtual void prepare(std::span<const Shape> inputs) = 0;
    /// The shape of an output under the last prepare; nullopt when it depends on data.
    virtual std::optional<Shape> output_shape(size_t output) const = 0;

    /// Runs once. inputs[i] has the dtype of its type; shapes that are not the prepared ones are
    /// prepared first. A defined outputs[i] is written in place and must have the resulting dtype
    /// and shape and be writable; an undefined one is assigned a new tensor. An output may lie
    /// where an input lies (a state that is updated): it is written once every input has been read.
    /// When the shapes were prepared, every size is static, and outputs are given and apart from
    /// inputs, this allocates nothing. On failure `error()` has the whole text.
    virtual Status run(std::span<const Tensor> inputs, std::span<Tensor> outputs) noexcept = 0;
    /// Like run, on memory of the device and in the order of the caller's stream (as the driver of
    /// this device has it; null is its default stream; the host ignores it): after what the stream
    /// holds, before what is enqueued there later, and as urgent as the stream (on the default one,
    /// which nobody made: as the options say). Returns once the work is enqueued, or, where a size
    /// depends on data, once that is known; the memory stays in use until the stream has passed. An
    /// output without an address gets one from `memory`, and an output whose size depends on data
    /// always. An address that is no multiple of 16 costs a copy, and so does an output that lies
    /// where an input lies. What kernels find wrong in the data is reported by a later call.
    /// Allocates nothing where run() would not. While the stream is being captured into a graph,
    /// the run becomes part of it: capturable() says when that can be. The graph uses memory of the
    /// execution, which has to live, and to be prepared for these shapes, whenever it is launched.
    virtual Status enqueue(std::span<const Binding> inputs, std::span<Binding> outputs,
                           void* stream, const OutputMemory& memory) noexcept = 0;
    /// Whether enqueue() can run on a stream that is being captured: a run of these shapes has been
    /// enqueued before, on a device with streams, and it waits for no data.
    virtual bool capturable(std::span<const Shape> inputs) const {
        (void)inputs;
        return false;
    }
    /// Whether a stream of the caller's is being captured.
    virtual bool is_captured(void* stream) const {
        (void)stream;
        return false;
    }
    virtual const RunSettings& settings() const = 0;
    /// Runs from the next one on have these settings. Waits for the runs before where they move
    /// memory: then the next run has to be prepared again. Errors, after which the settings are
    /// those from before: InvalidArgument for more of the cache than there is, a communicator of
    /// other ranks than the graph's collectives have, or of another device; Unsupported for a
    /// communicator where the device exchanges no data.
    virtual void configure(RunSettings settings) = 0;
    /// configure() with what `f` makes of the settings: f(RunSettings&).
    template <class F>
    void change(const F& f) {
        RunSettings s = settings();
        f(s);
        configure(std::move(s));
    }
    /// 0 where the cache cannot be divided.
    virtual int64_t most_cache_bytes() const { return 0; }
    /// Waits until everything that was enqueued has run, and reports what kernels found wrong.
    virtual Status wait() noexcept = 0;
    /// The message of the last failed run, with its trail; valid until the next call.
    virtual const std::string& error() const noexcept = 0;

    /// Gives back the memory of activations; the next run has to be prepared again.
    virtual void give_back_memory() = 0;
};

/// A graph compiled for one backend; thread safe. Keeps the graph's constants alive.
class Executable {
public:
    virtual ~Executable() = default;
    virtual std::unique_ptr<Execution> create_execution() const = 0;
    /// The graph after lowering.
    virtual const Graph& lowered() const = 0;
    /// Bytes of packed weights kept beside the graph's own.
    virtual size_t packed_bytes() const = 0;
};

/// Of a device, in bytes; -1 when not known.
struct DeviceMemoryInfo {
    int64_t free = -1;
    int64_t total = -1;
};

/// Memory of a backend's device, for callers without a driver of their own.
class BackendMemory {
public:
    /// As it is now, for all processes together; unknown where the device has none of its own.
    virtual DeviceMemoryInfo memory() const { return {}; }
    /// Copies from memory of the device to the host, after what `stream` holds (the driver's; null
    /// is the default one). Errors: Device.
    virtual void read(void* to, const void* from, size_t bytes, void* stream = nullptr) const {
        (void)stream;
        std::memcpy(to, from, bytes);
    }
    /// To memory of the device; done when it returns. Errors: Device.
    virtual void write(void* to, const void* from, size_t bytes) const {
        std::memcpy(to, from, bytes);
    }
    /// 256-byte aligned. Errors: OutOfMemory.
    virtual std::byte* allocate(int64_t bytes) const;
    virtual void release(std::byte* memory) const noexcept;

protected:
    ~BackendMemory() = default;
};

/// Which device a backend runs on.
class BackendIdentity {
public:
    virtual std::string_view name() const = 0;
    /// In words, with what decides how fast it is.
    virtual std::string description() const = 0;
    /// 90 for 9.0; 0 for a device without such a number.
    virtual int compute_capability() const { return 0; }
    /// Names what timings belong to: device and compiler, in a line.
    virtual std::string timing_device() const { return ""; }

protected:
    ~BackendIdentity() = default;
};

class Backend : public BackendIdentity, public BackendMemory {
public:
    virtual ~Backend() = default;
    /// Lowers the graph (as AOT passes left it) for this backend. Errors: Unsupported with the
    /// node.
    virtual std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph> graph,
                                                      const CompileOptions& options = {}) const = 0;
};

} // namespace ingot
