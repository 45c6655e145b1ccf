// SPDX-License-Identifier: Apache-2.0
// WeightCopies: threads that copy constants to the device while plans are made and kernels compile.
#pragma once

#include "backends/cuda/run/piece_threads.h"
#include "backends/cuda/run/run_traffic.h"
#include "plan/stored_constant.h"

#include <optional>

namespace ingot::cuda {

/// Thread safe.
class WeightCopies {
public:
    struct Copy {
        std::byte* to = nullptr;
        plan::StoredConstant constant;
    };
    /// The device memory of each copy must outlive this. `lent`: the device memory is an
    /// application's, which may be in use by work on its default stream. `ended` is called once,
    /// on any thread: whether all is there. Few bytes are copied when it returns. Errors: Device.
    WeightCopies(Gpu& gpu, std::vector<Copy> copies, bool lent,
                 std::function<void(bool all)> ended);
    WeightCopies(const WeightCopies&) = delete;
    WeightCopies& operator=(const WeightCopies&) = delete;
    /// Waits until all is copied. Errors: a copy's; Interrupted, while the copies go on.
    void wait() { threads_->wait(); }
    bool failed() const { return threads_->failed(); }

private:
    struct Piece {
        const Copy* copy = nullptr;
        size_t at = 0;
        size_t bytes = 0;
    };
    void copy(const Piece& p, Stream& stream);
    static void write(const Piece& p, Stream& stream);

    RunTraffic& traffic_;
    std::vector<Copy> copies_;
    std::vector<Piece> pieces_;
    std::optional<PieceThreads> threads_;
};

} // namespace ingot::cuda
