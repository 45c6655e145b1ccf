// SPDX-License-Identifier: Apache-2.0
// Facts that decide whether an engine can run on a GPU, before one is loaded. Defined by
// src/backends/cuda.
#pragma once

#include "plan/backend.h"

namespace ingot {

struct GpuFacts {
    int compute_capability = 0; // 90 for 9.0; 0: it is no GPU
    bool compiles = true;       // a compiler of kernels that knows the GPU is found here
};
GpuFacts gpu_facts(const Backend& backend);

/// Whether a GPU of one compute capability runs, as they are, kernels that were compiled for
/// another.
bool runs_kernels_of(int compute_capability, int compiled_for);

/// Why no GPU can be used.
enum class CudaProblem {
    None,      // the driver works; there may still be no device
    NoDriver,  // there is none, or it has no device
    OldDriver, // it is too old
    Failed,    // it reported an error
};
CudaProblem cuda_problem();

} // namespace ingot
