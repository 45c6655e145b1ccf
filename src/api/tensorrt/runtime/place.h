// SPDX-License-Identifier: Apache-2.0
// Place: the device of an engine, and the application's allocator as its memory.
#pragma once

#include "NvInferRuntime.h"
#include "ingot.h"
#include "plan/backend.h"

namespace ingot::api {

struct Place {
    const Backend* backend = nullptr;
    bool is_gpu = false;
};

/// kAUTO: the calling thread's current GPU (or GPU `ordinal`) if there is one, else the CPU.
/// Errors: Device when there is no such GPU; InvalidArgument for an unknown device number.
Place find_place(Device device, int32_t ordinal);
/// For tests: replaces every GPU by this backend; null: the real GPUs.
void set_gpu(const Backend* backend);

/// The allocator as a source of memory; null for null.
std::shared_ptr<MemorySource> memory_source(nvinfer1::IGpuAllocator* allocator);

} // namespace ingot::api
