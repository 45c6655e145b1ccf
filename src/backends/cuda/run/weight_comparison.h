// SPDX-License-Identifier: Apache-2.0
// WeightComparison: threads that compare constants with bytes that lie on the device.
#pragma once

#include "backends/cuda/run/piece_threads.h"
#include "backends/cuda/run/weight_slabs.h"
#include "plan/stored_constant.h"

#include <atomic>
#include <deque>
#include <optional>

namespace ingot::cuda {

/// Thread safe.
class WeightComparison {
public:
    struct Placed {
        size_t at = 0; // in the slab
        plan::StoredConstant constant;
    };
    /// A slab, and the constants that its bytes may be, in the order of their places.
    struct Pair {
        std::shared_ptr<WeightSlab> slab;
        std::vector<Placed> constants;
    };
    /// `tried`: slabs that other comparisons of these constants found different.
    WeightComparison(Gpu& gpu, std::vector<Pair> pairs, std::vector<const WeightSlab*> tried);
    WeightComparison(const WeightComparison&) = delete;
    WeightComparison& operator=(const WeightComparison&) = delete;
    /// Waits until all is compared. Errors: the device's; Interrupted, while the work goes on.
    void wait() { threads_->wait(); }
    bool failed() const { return threads_->failed(); }
    const std::vector<Pair>& pairs() const { return pairs_; }
    const std::vector<const WeightSlab*>& tried() const { return tried_; }
    /// After wait(): whether the slab of that pair has the bytes of its constants.
    bool is_equal(size_t pair) const { return !differs_[pair]; }

private:
    struct Piece {
        const Placed* placed = nullptr;
        size_t at = 0; // in the constant
        size_t bytes = 0;
    };
    /// Neighbours that are read together.
    struct Group {
        size_t pair = 0;
        std::vector<Piece> pieces;
    };
    void add(size_t pair, const Piece& piece);
    void compare(const Group& group, PieceThreads::Hand& hand);
    static bool equals(const Piece& p, const std::byte* found, std::vector<std::byte>& memory);

    std::vector<Pair> pairs_;
    std::vector<const WeightSlab*> tried_;
    std::vector<Group> groups_;
    std::deque<std::atomic<bool>> differs_; // of each pair
    std::optional<PieceThreads> threads_;
};

} // namespace ingot::cuda
