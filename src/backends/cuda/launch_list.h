// SPDX-License-Identifier: Apache-2.0
// LaunchList: what a family emitted, ready to be launched once addresses are known.
#pragma once

#include "backends/cuda/device.h"

namespace ingot::cuda {

class LaunchList {
public:
    /// `what` names the step in messages.
    LaunchList(CudaDevice& device, std::string what) : device_(device), what_(std::move(what)) {}

    /// Replaces the list. Asks for the kernels, which may go on compiling. Errors: Unsupported for
    /// a grid that CUDA does not allow.
    void set(const kernels::Emitted& e);
    /// Waits for the compiler and loads the kernels. Errors: what either threw.
    void wait();
    /// `buffers`: addresses by Operand::buffer.
    void run(std::byte* const* buffers, std::byte* scratch);

private:
    /// Memory for one launch's parameters, aligned for tensor maps.
    struct alignas(64) Block {
        std::byte bytes[64];
    };
    struct Item {
        std::shared_ptr<PendingKernel> kernel;
        LaunchShape shape;
        kernels::Args args;
        std::vector<Block> memory;
        std::vector<void*> parameters;
        std::vector<std::byte*> encoded; // the base over which each tensor map was encoded
    };
    void add(const kernels::Launch& l);
    void fill_in(Item& item, std::byte* const* buffers, std::byte* scratch);

    CudaDevice& device_;
    std::string what_;
    std::vector<Item> items_;
    int error_word_ = -1;
};

} // namespace ingot::cuda
