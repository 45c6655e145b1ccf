// SPDX-License-Identifier: Apache-2.0
// NCCL, opened when the first communicator is set: the calls that collectives make. Names and
// numbers are NCCL's; nothing of its headers is needed to build.
#pragma once

#include "ops/collective.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace ingot::cuda {

/// An application's ncclComm_t, and what was split off it for groups of its ranks. Used by one
/// thread at a time.
class Communicator {
public:
    /// `handle` is valid until this is gone. Errors: Unsupported when no NCCL is found (with the
    /// places searched), Device with what NCCL says.
    explicit Communicator(void* handle);
    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    const Rank& rank() const { return rank_; }
    /// The number that CUDA has for its GPU.
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
        bool captured = false; // what goes to the stream
    };
    /// Enqueues it on a CUstream. The first of a group waits for the others to do so. False: this
    /// rank gets no result, `out` is as it was. Errors: Device with what NCCL says; InvalidArgument
    /// for the first of a group while the stream is captured.
    bool enqueue(const Exchange& e, void* stream);

private:
    void* of_group(const Exchange& e);
    void move(const Exchange& e, void* group, void* stream) const;

    void* handle_;
    Rank rank_;
    int device_ = 0;
    std::map<std::vector<int64_t>, void*> groups_; // communicators of our own
};

/// "nccl 2.27.3"; "" when there is none.
std::string nccl_version();

} // namespace ingot::cuda
