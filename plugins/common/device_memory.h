// SPDX-License-Identifier: Apache-2.0
// DeviceMemory: memory, copies, streams and events of one GPU, for plugins. A GPU of the
// driver, or a simulated one in host memory, for tests.
#pragma once

#include "base/error.h"
#include "base/priority.h"

#include <memory>
#include <string>
#include <vector>

namespace ingot {

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
    /// As allocate() and release(), but memory is released when all queued work that uses it is
    /// complete: giving it back then waits for no work of others.
    virtual void* allocate_unshared(size_t bytes) { return allocate(bytes); }
    virtual void release_unused(void* memory) noexcept { release(memory); }
    virtual void* allocate_pinned(size_t bytes) = 0;
    virtual void release_pinned(void* memory) noexcept = 0;
    /// The same for memory that is released when all queued work that uses it is complete. Some is
    /// kept for the next who asks, whoever that is: a driver locks and unlocks pages while others
    /// wait.
    virtual void* allocate_staging(size_t bytes) { return allocate_pinned(bytes); }
    virtual void release_staging(void* memory) noexcept { release_pinned(memory); }
    /// Copies between any two memories, the host's included, in the order of `stream`; complete on
    /// return where `stream` is null.
    virtual void copy(void* target, const void* source, size_t bytes, void* stream) = 0;
    /// Fills device memory with zeros in the order of `stream`, which is not null.
    virtual void set_zero(void* target, size_t bytes, void* stream) = 0;
    virtual void* create_stream(RunPriority priority) = 0;
    virtual void release_stream(void* stream) noexcept = 0;
    virtual void wait_for_stream(void* stream) = 0;
    /// Waits for all work queued on the GPU.
    virtual void wait() = 0;
    virtual void* create_event() = 0;
    virtual void release_event(void* event) noexcept = 0;
    virtual void record(void* event, void* stream) = 0;
    virtual void make_wait(void* stream, void* event) = 0;
    virtual void wait_for_event(void* event) = 0;
    virtual bool has_passed(void* event) = 0;
    /// Waits for the GPU's work. Whether the driver then says that the GPU is lost to this process,
    /// as after an illegal access; running out of memory and refused calls leave it sound.
    virtual bool is_lost() noexcept = 0;
    /// Errors: Device with the first error that left the GPU unusable to this process. From then on
    /// each call that can fail does so at once, with that error.
    virtual void require_alive() const {}
    /// For such an error that others have got.
    virtual void note_lost(const std::string& cause) noexcept { static_cast<void>(cause); }
    /// Errors: InvalidArgument for a stream of another GPU or context.
    virtual void check_stream(void* stream) = 0;
    /// Whether work for the stream goes into a graph that the application captures.
    virtual bool is_captured(void* stream) = 0;
    /// The address of this memory for an engine, and the stream for it.
    virtual void* engine_address(void* memory) const { return memory; }
    virtual void* engine_stream(void* stream) const { return stream; }
};

struct GpuInfo {
    int32_t ordinal = 0; // CUDA's number
    int capability = 0;  // 90 for 9.0
    std::string name;
    std::string pci_bus; // "0000:01:00.0"
};
/// The driver's GPUs. Empty, with the reason in `problem`, without a usable driver.
std::vector<GpuInfo> find_gpus(std::string& problem);
std::shared_ptr<DeviceMemory> open_gpu(int32_t ordinal);

/// Which memory of the host a simulated GPU copies in the order of a stream.
enum class HostCopies { kANY, kPINNED_ALONE };
/// Memory that only the plugin can access: any other access crashes at once. At most 2 GiB.
/// With kPINNED_ALONE a copy in a stream's order from or to pageable memory fails (Internal): the
/// driver would make the caller, and other threads of the context, wait for it.
std::shared_ptr<DeviceMemory> simulated_gpu(size_t bytes = 2ULL << 30U,
                                            HostCopies copies = HostCopies::kANY);

} // namespace ingot
