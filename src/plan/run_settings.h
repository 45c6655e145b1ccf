// SPDX-License-Identifier: Apache-2.0
// RunSettings: the settings of an execution's runs, as one value from the API to the runner.
#pragma once

#include "ir/tensor.h"
#include "plan/memory_source.h"
#include "plan/step_info.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace ingot {

/// A named value that a step of a run has just written.
struct ObservedValue {
    std::string_view name;
    std::string_view node; // its ONNX nodes, as in StepInfo
    size_t step = 0;       // counts steps of the run in order
    const Tensor& tensor;  // a row-major copy
};

/// Device memory lent by its owner; `bytes` may be 0.
struct LentMemory {
    std::byte* data = nullptr;
    int64_t bytes = 0;
    bool operator==(const LentMemory&) const = default;
};

/// Applies from the next run on. Pointers belong to the caller and must live as long as the
/// execution holds them.
struct RunSettings {
    /// Times every step; null: nothing is timed.
    StepTimer* timer = nullptr;
    /// A timed run waits for nothing: Execution::report_times() tells the timer, and a step lasts
    /// until the next one starts, including waits for the host.
    bool times_later = false;
    /// Called with every named value that a run computes, in the order of steps (fused values do
    /// not occur); may be empty. For `compare --layers`; slow.
    std::function<void(const ObservedValue&)> observer;
    /// The compile options set the initial value.
    Ranges ranges = Ranges::None;
    /// A caller's event (as the driver has it; null for none) that enqueue() records once no
    /// enqueued work will read inputs any more. The host ignores it.
    void* inputs_event = nullptr;
    /// Bytes of the device's cache reserved for activations; 0: none. All executions of a device
    /// share its most_cache_bytes().
    int64_t cache_limit = 0;
    /// An application's communicator (as its library has it), through which the graph's collectives
    /// exchange data with other executions, one rank each; null: none. Every rank enqueues its own
    /// runs, with the same collectives in the same order.
    void* communicator = nullptr;
    /// The source of later allocations; blocks return to their own source. Null: the source of the
    /// compile options.
    std::shared_ptr<MemorySource> memory;
    /// The memory of activations; without data: the execution's own. A run that needs more fails.
    /// Plans behind a data-dependent size use memory of their own.
    LentMemory activations;
};

/// One run: its settings, and what belongs to this run alone.
struct RunWatch : RunSettings {
    bool replay = true; // segments may be recorded and replayed

    /// For the bodies of `if` and `loop`, which are a part of the run: all settings hold there but
    /// those of the run as a whole, or of its steps.
    RunWatch for_bodies() const {
        RunWatch out = *this;
        out.timer = nullptr;
        out.times_later = false;
        out.observer = {};
        out.ranges = Ranges::None;
        out.inputs_event = nullptr;
        out.activations = {};
        return out;
    }
};

} // namespace ingot
