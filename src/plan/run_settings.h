// SPDX-License-Identifier: Apache-2.0
// RunSettings: how an execution runs, as one value that travels from the API to the runner.
#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// Who gives the memory of a device: the application, in place of the driver or the system. Thread
/// safe.
struct MemorySource {
    virtual ~MemorySource() = default;
    /// At least 256-byte aligned; null when there is none.
    virtual std::byte* allocate(int64_t bytes) noexcept = 0;
    virtual void release(std::byte* memory) noexcept = 0;
};

/// One step of a plan, for `inspect` and profiles.
struct StepInfo {
    std::string name;           // of the ONNX nodes it came from
    std::string kernel;         // "conv", "map", "copy", ...
    std::string implementation; // which loops the kernel chose: "onednn brgconv:avx512_core", "own"
    std::vector<std::string> inputs; // each operand: dtype, shape, layout, name in quotes
    std::vector<std::string> outputs;
};

/// Receives one call per step that ran; `index` counts steps of the run in order.
struct StepTimer {
    virtual ~StepTimer() = default;
    virtual void step(const StepInfo& info, double milliseconds) noexcept = 0;
    /// Called last: the whole of the run on the same clock, from its first step to its last.
    virtual void run(double milliseconds) noexcept { (void)milliseconds; }
};

/// What profilers that listen to NVTX are told: nothing; runs and the names of steps; also what
/// runs them, and on which shapes.
enum class Ranges { None, Names, Detailed };

/// Memory of the device that its owner lends; `bytes` may be 0.
struct LentMemory {
    std::byte* data = nullptr;
    int64_t bytes = 0;
    bool operator==(const LentMemory&) const = default;
};

/// Holds from the next run on. What it points to belongs to the caller and has to live as long as
/// the execution has it.
struct RunSettings {
    /// Times every step; null: nothing is timed.
    StepTimer* timer = nullptr;
    /// A timed run waits for nothing: Execution::report_times() tells the timer, and steps last
    /// until the next one starts, waits for the host included.
    bool times_later = false;
    /// Called with a row-major copy of every named value that a run computes (values that fusion
    /// swallowed do not occur); may be empty. For `compare --layers`, not for speed.
    std::function<void(std::string_view, const Tensor&)> observer;
    /// At first: what the compile options say.
    Ranges ranges = Ranges::None;
    /// An event of the caller's (a CUevent; null for none) that enqueue() records once nothing that
    /// it has enqueued before will read inputs. The CPU ignores it.
    void* inputs_event = nullptr;
    /// Bytes of the GPU's L2 cache that activations are kept in, with preference over what else
    /// passes through it; 0: none. All executions of a GPU share its most_cache_bytes().
    int64_t cache_limit = 0;
    /// An application's communicator (an ncclComm_t), by which the graph's collectives exchange
    /// data with other executions, each a rank of it; null: none. Every rank enqueues runs of its
    /// own, of the same collectives in the same order.
    void* communicator = nullptr;
    /// What is allocated from now on comes from here, and goes back there; null: from the source of
    /// the compile options.
    std::shared_ptr<MemorySource> memory;
    /// Where activations lie; without data: in memory of the execution. A run that needs more
    /// fails. What is planned behind a size that depends on data keeps memory of its own.
    LentMemory activations;
};

} // namespace ingot
