// SPDX-License-Identifier: Apache-2.0
// IRuntime::getEngineValidity(): what an engine's first bytes and the device say of each other.
#pragma once

#include "NvInferRuntime.h"
#include "backends/backends.h"
#include "engine/container.h"

namespace ingot::api {

/// What an engine's bytes tell.
struct EngineHead {
    bool is_malformed = false;
    bool is_readable = true;       // by this release
    std::vector<int> capabilities; // of the GPUs that it has kernels for
    uint64_t weight_bytes = 0;     // that have to lie on a GPU
};
/// Of an engine's first bytes, the header at least: of as much as they are. The table of sections
/// is checked where they have it, and everything, weights too, where they are the whole engine.
EngineHead read_engine_head(std::span<const std::byte> bytes);

/// What a device tells.
struct DeviceFacts {
    bool is_gpu = false;
    CudaProblem problem = CudaProblem::None; // why a GPU that is wanted cannot be used
    bool is_supported = true;                // its compute capability
    bool compiles = true;                    // a compiler that knows it is found
    bool runs_kernels = false;               // one of those that the engine has
    int64_t memory_bytes = -1;               // all that it has; -1: not known
};

struct Validity {
    nvinfer1::EngineValidity answer = nvinfer1::EngineValidity::kVALID;
    uint64_t diagnostics = 0; // bits of EngineInvalidityDiagnostics, unless it is not kINVALID
};
Validity judge(const EngineHead& engine, const DeviceFacts& device);

} // namespace ingot::api
