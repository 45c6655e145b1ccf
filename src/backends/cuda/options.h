// SPDX-License-Identifier: Apache-2.0
// CudaOptions: the compile options of the CUDA backend alone. options.cpp sets those with a row in
// src/api/options.
#pragma once

#include "base/priority.h"
#include "plan/compile_options.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ingot {

namespace cuda {
/// How many recorded graphs executions keep together (run/recording_limit.h). Thread safe.
class RecordingLimit;
std::shared_ptr<RecordingLimit> make_recording_limit(size_t most);
size_t most_recordings(const RecordingLimit& limit);
size_t count_recordings(const RecordingLimit& limit);
} // namespace cuda
namespace plan {
class RuntimeCache;
class TimingCache;
} // namespace plan

/// Selection of tactics: by the cost model; by timing candidates, in the background (for later
/// contexts) or before the first run returns.
enum class Tune { Off, Background, Full };
/// Variants of dynamic kernels for the shapes that occur: none, compiled in the background from the
/// second run of a launch on and swapped in between runs, or compiled before the run. Auto: lazy
/// where a profile leaves a size open, else none.
enum class Specialise { None, Lazy, Eager, Auto };

struct CudaOptions {
    /// f32 matrix products and convolutions may round their operands to TF32.
    bool tf32 = true;
    /// Families run the first tactic whose name begins with this text, where they have one.
    std::string force_tactic;
    /// Folder of compiled kernels; "" keeps none, "default" is the user's.
    std::string runtime_cache = "default";
    /// A file for compiled kernels in place of the folder; "" for none.
    std::string runtime_cache_file;
    /// Compiled kernels are stored and looked up here in place of a folder or file; null for
    /// neither.
    std::shared_ptr<plan::RuntimeCache> kernel_cache;
    /// How tactics are selected, and the time limit for timing them in milliseconds.
    Tune tune = Tune::Off;
    double tune_budget_ms = 10000;
    /// The limit on device memory for timing a tactic, in bytes; 0: no limit.
    int64_t tuning_memory = 0;
    /// The file of timed choices; "": one in the folder of the runtime cache.
    std::string timing_cache_file;
    /// Timed choices are stored and looked up here in place of a file; null for none.
    std::shared_ptr<plan::TimingCache> timing_cache;
    /// Times nothing: a missing choice is an error.
    bool timed_before = false;
    Specialise specialise = Specialise::None;
    /// Priority of runs without a caller's stream; others have their stream's. With Low, threads
    /// that compile kernels run when nothing else needs the CPU.
    RunPriority priority = RunPriority::Normal;
    /// A JSON file of when each block of each kernel in a replayed graph starts, waits, computes
    /// and ends; "" for none. With one, kernels are never specialised.
    std::string timeline_file;
    /// Records a graph of launches on the second run of a plan and replays it; with record_first on
    /// the first one, where that can be made ready without a run.
    bool record_graphs = true;
    bool record_first = false;
    /// How many of them executions keep together; null: each keeps 16.
    std::shared_ptr<cuda::RecordingLimit> recordings;
    /// Kernels for a GPU of this compute capability (80 for 8.0); 0: for the present device.
    int arch = 0;
    /// The shared memory limit of a block in bytes; 0: the device's.
    int64_t shared_memory = 0;
    /// The limit on device memory for weights, activations, inputs and outputs of all executions
    /// together, in bytes; 0: no limit.
    int64_t memory_limit = 0;
    /// The limit on device memory for constants of streamable_bytes (plan/device_parts.h) and more;
    /// the others stay on the host and are copied to activation memory before each step that reads
    /// them. -1: all stay on the device.
    int64_t weight_budget = -1;
};

} // namespace ingot
