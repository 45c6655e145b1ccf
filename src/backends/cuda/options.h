// SPDX-License-Identifier: Apache-2.0
// CudaOptions: the compile options that the CUDA backend alone knows. Those with a row in
// src/api/options are set by options.cpp.
#pragma once

#include "base/priority.h"
#include "plan/compile_options.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ingot {

namespace plan {
class RuntimeCache;
class TimingCache;
} // namespace plan

/// How tactics are chosen: by the cost model; by timing candidates, in the background (for the
/// contexts that come later) or before the first run returns.
enum class Tune { Off, Background, Full };
/// Whether kernels of dynamic shapes get variants for the shapes that occur: never, compiled in the
/// background and swapped in between runs, or before the run. Auto: lazy where a profile leaves a
/// size open, else none.
enum class Specialise { None, Lazy, Eager, Auto };

struct CudaOptions {
    /// f32 matrix products and convolutions may round their operands to TF32.
    bool tf32 = true;
    /// Families run the first tactic whose name begins so, where they have one.
    std::string force_tactic;
    /// Folder of compiled kernels; "" keeps none, "default" is the user's.
    std::string runtime_cache = "default";
    /// A file that holds the compiled kernels instead of a folder; "" for none.
    std::string runtime_cache_file;
    /// Compiled kernels are kept here instead of in a folder or file, and found; null for neither.
    std::shared_ptr<plan::RuntimeCache> kernel_cache;
    /// How tactics are chosen, and the most milliseconds that timing them may take.
    Tune tune = Tune::Off;
    double tune_budget_ms = 10000;
    /// The most bytes of device memory that timing a tactic may take; 0: no limit.
    int64_t tuning_memory = 0;
    /// Where timed choices are kept; "": in the folder of the runtime cache.
    std::string timing_cache_file;
    /// They are kept here instead of in a file, and found; null for neither.
    std::shared_ptr<plan::TimingCache> timing_cache;
    /// Nothing is timed: a choice that is not kept is an error.
    bool timed_before = false;
    Specialise specialise = Specialise::None;
    /// Of runs that are not in the order of a caller's stream, which have that stream's. For Low
    /// the threads that compile kernels run when no other wants the CPU.
    RunPriority priority = RunPriority::Normal;
    /// Record a graph of launches on the second run of a plan and repeat it.
    bool record_graphs = true;
    /// Kernels as a GPU of this compute capability (80 for 8.0) would get them; 0: as the device
    /// found gets them.
    int arch = 0;
    /// The most shared memory of a block in bytes; 0: what the device has.
    int64_t shared_memory = 0;
    /// The most device memory in bytes that weights, activations, inputs and outputs of all
    /// executions may take together; 0: no limit.
    int64_t memory_limit = 0;
    /// The most device memory in bytes for constants of streamable_bytes (plan/device_parts.h) and
    /// more; the others stay on the host, and are copied to activation memory before each step that
    /// reads them. -1: all lie on the device.
    int64_t weight_budget = -1;
};

} // namespace ingot
