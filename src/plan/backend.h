// SPDX-License-Identifier: Apache-2.0
// The interface between engine and backends: a backend compiles a graph into an Executable (shared,
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

struct RunSettings; // plan/run_settings.h

/// The memory of an input or output of a run: device memory; on the host, any.
struct Binding {
    void* address = nullptr;
    Shape shape; // of an input; of an output filled in by the run
    /// Whether an output lies in memory of the execution, until the next run; the run fills in the
    /// address.
    bool own = false;
};
/// Allocates at least `bytes` for an output once its shape is known; null ends the run with an
/// error.
using OutputMemory = std::function<void*(size_t output, const Shape& shape, int64_t bytes)>;

/// Times of the last run in milliseconds, by the device's clock.
struct RunTimes {
    double to_device = 0; // copying inputs
    double compute = 0;
    double to_host = 0; // copying results
    double enqueue = 0; // the caller's time until all work was enqueued
};

/// Bytes that an execution holds.
struct MemoryUse {
    int64_t activations = 0; // the arena
    int64_t scratch = 0;     // part of activations: of the step that needs most, in the last plan
    int64_t streamed = 0; // part of activations: room for constants that are not kept on the device
    int64_t persistent = 0; // in addition: copies of inputs and outputs
};

/// Queries of an execution.
class ExecutionReport {
public:
    /// Steps of the last prepared or run plan, in order.
    virtual std::vector<StepInfo> steps() const = 0;
    /// The plan prepared or run last, in the form of plan/plan_text.h. Parts behind a
    /// data-dependent size appear once a run has planned them.
    virtual std::string plan_text() = 0;
    virtual MemoryUse memory_use() const = 0;
    /// Bytes of activations for these input shapes (up to the first data-dependent size). Plans for
    /// them; the next run must be prepared again. Errors: as prepare.
    virtual int64_t activation_bytes(std::span<const Shape> inputs) = 0;
    /// Times of the last run; zeros where the backend measures none.
    virtual RunTimes times() const { return {}; }
    /// Waits for the last run with times_later and passes its times to the timer (of a captured
    /// run: those of its graph's last launch). False when there is none. Errors: Device.
    virtual bool report_times() { return false; }

protected:
    ~ExecutionReport() = default;
};

/// The plans and memory of one context. One thread at a time may use it.
class Execution : public ExecutionReport {
public:
    virtual ~Execution() = default;

    /// Plans for these input shapes, in order, or finds the plan. Errors: InvalidArgument naming
    /// input, dimension, got and expected; OutOfMemory; Unsupported.
    virtual void prepare(std::span<const Shape> inputs) = 0;
    /// The shape of an output under the last prepare; nullopt when it depends on data.
    virtual std::optional<Shape> output_shape(size_t output) const = 0;

    /// Runs once. inputs[i] has the dtype of its type; shapes that are not the prepared ones are
    /// prepared first. A defined outputs[i] is written in place and must have the resulting dtype
    /// and shape and be writable; an undefined one is assigned a new tensor. An output may overlap
    /// an input (a state that is updated): it is written after every input has been read. When the
    /// shapes were prepared, every size is static, and outputs are given and apart from inputs,
    /// this allocates nothing. On failure `error()` has the whole text.
    virtual Status run(std::span<const Tensor> inputs, std::span<Tensor> outputs) noexcept = 0;
    /// Like run, on memory of the device and in the order of the caller's stream (a handle of the
    /// device's driver; null is its default stream; the host ignores it): after the stream's
    /// earlier work, before later work, and with the stream's priority (on the default stream: that
    /// of the options). Returns once the work is enqueued, or, where a size depends on data, once
    /// the size is known; the memory stays in use until the stream is done. An output without an
    /// address gets one from `memory`, and an output whose size depends on data always. An address
    /// that is no multiple of 16 costs a copy, and so does an output that overlaps an input. A
    /// later call reports errors that kernels find in the data. Allocates nothing where run() would
    /// not. While the stream is being captured into a graph, the run becomes part of it: see
    /// capturable(). The graph uses memory of the execution, which must live, and be prepared for
    /// these shapes, at each launch.
    virtual Status enqueue(std::span<const Binding> inputs, std::span<Binding> outputs,
                           void* stream, const OutputMemory& memory) noexcept = 0;
    /// Whether enqueue() can run on a captured stream: a run of these shapes was enqueued before,
    /// on a device with streams, and it waits for no data.
    virtual bool capturable(std::span<const Shape> inputs) const {
        (void)inputs;
        return false;
    }
    /// Whether a caller's stream is being captured.
    virtual bool is_captured(void* stream) const {
        (void)stream;
        return false;
    }
    virtual const RunSettings& settings() const = 0;
    /// Sets the settings of later runs. Waits for earlier runs where the settings move memory: then
    /// the next run must be prepared again. Errors keep the old settings: InvalidArgument for a
    /// cache size beyond the device's, or a communicator whose ranks differ from those of the
    /// graph's collectives, or of another device; Unsupported for a communicator where the device
    /// exchanges no data.
    virtual void configure(RunSettings settings) = 0;
    /// configure() with settings modified by f(RunSettings&).
    template <class F, class Settings = RunSettings>
    void change(const F& f) {
        Settings s = settings();
        f(s);
        configure(std::move(s));
    }
    /// 0 where the cache cannot be divided.
    virtual int64_t most_cache_bytes() const { return 0; }
    /// Waits until all enqueued work is done, and reports errors that kernels found.
    virtual Status wait() noexcept = 0;
    /// The message of the last failed run, with its trail; valid until the next call.
    virtual const std::string& error() const noexcept = 0;

    /// Frees the memory of activations; the next run must be prepared again.
    virtual void give_back_memory() = 0;
};

/// A graph compiled for one backend; thread safe. Keeps the graph's constants alive.
class Executable {
public:
    virtual ~Executable() = default;
    virtual std::unique_ptr<Execution> create_execution() const = 0;
    /// The graph after lowering.
    virtual const Graph& lowered() const = 0;
    /// Bytes of packed weights, in addition to the graph's own.
    virtual size_t packed_bytes() const = 0;
};

/// Memory of a device, in bytes; -1 when unknown.
struct DeviceMemoryInfo {
    int64_t free = -1;
    int64_t total = -1;
};

/// Memory of a backend's device, for callers without a driver of their own.
class BackendMemory {
public:
    /// Current values for all processes together; unknown where the device has no memory of its
    /// own.
    virtual DeviceMemoryInfo memory() const { return {}; }
    /// Copies device memory to the host, after the work of `stream` (the driver's; null is the
    /// default one). Errors: Device.
    virtual void read(void* to, const void* from, size_t bytes, void* stream = nullptr) const {
        (void)stream;
        std::memcpy(to, from, bytes);
    }
    /// Copies to device memory and waits. Errors: Device.
    virtual void write(void* to, const void* from, size_t bytes) const {
        std::memcpy(to, from, bytes);
    }
    /// 256-byte aligned. Errors: OutOfMemory.
    virtual std::byte* allocate(int64_t bytes) const;
    virtual void release(std::byte* memory) const noexcept;

protected:
    ~BackendMemory() = default;
};

/// The identity of a backend's device.
class BackendIdentity {
public:
    virtual std::string_view name() const = 0;
    /// A description, with the properties that determine its speed.
    virtual std::string description() const = 0;
    /// 90 for 9.0; 0 for a device without such a number.
    virtual int compute_capability() const { return 0; }
    /// Identifies timings: device and compiler, in one line.
    virtual std::string timing_device() const { return ""; }

protected:
    ~BackendIdentity() = default;
};

class Backend : public BackendIdentity, public BackendMemory {
public:
    virtual ~Backend() = default;
    /// Lowers the graph (after the ahead-of-time passes) for this backend. Errors: Unsupported with
    /// the node.
    virtual std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph> graph,
                                                      const CompileOptions& options = {}) const = 0;
};

} // namespace ingot
