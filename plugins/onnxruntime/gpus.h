// SPDX-License-Identifier: Apache-2.0
// GpuTable: the GPUs of a factory, and ONNX Runtime's descriptions of their memory.
#pragma once

#include "plugins/common/device_memory.h"
#include "plugins/onnxruntime/options.h"
#include "plugins/onnxruntime/scratch_pool.h"

#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace ingot::ort {

inline constexpr int oldest_capability = 80;

/// Filled while the factory lists devices, then constant; sessions keep it alive.
class GpuTable {
public:
    explicit GpuTable(const Host& host) : host_(host) {}
    ~GpuTable();
    GpuTable(const GpuTable&) = delete;
    GpuTable& operator=(const GpuTable&) = delete;

    struct Entry {
        GpuInfo gpu;
        const OrtHardwareDevice* hardware = nullptr;
        OrtHardwareDevice* own_hardware = nullptr; // where the host lists none
        std::shared_ptr<DeviceMemory> memory;      // null: a target for compilation only
        std::shared_ptr<OwnStreams> streams;       // null without memory, as `scratch`
        std::shared_ptr<ScratchPool> scratch;
        OrtMemoryInfo* info = nullptr;
        OrtMemoryInfo* pinned = nullptr;
        bool is_simulated = false;
        /// Its descriptions for the host.
        const char* metadata = nullptr;
    };
    /// Adds GPUs of capability 8.0 and up, matched with the host's by PCI address.
    void add_real(const OrtHardwareDevice* const* devices, size_t count);
    void add_simulated();
    /// Adds a GPU that is only a target for compilation.
    void add_virtual(uint32_t hardware_id);
    const std::vector<std::unique_ptr<Entry>>& entries() const { return entries_; }
    const Entry* find(const OrtHardwareDevice* hardware) const;
    /// Null for an unknown number, and for a target of compilation.
    const Entry* find_memory(uint32_t device) const;
    std::shared_ptr<DeviceMemory> memory(uint32_t device) const;
    /// Gives free scratch memory of this GPU back.
    void shrink_scratch(const std::shared_ptr<DeviceMemory>& memory) const noexcept;
    /// The entry with this memory, and whether it is the pinned one; null for other memory.
    const Entry* find(const OrtMemoryInfo* info, bool& is_pinned) const;
    // Live streams. Releases before 1.31 pass streams of the CPU too, for which their
    // OrtEpApi::SyncStream_GetImpl returns garbage.
    void add_stream(const OrtSyncStreamImpl* stream) const;
    void remove_stream(const OrtSyncStreamImpl* stream) const noexcept;
    bool has_stream(const OrtSyncStreamImpl* stream) const;

private:
    Entry& add(GpuInfo gpu, std::shared_ptr<DeviceMemory> memory, const char* metadata);
    void make_hardware(Entry& e, uint32_t id);
    Host host_;
    std::vector<std::unique_ptr<Entry>> entries_;
    mutable std::mutex mutex_;
    mutable std::set<const OrtSyncStreamImpl*> streams_;
};

/// The reason why the provider rejects a device: bits of OrtDeviceEpIncompatibilityReason, and
/// text.
struct Incompatibility {
    uint32_t reasons = 0;
    std::string text;
};
Incompatibility incompatibility(const Host& host, const OrtHardwareDevice* device);

} // namespace ingot::ort
