// SPDX-License-Identifier: Apache-2.0
// Timeline: when each block of each kernel of a recorded graph starts, waits, computes and ends,
// for one replay. Kernels then carry a few more instructions and run slower by some percent.
#pragma once

#include "backends/cuda/driver/gpu.h"
#include "base/json.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::cuda {

/// The records of one execution. One thread at a time may use it.
class Timeline {
public:
    /// `path`: the file that is written.
    Timeline(Gpu& gpu, std::string path) : gpu_(gpu), path_(std::move(path)) {}
    ~Timeline();
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;

    /// Adds a launch of step `what`; a number for it. Errors: OutOfMemory.
    int add(const kernels::Launch& l, std::string_view what, std::string_view tactic);
    void remove(int launch) noexcept;
    /// The device memory of a launch's records.
    std::byte* records(int launch) const;

    /// A graph is recorded from here on; launches are told in their order.
    void begin_graph() { order_.clear(); }
    void launched(int launch) { order_.push_back(launch); }
    std::vector<int> end_graph() { return std::move(order_); }

    /// Replays the graph of these launches. Where the count of replays, which starts at 1, is a
    /// power of four, the file is written anew from this replay, after waiting for it. Errors: Io,
    /// those of the stream.
    void replay(Stream& stream, const Recording& r, const std::vector<int>& launches, int replays);

private:
    struct Known {
        Json description; // name, tactic, kernel, grid, threads, shared, cluster
        size_t blocks = 0;
        std::byte* memory = nullptr; // null: removed
    };
    const Known& known(int launch) const { return known_.at(static_cast<size_t>(launch)); }
    void write(Stream& stream, const std::vector<int>& launches, int replays);

    Gpu& gpu_;
    std::string path_;
    std::vector<Known> known_;
    std::vector<int> order_;
};

/// Blocks' clocks as nanoseconds: clocks of multiprocessors differ, and the common timer may have
/// coarse steps. `records` has BlockRecord::words a block; returned are as many, with Start to End
/// in nanoseconds after the first start and -1 for marks that a block did not reach.
std::vector<int64_t> nanoseconds_of(const std::vector<uint64_t>& records);

} // namespace ingot::cuda
