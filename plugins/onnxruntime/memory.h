// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU as ONNX Runtime sees it: allocators, copies, streams.
#pragma once

#include "plugins/onnxruntime/gpus.h"
#include "plugins/onnxruntime/kept_blocks.h"

#include <map>
#include <mutex>
#include <vector>

namespace ingot::ort {

/// Memory of a GPU, or pinned host memory for it. Freed memory of a stream is kept, and reused on
/// the same stream, or once the stream has passed its last use; KeptBlocks has the other.
class Allocator final : public OrtAllocator {
public:
    /// For a GPU of the table with memory.
    Allocator(const Host& host, std::shared_ptr<const GpuTable> gpus, const GpuTable::Entry& gpu,
              bool pinned);
    ~Allocator();
    Allocator(const Allocator&) = delete;
    Allocator& operator=(const Allocator&) = delete;

private:
    struct Block {
        void* memory = nullptr;
        size_t bytes = 0;
        void* stream = nullptr; // of the uses until the free
        LastUse use;            // from the free on
    };
    static void* alloc(OrtAllocator* self, size_t bytes);
    static void free(OrtAllocator* self, void* memory);
    static const OrtMemoryInfo* get_info(const OrtAllocator* self);
    static void* alloc_on_stream(OrtAllocator* self, size_t bytes, OrtSyncStream* stream);
    static OrtStatus* shrink(OrtAllocator* self);
    void* take(size_t bytes, void* stream);
    void give(void* memory) noexcept;
    void release_kept() noexcept;

    Host host_;
    std::shared_ptr<const GpuTable> gpus_;
    std::shared_ptr<DeviceMemory> memory_;
    std::shared_ptr<OwnStreams> streams_;
    const OrtMemoryInfo* info_;
    bool pinned_;
    std::mutex mutex_;
    std::map<void*, Block> used_;       // with a stream
    std::multimap<size_t, Block> kept_; // by size
    KeptBlocks blocks_;                 // without a stream
};

/// Copies between the host and GPUs, and within a GPU. Release() deletes it.
class DataTransfer final : public OrtDataTransferImpl {
public:
    DataTransfer(const Host& host, std::shared_ptr<const GpuTable> gpus);
    /// In the order of `stream`; complete on return for a null stream or a host target.
    void copy(const OrtValue* source, OrtValue* target, void* stream) const;

private:
    static void release(OrtDataTransferImpl* self);
    static bool can_copy(const OrtDataTransferImpl* self, const OrtMemoryDevice* source,
                         const OrtMemoryDevice* target);
    static OrtStatus* copy_tensors(OrtDataTransferImpl* self, const OrtValue** sources,
                                   OrtValue** targets, OrtSyncStream** streams, size_t count);
    Host host_;
    std::shared_ptr<const GpuTable> gpus_;
};

/// A stream of the plugin, or the application's (`given`, null for none). Release() deletes it.
class Stream final : public OrtSyncStreamImpl {
public:
    /// On a GPU of the table with memory.
    Stream(const Host& host, std::shared_ptr<const GpuTable> gpus, const GpuTable::Entry& gpu,
           void* given, bool low_priority);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    void* handle() const { return stream_; }

private:
    static void release(OrtSyncStreamImpl* self);
    static void* get_handle(OrtSyncStreamImpl* self);
    static OrtStatus* create_notification(OrtSyncStreamImpl* self, OrtSyncNotificationImpl** out);
    static OrtStatus* flush(OrtSyncStreamImpl* self);
    static OrtStatus* on_session_run_end(OrtSyncStreamImpl* self);

    Host host_;
    std::shared_ptr<const GpuTable> gpus_;
    std::shared_ptr<DeviceMemory> memory_;
    std::shared_ptr<OwnStreams> streams_;
    void* stream_;
    bool owned_;
};

/// The stream of the host's object; null for a foreign one.
void* stream_handle(const Host& host, const GpuTable& gpus, const OrtSyncStream* stream);

/// Kernels for the copies that ONNX Runtime inserts between our nodes and the CPU's: without them
/// the result of a copy stays on the wrong side.
class MemcpyKernels {
public:
    MemcpyKernels(const Host& host, const std::string& provider,
                  std::shared_ptr<const GpuTable> gpus);
    ~MemcpyKernels();
    MemcpyKernels(const MemcpyKernels&) = delete;
    MemcpyKernels& operator=(const MemcpyKernels&) = delete;
    const OrtKernelRegistry* registry() const { return registry_; }

private:
    void add(const char* type, const std::string& provider, bool to_host);
    Host host_;
    OrtKernelRegistry* registry_ = nullptr;
    DataTransfer transfer_;
};

} // namespace ingot::ort
