// SPDX-License-Identifier: Apache-2.0
// IRuntime::getEngineValidity(): compares an engine's first bytes with the device.
#pragma once

#include "NvInferRuntime.h"
#include "backends/backends.h"
#include "engine/container.h"

namespace ingot::api {

/// Facts from an engine's bytes.
struct EngineHead {
    bool is_malformed = false;
    bool is_readable = true;       // by this release
    std::vector<int> capabilities; // of the GPUs that its kernels are for
    uint64_t weight_bytes = 0;     // that must be on a GPU
};
/// Reads an engine's first bytes, at least the header. Checks the table of sections where the bytes
/// contain it, and everything, weights included, where they are the whole engine.
EngineHead read_engine_head(std::span<const std::byte> bytes);

/// Facts about a device.
struct DeviceFacts {
    bool is_gpu = false;
    CudaProblem problem = CudaProblem::None; // the reason why a GPU is unusable
    bool is_supported = true;                // its compute capability
    bool compiles = true;                    // a compiler for it is found
    bool runs_kernels = false;               // it is one of the engine's GPUs
    int64_t memory_bytes = -1;               // total memory; -1: unknown
};

struct Validity {
    nvinfer1::EngineValidity answer = nvinfer1::EngineValidity::kVALID;
    uint64_t diagnostics = 0; // bits of EngineInvalidityDiagnostics, unless it is not kINVALID
};
Validity judge(const EngineHead& engine, const DeviceFacts& device);

} // namespace ingot::api
