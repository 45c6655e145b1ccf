// SPDX-License-Identifier: Apache-2.0
// StepInfo and StepTimer: the steps of a plan, and their times in a run.
#pragma once

#include <string>
#include <vector>

namespace ingot {

/// One step of a plan, for `inspect` and profiles.
struct StepInfo {
    std::string name;           // of the ONNX nodes it came from
    std::string kernel;         // "conv", "map", "copy", ...
    std::string implementation; // the kernel's selected loops: "onednn brgconv:avx512_core", "own"
    std::vector<std::string> inputs; // each operand: dtype, shape, layout, name in quotes
    std::vector<std::string> outputs;
};

/// Receives one call per step that ran; `index` counts steps of the run in order.
struct StepTimer {
    virtual ~StepTimer() = default;
    virtual void step(const StepInfo& info, double milliseconds) noexcept = 0;
    /// Called last: the whole run on the same clock, from its first step to its last.
    virtual void run(double milliseconds) noexcept { (void)milliseconds; }
};

/// Information for profilers: none; names of runs and steps; also kernels and shapes.
enum class Ranges { None, Names, Detailed };

} // namespace ingot
