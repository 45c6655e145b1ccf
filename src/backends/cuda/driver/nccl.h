// SPDX-License-Identifier: Apache-2.0
// NCCL, opened when the first communicator is set: the calls of collectives, with NCCL's names and
// numbers. The build needs none of its headers.
#pragma once

#include "ops/collective.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace ingot::cuda {

/// An application's ncclComm_t, and communicators split off for groups of its ranks. One thread at
/// a time may use it.
class Communicator {
public:
    /// `handle` must outlive this. Errors: Unsupported when no NCCL is found (with the searched
    /// places), Device with NCCL's message.
    explicit Communicator(void* handle);
    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    const Rank& rank() const { return rank_; }
    /// CUDA's number of its GPU.
    int device() const { return device_; }
    void* handle() const { return handle_; }

    /// One tensor, dense, in the memory of the GPU.
    struct Exchange {
        const Collective& op;
        DType dtype = DType::F32;
        const std::byte* in = nullptr;
        std::byte* out = nullptr;
        int64_t in_count = 0; // elements
        int64_t out_count = 0;
        bool captured = false; // the stream is being captured
    };
    /// Enqueues the exchange on a CUstream. The first one of a group waits for the other ranks.
    /// False: this rank gets no result, and `out` is unchanged. Errors: Device with NCCL's message;
    /// InvalidArgument for the first one of a group during capture.
    bool enqueue(const Exchange& e, void* stream);

private:
    void* of_group(const Exchange& e);
    void move(const Exchange& e, void* group, void* stream) const;

    void* handle_;
    Rank rank_;
    int device_ = 0;
    std::map<std::vector<int64_t>, void*> groups_; // split off by us
};

/// "nccl 2.27.3"; "" without NCCL.
std::string nccl_version();

} // namespace ingot::cuda
