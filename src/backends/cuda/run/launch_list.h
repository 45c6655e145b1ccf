// SPDX-License-Identifier: Apache-2.0
// LaunchList: the launches that a family emitted, ready once addresses are known.
#pragma once

#include "backends/cuda/options.h"
#include "backends/cuda/run/device.h"

namespace ingot::cuda {

/// A launch of a kernel on a GPU. Waits for the compiler.
plan::LaunchReport launch_report(PendingKernel& kernel, const LaunchShape& shape,
                                 const kernels::Arch& arch);

class LaunchList {
public:
    /// `what` names the step in messages.
    LaunchList(CudaDevice& device, std::string what) : device_(device), what_(std::move(what)) {}
    ~LaunchList();
    LaunchList(LaunchList&& o) noexcept;
    LaunchList(const LaunchList&) = delete;
    LaunchList& operator=(const LaunchList&) = delete;

    /// Replaces the list and requests the kernels, which may compile in the background. Errors:
    /// Unsupported for a grid beyond CUDA's limits.
    /// `tactic` is for the timeline.
    void set(const kernels::Emitted& e, Specialise specialise = Specialise::None,
             std::string_view tactic = {});
    /// The same for one launch of a kernel that was requested before, without a timeline.
    void set(const kernels::Launch& l, std::shared_ptr<PendingKernel> kernel);
    /// The kernel of the first launch; null where nothing is launched.
    std::shared_ptr<PendingKernel> first_kernel() const {
        return items_.empty() ? nullptr : items_[0].kernel;
    }
    /// Waits for the compiler and loads the kernels. Errors: those of either.
    void wait();
    /// Makes the device's state that launches read, which a first run would make. Errors:
    /// OutOfMemory, Device.
    void make_state();
    /// Whether a variant for the exact shapes has arrived since the last run.
    bool is_stale() const;
    /// `buffers`: addresses by Operand::buffer.
    void run(std::byte* const* buffers, std::byte* scratch);
    /// The launches of an earlier run are run again without run(). As a second run: asks for
    /// variants for the exact shapes, where such are wanted.
    void repeats() noexcept;
    /// Appends the launches. Waits for the compiler.
    void report(std::vector<plan::LaunchReport>& to);

private:
    /// Memory for one launch's parameters, aligned for tensor maps.
    struct alignas(64) Block {
        std::byte bytes[64];
    };
    struct Item {
        std::shared_ptr<PendingKernel> kernel;
        std::shared_ptr<PendingKernel> special;      // replaces `kernel` once loaded
        std::shared_ptr<const kernels::Launch> lazy; // a variant of it is wanted by a second run
        bool has_run = false;
        std::string generic; // used when `kernel` does not compile
        LaunchShape shape;
        uint32_t asked = 0; // bytes of dynamic shared memory, before those that release_early adds
        kernels::Args args;
        std::vector<Block> memory;
        std::vector<void*> parameters;
        std::vector<std::byte*> encoded; // the base address of each encoded tensor map
        int timed = -1;                  // its number in the timeline
    };
    void add(const kernels::Launch& l, Specialise specialise,
             std::shared_ptr<PendingKernel> kernel = nullptr);
    void add_to_timeline(Item& item, const kernels::Launch& l, std::string_view tactic);
    void clear();
    void request(Item& item, const kernels::Launch& l, Specialise specialise);
    void request_special(Item& item) noexcept;
    void fill_in(Item& item, std::byte* const* buffers, std::byte* scratch);

    CudaDevice& device_;
    std::string what_;
    std::vector<Item> items_;
    int error_word_ = -1;
};

} // namespace ingot::cuda
