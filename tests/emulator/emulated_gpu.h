// SPDX-License-Identifier: Apache-2.0
// EmulatedGpu: a GPU whose kernels run on the host, one after another, checked at every step.
#pragma once

#include "backends/cuda/driver/gpu.h"
#include "emulator/kept.h"
#include "emulator/memory.h"

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

namespace ingot::emulator {

struct Entry;

struct EmulatedOptions {
    /// Threads start from the last: what depends on their order shows.
    bool reversed = false;
    int64_t memory = int64_t{16} << 30;
    /// Allocations begin at multiples of it. Reads past an allocation's end are seen from the next
    /// multiple on.
    size_t alignment = 256;
    /// Where compiled texts are kept.
    std::string folder = kept_folder();
};

/// Launches of all emulated GPUs of a process run one at a time. An error (a deadlock, an access
/// outside an allocation, a missing grid_wait, ...) names kernel, block and thread.
class EmulatedGpu : public cuda::Gpu {
public:
    /// With a known compute capability, or with attributes of one's own.
    explicit EmulatedGpu(int cc, EmulatedOptions options = {});
    explicit EmulatedGpu(const kernels::Arch& arch, EmulatedOptions options = {});

    const kernels::Arch& arch() const override { return arch_; }
    std::string description() const override;
    std::string compiler() const override;
    std::string compile(const std::string& text) const override;
    std::shared_ptr<const cuda::Function> load(std::string_view binary, const std::string& entry,
                                               int64_t shared) override;
    void raise_shared(const cuda::Function& f, int64_t shared) override;
    std::unique_ptr<cuda::Stream> create_stream() override;
    std::byte* allocate(int64_t bytes) override;
    void release(std::byte* memory) noexcept override;
    std::byte* allocate_shared(int64_t bytes) override;
    void release_shared(std::byte* memory) noexcept override { release(memory); }
    void encode(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) const override;

    /// The allocation holds activations: kernels may not touch it before grid_wait (on
    /// architectures with programmatic dependent launch).
    void hold_until_wait(std::byte* memory) { memory_.hold_until_wait(memory); }
    /// Called before each launch, on the thread that launches; may change the parameters, to see
    /// that a fault is found.
    using Meddler =
        std::function<void(const Memory& memory, const Entry& entry, void* const* parameters)>;
    void set_meddler(Meddler meddler) { meddler_ = std::move(meddler); }
    void set_reversed(bool reversed) { options_.reversed = reversed; }
    /// Uploads beside a stream's work happen only when that stream waits for them.
    void set_late_uploads(bool late) { late_uploads_ = late; }
    bool has_late_uploads() const { return late_uploads_; }
    /// The faults that release() found so far; "" without any.
    std::string problems() const;
    Memory& memory() { return memory_; }
    uint64_t launches() const { return launches_; }
    /// The number of launched recordings.
    uint64_t replays() const { return replays_; }
    void count_replay() { ++replays_; }

    /// Records work that waits for this caller's stream, until the stream waits for it or
    /// end_capture. Null cannot be captured.
    void begin_capture(void* stream);
    /// Runs the captured work at each call.
    std::function<void()> end_capture();
    bool is_captured(void* stream) const { return stream != nullptr && stream == captured_; }
    void capture(std::function<void()> work) { captured_work_.push_back(std::move(work)); }
    /// Each recorded event of a caller, with the number of launches before it.
    std::vector<std::pair<void*, uint64_t>> recorded_events;

    void run(const cuda::Function& f, const cuda::LaunchShape& shape, void* const* parameters);

private:
    kernels::Arch arch_;
    EmulatedOptions options_;
    Memory memory_;
    std::atomic<uint64_t> launches_{0};
    std::atomic<uint64_t> replays_{0};
    mutable std::mutex mutex_;
    std::string problems_;
    bool late_uploads_ = false;
    Meddler meddler_;
    void* captured_ = nullptr;
    std::vector<std::function<void()>> captured_work_;
};

} // namespace ingot::emulator
