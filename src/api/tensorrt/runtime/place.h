// SPDX-License-Identifier: Apache-2.0
// Place: the device that an engine runs on, and the application's allocator as its memory.
#pragma once

#include "NvInferRuntime.h"
#include "ingot.h"
#include "plan/backend.h"

namespace ingot::api {

struct Place {
    const Backend* backend = nullptr;
    bool is_gpu = false;
};

/// kAUTO: the GPU that is current for the calling thread (another one where `ordinal` says which)
/// if there is one, else the CPU. Errors: Device when there is no such GPU; InvalidArgument for a
/// number that is no device.
Place find_place(Device device, int32_t ordinal);
/// For tests: this backend stands for every GPU; null: what is found.
void set_gpu(const Backend* backend);

/// The allocator as a source of memory; null for null.
std::shared_ptr<MemorySource> memory_source(nvinfer1::IGpuAllocator* allocator);

} // namespace ingot::api
