// SPDX-License-Identifier: Apache-2.0
// RunTraffic: whether runs are queued on a GPU of this process, to which copies of weights give
// way.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

namespace ingot::cuda {

class Gpu;

/// Thread safe.
class RunTraffic {
public:
    /// That of the GPU's number, whichever object stands for the GPU.
    static RunTraffic& of(const Gpu& gpu);

    void note_run() noexcept {
        last_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    }
    /// Whether a run was queued a short while ago: the next one may come any time.
    bool is_busy() const noexcept;
    /// Held by a copy of weights to the busy GPU: one is on its way at a time.
    std::mutex& turn() { return turn_; }

private:
    using Clock = std::chrono::steady_clock;

    std::atomic<Clock::rep> last_{0}; // 0: none
    std::mutex turn_;
};

} // namespace ingot::cuda
