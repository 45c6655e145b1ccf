// SPDX-License-Identifier: Apache-2.0
// WeightCopies: threads that copy constants to the device while plans are made and kernels compile.
#pragma once

#include "backends/cuda/driver/gpu.h"
#include "plan/stored_constant.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ingot::cuda {

/// Thread safe.
class WeightCopies {
public:
    struct Copy {
        std::byte* to = nullptr;
        plan::StoredConstant constant;
    };
    /// The device memory of each copy must outlive this. `lent`: the device memory is an
    /// application's, which may be in use by work on its default stream. Few bytes are copied when
    /// it returns. Errors: Device.
    WeightCopies(Gpu& gpu, std::vector<Copy> copies, bool lent);
    /// Leaves out what has not begun.
    ~WeightCopies();
    WeightCopies(const WeightCopies&) = delete;
    WeightCopies& operator=(const WeightCopies&) = delete;
    /// Waits until all is copied. Errors: a copy's; Interrupted, while the copies go on.
    void wait();
    bool failed() const;

private:
    void work() noexcept;
    void copy_pieces();

    Gpu& gpu_;
    bool lent_;
    struct Piece {
        const Copy* copy = nullptr;
        size_t at = 0;
        size_t bytes = 0;
    };
    std::vector<Copy> copies_;
    std::vector<Piece> pieces_;
    std::atomic<size_t> next_{0};
    mutable std::mutex mutex_;
    std::condition_variable done_;
    size_t working_ = 0; // threads
    std::exception_ptr problem_;
    std::vector<std::thread> threads_;
};

} // namespace ingot::cuda
