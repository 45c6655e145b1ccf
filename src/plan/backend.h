// SPDX-License-Identifier: Apache-2.0
// The interface through which the engine reaches a backend: a graph becomes an Executable (shared,
// immutable), which makes Executions (one per context: plans, arena, buffers).
#pragma once

#include "base/priority.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "ir/profile.h"
#include "plan/run_settings.h"

#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

namespace plan {
class PluginHost;
class RuntimeCache;
class TimingCache;
} // namespace plan

/// Constants from this size on can be streamed.
inline constexpr size_t streamable_bytes = 4096;

/// Compiled kernels by the hash of their cache key (32 hex digits).
using KernelBinaries = std::map<std::string, std::string, std::less<>>;

/// A kernel of a plan for a GPU.
struct KernelUse {
    std::string entry;
    std::string text; // the whole program
    int launches = 0; // a run
};

/// How a backend chooses among a kernel's tactics: by its cost model; by timing candidates, in the
/// background (for the contexts that come later) or before the first run returns.
enum class Tune { Off, Background, Full };
/// Whether kernels of dynamic shapes get variants for the shapes that occur: never, compiled in the
/// background and swapped in between runs, or before the run. Auto: lazy where a profile leaves a
/// size open, else none.
enum class Specialise { None, Lazy, Eager, Auto };

struct CompileOptions {
    /// Loops run on this pool; null means ThreadPool::shared().
    ThreadPool* pool = nullptr;
    /// Plans kept per execution and input shape, least recently used ones go first.
    size_t cached_plans = 16;
    /// False keeps the backend to its own loops (libingot_cpu.so is not opened).
    bool use_library = true;
    /// Fills activation memory with 0xCB before every run, so that tests see reads of stale bytes.
    bool poison = false;
    /// f32 matrix products and convolutions may round their operands to TF32 (CUDA only).
    bool tf32 = true;
    /// Sums are added in an order that does not depend on how many rows a batch has: a row's result
    /// has the same bits at every place, with all neighbours. Slower.
    bool batch_invariant = false;
    /// Families run the first tactic whose name begins so, where they have one (CUDA only).
    std::string force_tactic;
    /// Folder of compiled kernels; "" keeps none, "default" is the user's (CUDA only).
    std::string runtime_cache = "default";
    /// A file that holds the compiled kernels instead of a folder; "" for none (CUDA only).
    std::string runtime_cache_file;
    /// Compiled kernels are kept here instead of in a folder or file, and found; null for neither
    /// (CUDA only).
    std::shared_ptr<plan::RuntimeCache> kernel_cache;
    /// Gives the memory for activations and, on a GPU, for weights and buffers; null: the backend's
    /// own.
    std::shared_ptr<MemorySource> memory;
    /// Has the plugins that the graph names; null when there are none (plan/plugin.h).
    std::shared_ptr<plan::PluginHost> plugins;
    /// How tactics are chosen, and the most milliseconds that timing them may take (CUDA only).
    Tune tune = Tune::Off;
    double tune_budget_ms = 10000;
    /// The most bytes of device memory that timing a tactic may take; 0: no limit (CUDA only).
    int64_t tuning_memory = 0;
    /// Where timed choices are kept; "": in the folder of the runtime cache (CUDA only).
    std::string timing_cache_file;
    /// They are kept here instead of in a file, and found; null for neither (CUDA only).
    std::shared_ptr<plan::TimingCache> timing_cache;
    /// Nothing is timed: a choice that is not kept is an error (CUDA only).
    bool timed_before = false;
    Specialise specialise = Specialise::None; // (CUDA only)
    /// The shapes that the engine was built for; a context fills them in.
    std::vector<Profile> profiles;
    /// Kernels compiled ahead of time, which are looked up first; may be null (CUDA only).
    std::shared_ptr<const KernelBinaries> kernels;
    /// Of runs that are not in the order of a caller's stream, which have that stream's. For Low
    /// the threads that compile kernels run when no other wants the CPU (CUDA only).
    RunPriority priority = RunPriority::Normal;
    /// Record a graph of launches on the second run of a plan and repeat it (CUDA only).
    bool record_graphs = true;
    /// Kernels as a GPU of this compute capability (80 for 8.0) would get them; 0: as the device
    /// found gets them (CUDA only).
    int arch = 0;
    /// The most shared memory of a block in bytes; 0: what the device has (CUDA only).
    int64_t shared_memory = 0;
    /// The most bytes of activation memory that one step may work in.
    int64_t workspace = std::numeric_limits<int64_t>::max();
    /// Told, by any thread, which choices a limit has ruled out; may be empty.
    std::function<void(std::string_view)> on_limit;
    /// The most device memory in bytes that weights, activations, inputs and outputs of all
    /// executions may take together; 0: no limit (CUDA only).
    int64_t memory_limit = 0;
    /// The most device memory in bytes for constants of streamable_bytes and more; the others stay
    /// on the host, and are copied to activation memory before each step that reads them. -1: all
    /// lie on the device (CUDA only).
    int64_t weight_budget = -1;
    /// Names runs and steps for profilers that listen to NVTX (CUDA only).
    bool nvtx = false;
    /// Lowering passes that are left out, by name.
    std::vector<std::string> disabled_passes;
    /// The graph is verified after each of them.
    bool verify_passes = false;
    /// Called with the graph after each lowering pass; may be empty.
    std::function<void(std::string_view pass, const Graph&)> after_pass;
};

/// Where an input or output of a run lies: in the memory of the device; for the CPU in any.
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

/// The plans and memory of one context. Used by one thread at a time.
class Execution {
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
    /// Like run, on memory of the device and in the order of the caller's stream (a CUstream of
    /// this device; null is its default stream; the CPU ignores it): after what the stream holds,
    /// before what is enqueued there later, and as urgent as the stream (on the default one, which
    /// nobody made: as the options say). Returns once the work is enqueued, or, where a size
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
    /// enqueued before, on a GPU, and it waits for no data.
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
    /// other ranks than the graph's collectives have, or of another GPU; Unsupported for a
    /// communicator on the CPU and where there is no NCCL.
    virtual void configure(RunSettings settings) = 0;
    /// configure() with what `f` makes of the settings: f(RunSettings&).
    template <class F>
    void change(const F& f) {
        RunSettings s = settings();
        f(s);
        configure(std::move(s));
    }
    /// 0 where the cache cannot be divided, and on the CPU.
    virtual int64_t most_cache_bytes() const { return 0; }
    /// Waits until everything that was enqueued has run, and reports what kernels found wrong.
    virtual Status wait() noexcept = 0;
    /// The message of the last failed run, with its trail; valid until the next call.
    virtual const std::string& error() const noexcept = 0;

    /// Steps of the last prepared or run plan, in order.
    virtual std::vector<StepInfo> steps() const = 0;
    /// The plan that was prepared or run last, as plan/plan_text.h writes it. What a size that
    /// depends on data comes before is there once a run has planned it.
    virtual std::string plan_text() = 0;
    virtual MemoryUse memory_use() const = 0;
    /// Gives back the memory of activations; the next run has to be prepared again.
    virtual void give_back_memory() = 0;
    /// Bytes that activations take under these shapes of the inputs (where sizes depend on data:
    /// those of the part before). Plans for them; the next run has to be prepared again. Errors: as
    /// prepare.
    virtual int64_t activation_bytes(std::span<const Shape> inputs) = 0;
    /// Of the last run; zeros where the backend does not measure them.
    virtual RunTimes times() const { return {}; }
    /// Waits for the last run that was timed for later and tells the timer its times (of a captured
    /// run: those of the last launch of its graph). False when there is none. Errors: Device.
    virtual bool report_times() { return false; }
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

class Backend {
public:
    virtual ~Backend() = default;
    /// As it is now, for all processes together. The CPU knows none.
    virtual DeviceMemoryInfo memory() const { return {}; }
    virtual std::string_view name() const = 0; // "cpu"
    /// What it runs on, in words: "AMD EPYC, 2 threads, avx512, onednn 3.2.0".
    virtual std::string description() const = 0;
    /// Of a GPU: 90 for 9.0; 0 for the CPU.
    virtual int compute_capability() const { return 0; }
    /// Names what timings belong to: device and compiler, in a line.
    virtual std::string timing_device() const { return ""; }
    /// Copies from memory of the device to the host, after what `stream` holds (a CUstream; null is
    /// the default one). Errors: Device.
    virtual void read(void* to, const void* from, size_t bytes, void* stream = nullptr) const {
        (void)stream;
        std::memcpy(to, from, bytes);
    }
    /// To memory of the device; done when it returns. Errors: Device.
    virtual void write(void* to, const void* from, size_t bytes) const {
        std::memcpy(to, from, bytes);
    }
    /// 256-byte aligned memory of the device, for callers without a driver of their own. Errors:
    /// OutOfMemory.
    virtual std::byte* allocate(int64_t bytes) const;
    virtual void release(std::byte* memory) const noexcept;
    /// Lowers the graph (as AOT passes left it) for this backend. Errors: Unsupported with the
    /// node.
    virtual std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph> graph,
                                                      const CompileOptions& options = {}) const = 0;
};

} // namespace ingot
