// SPDX-License-Identifier: Apache-2.0
// Device memory for constants in slabs. Executables of one GPU share a slab whose bytes are equal
// (ADR 0024).
#pragma once

#include "backends/cuda/driver/gpu.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace ingot::cuda {

class Memory;

/// Memory for constants that lie one behind the other. Thread safe.
class WeightSlab {
public:
    /// `memory` null: the GPU's own memory, without a budget; else it outlives this. Errors:
    /// OutOfMemory.
    WeightSlab(Gpu& gpu, Memory* memory, size_t bytes);
    ~WeightSlab();
    WeightSlab(const WeightSlab&) = delete;
    WeightSlab& operator=(const WeightSlab&) = delete;
    std::byte* data() const { return data_; }

    /// Its constants are all there, or will never be. The first call counts.
    void settle(bool whole);
    bool is_lost() const;
    /// Waits until the constants are there. False: they will never be, or `stopping` is true.
    bool wait_whole(const std::atomic<bool>& stopping) const;

private:
    Gpu& gpu_;
    Memory* memory_;
    std::byte* data_;
    enum class State { Coming, Whole, Lost };
    mutable std::mutex mutex_;
    mutable std::condition_variable settled_;
    State state_ = State::Coming;
};

/// The slabs that executables of one GPU may share. Thread safe.
class SharedSlabs {
public:
    /// Sizes of a slab's constants in bytes, in their order.
    using Layout = std::vector<size_t>;
    struct Taken {
        std::shared_ptr<WeightSlab> slab;
        bool is_new = false; // to be filled; else its bytes may be other constants'
    };
    /// A slab of this layout that someone uses and that is none of `tried`, else what `make` gives.
    Taken take(const Layout& layout, const std::vector<const WeightSlab*>& tried,
               const std::function<std::shared_ptr<WeightSlab>()>& make);

private:
    std::mutex mutex_;
    std::map<Layout, std::vector<std::weak_ptr<WeightSlab>>> slabs_;
};

} // namespace ingot::cuda
