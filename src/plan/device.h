// SPDX-License-Identifier: Apache-2.0
// Device: the memory in which steps read and write, as the runner sees it. The host's is the
// process's own; other memory is behind a stream, which orders every operation here. Other
// abilities are in its parts.
#pragma once

#include "ir/tensor.h"
#include "plan/device_parts.h"
#include "plan/stored_constant.h"

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace ingot {
struct MemorySource;
} // namespace ingot

namespace ingot::plan {

/// One per execution; used by one thread at a time.
class Device {
public:
    virtual ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    /// At least 256-byte aligned on a device with memory of its own, 64 on the host. Errors:
    /// OutOfMemory with what was needed.
    virtual std::byte* allocate(int64_t bytes) = 0;
    virtual void release(std::byte* memory) noexcept = 0;
    /// Sets the source of later allocations; null: the first source. Each block returns to its own
    /// source.
    virtual void set_memory(std::shared_ptr<MemorySource> source) = 0;
    /// Begins to bring constants here, whose addresses are asked for next: together they take less
    /// time and memory. Errors: OutOfMemory.
    virtual void bring(const std::vector<StoredConstant>& constants) {
        static_cast<void>(constants);
    }
    /// The address of a constant for kernels; valid as long as the device and the source's bytes.
    /// The host has no place for one that is gathered.
    virtual const std::byte* constant(const StoredConstant& c) = 0;
    virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
    virtual void fill(std::byte* to, int byte, size_t bytes) = 0;
    /// Copies to the host; earlier work is done when it returns.
    virtual void read(void* to, const std::byte* from, size_t bytes) = 0;
    /// Copies from the host; `from` may change once it returns.
    virtual void write(std::byte* to, const void* from, size_t bytes) = 0;
    /// Waits for all earlier work.
    virtual void synchronize() = 0;

    /// Whether its memory is the host's.
    bool is_host() const { return is_host_; }
    const DeviceParts& parts() const { return parts_; }
    /// Whether a constant lies here from the first plan that reads it on.
    bool keeps(const StoredConstant& constant) const {
        return parts_.uploads == nullptr || parts_.uploads->keeps(constant);
    }
    /// For steps that draw random numbers on the host: the number of earlier runs.
    uint64_t draw() {
        draws_ = true;
        return runs_that_drew_;
    }
    /// After the last step of a run: the next run draws other numbers.
    void end_draws();

    /// An uninitialised tensor in this device's memory, which is reused once the tensor is
    /// destroyed. Must not outlive the device.
    Tensor tensor(DType dtype, Shape shape);
    /// State that the steps of one execution share under a key, null at first; lives as long as the
    /// device.
    std::shared_ptr<void>& shared_state(const void* key) { return states_[key]; }

protected:
    /// A device of the host, or of other memory.
    explicit Device(bool is_host) : is_host_(is_host) {}
    /// To be called by constructors; without it the device has no parts.
    void set_parts(const DeviceParts& parts) { parts_ = parts; }
    /// Frees the memory of destroyed tensors. Call it in destructors.
    void release_spare() noexcept;
    /// Keeps the host device alive while a tensor of it is; null: it always lives.
    virtual std::shared_ptr<void> owner() { return nullptr; }

private:
    struct Spare;
    bool is_host_;
    DeviceParts parts_;
    uint64_t runs_that_drew_ = 0;
    bool draws_ = false;           // in this run
    std::shared_ptr<Spare> spare_; // null: not needed yet
    std::map<const void*, std::shared_ptr<void>> states_;
};

/// The process's memory.
Device& host_device();
/// The same, with blocks from `source`; null: the system.
std::shared_ptr<Device> make_host_device(std::shared_ptr<MemorySource> source);

/// Device memory that only grows.
class GrowingBuffer {
public:
    explicit GrowingBuffer(Device& device) : device_(&device) {}
    ~GrowingBuffer();
    GrowingBuffer(const GrowingBuffer&) = delete;
    GrowingBuffer& operator=(const GrowingBuffer&) = delete;
    GrowingBuffer(GrowingBuffer&& o) noexcept;
    GrowingBuffer& operator=(GrowingBuffer&& o) noexcept;
    /// True when the memory moved; its contents are lost. Errors: OutOfMemory.
    bool reserve(int64_t bytes);
    void give_back();
    /// Uses the caller's memory from now on; null returns to its own. The contents are lost.
    /// reserve() then fails for more than `bytes`.
    void lend(std::byte* memory, int64_t bytes);
    std::byte* data() const { return data_; }
    int64_t bytes() const { return bytes_; }

private:
    Device* device_;
    std::byte* data_ = nullptr;
    int64_t bytes_ = 0;
    bool lent_ = false;
};

} // namespace ingot::plan
