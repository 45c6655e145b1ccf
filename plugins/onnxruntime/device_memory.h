// SPDX-License-Identifier: Apache-2.0
// DeviceMemory: memory, copies, streams and events of one GPU, as ONNX Runtime asks for them. A GPU
// of the driver, or one that is simulated on host memory, for tests.
#pragma once

#include "plugins/onnxruntime/host.h"

#include <memory>
#include <string>
#include <vector>

namespace ingot::ort {

/// Thread safe. Handles are those of the driver (CUstream, CUevent). Errors: Device with the
/// driver's reason, OutOfMemory.
class DeviceMemory {
public:
    DeviceMemory() = default;
    virtual ~DeviceMemory() = default;
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    virtual void* allocate(size_t bytes) = 0;
    virtual void release(void* memory) noexcept = 0;
    virtual void* allocate_pinned(size_t bytes) = 0;
    virtual void release_pinned(void* memory) noexcept = 0;
    /// Between any two places, the host's included, in the order of `stream`; complete when it
    /// returns where `stream` is null.
    virtual void copy(void* target, const void* source, size_t bytes, void* stream) = 0;
    virtual void* create_stream(bool low_priority) = 0;
    virtual void release_stream(void* stream) noexcept = 0;
    virtual void wait_for_stream(void* stream) = 0;
    /// For everything that was queued on the GPU.
    virtual void wait() = 0;
    virtual void* create_event() = 0;
    virtual void release_event(void* event) noexcept = 0;
    virtual void record(void* event, void* stream) = 0;
    virtual void make_wait(void* stream, void* event) = 0;
    virtual void wait_for_event(void* event) = 0;
    virtual bool has_passed(void* event) = 0;
    /// Errors: InvalidArgument for a stream of another GPU.
    virtual void check_stream(void* stream) = 0;
    /// The address at which an engine finds this memory, and the stream that it is given.
    virtual void* engine_address(void* memory) const { return memory; }
    virtual void* engine_stream(void* stream) const { return stream; }
};

struct Gpu {
    int32_t ordinal = 0; // as CUDA counts
    int capability = 0;  // 90 for 9.0
    std::string name;
    std::string pci_bus; // "0000:01:00.0"
};
/// The GPUs of the driver. Empty, with the reason in `problem`, when it cannot be opened.
std::vector<Gpu> find_gpus(std::string& problem);
std::shared_ptr<DeviceMemory> open_gpu(int32_t ordinal);

/// Memory that only the plugin can reach: whoever else touches an address is stopped at once.
std::shared_ptr<DeviceMemory> simulated_gpu();

} // namespace ingot::ort
