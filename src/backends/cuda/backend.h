// SPDX-License-Identifier: Apache-2.0
// The CUDA backend over any Gpu.
#pragma once

#include "backends/cuda/driver/gpu.h"
#include "plan/backend.h"

namespace ingot::cuda {

/// A backend for this GPU, which must outlive it. `compile_threads` 0: the number of CPUs, at most
/// 8.
std::unique_ptr<Backend> make_backend(Gpu& gpu, int compile_threads = 0);

/// Requested and compiled programs of all executables so far.
struct ProgramCounts {
    int requested = 0;
    int compiled = 0;
};
ProgramCounts count_programs(const Backend& backend);
/// Entry and text of every program requested so far.
std::vector<std::pair<std::string, std::string>> requested_programs(const Backend& backend);

} // namespace ingot::cuda
