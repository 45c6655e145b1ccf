// SPDX-License-Identifier: Apache-2.0
// LaunchList: what a family emitted, ready to be launched once addresses are known.
#pragma once

#include "backends/cuda/run/device.h"

namespace ingot::cuda {

class LaunchList {
public:
    /// `what` names the step in messages.
    LaunchList(CudaDevice& device, std::string what) : device_(device), what_(std::move(what)) {}
    ~LaunchList();
    LaunchList(LaunchList&& o) noexcept;
    LaunchList(const LaunchList&) = delete;
    LaunchList& operator=(const LaunchList&) = delete;

    /// Replaces the list. Asks for the kernels, which may go on compiling. Errors: Unsupported for
    /// a grid that CUDA does not allow.
    void set(const kernels::Emitted& e, Specialise specialise = Specialise::None);
    /// Waits for the compiler and loads the kernels. Errors: what either threw.
    void wait();
    /// Whether a variant for these very shapes has come that the last run did not use yet.
    bool is_stale() const;
    /// `buffers`: addresses by Operand::buffer.
    void run(std::byte* const* buffers, std::byte* scratch);

private:
    /// Memory for one launch's parameters, aligned for tensor maps.
    struct alignas(64) Block {
        std::byte bytes[64];
    };
    struct Item {
        std::shared_ptr<PendingKernel> kernel;
        std::shared_ptr<PendingKernel> special; // takes its place once it is loaded
        std::string generic;                    // for when `kernel` does not compile
        LaunchShape shape;
        kernels::Args args;
        std::vector<Block> memory;
        std::vector<void*> parameters;
        std::vector<std::byte*> encoded; // the base over which each tensor map was encoded
    };
    void add(const kernels::Launch& l, Specialise specialise);
    void request(Item& item, const kernels::Launch& l, Specialise specialise);
    void fill_in(Item& item, std::byte* const* buffers, std::byte* scratch);

    CudaDevice& device_;
    std::string what_;
    std::vector<Item> items_;
    int error_word_ = -1;
};

} // namespace ingot::cuda
