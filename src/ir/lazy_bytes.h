// SPDX-License-Identifier: Apache-2.0
// The bytes of lazy tensors, which are made when somebody needs them: those of tensors that are
// joined, and those that a function computes.
#pragma once

#include "ir/tensor.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

namespace ingot {

/// A row of each tensor in turn, for each of `rows`: tensors joined along an axis.
struct JoinedTensors {
    std::vector<Tensor> parts;
    size_t rows = 1;

    size_t row_bytes(size_t part) const { return parts[part].byte_count() / rows; }
    /// Writes the bytes from `offset` on.
    void read(size_t offset, std::span<std::byte> to, ThreadPool& pool) const;
};

/// Thread safe.
class LazyBytes {
public:
    LazyBytes(size_t bytes, MakeTensor make) : count_(bytes), make_(std::move(make)) {}
    LazyBytes(size_t bytes, JoinedTensors joined) : count_(bytes), joined_(std::move(joined)) {}
    size_t count() const { return count_; }
    bool is_made() const { return is_made_.load(std::memory_order_acquire); }
    /// Made by the first call; others wait for it, but for loops of a pool, which make them
    /// once more: the first may wait for the pool. Errors: those of its function; OutOfMemory.
    std::span<const std::byte> get(ThreadPool& pool) const;
    /// The tensors that these are joined of, while they are not made; else null.
    const JoinedTensors* joined() const {
        return make_ == nullptr && !is_made() ? &joined_ : nullptr;
    }

private:
    Tensor join(ThreadPool& pool) const;
    Tensor make(ThreadPool& pool) const;
    std::span<const std::byte> make_apart(ThreadPool& pool) const;

    size_t count_;
    MakeTensor make_; // null: joined
    JoinedTensors joined_;
    mutable std::mutex mutex_; // held while they are made
    mutable std::atomic<bool> is_made_{false};
    mutable Tensor made_;
    mutable std::mutex apart_mutex_;      // of the next
    mutable std::optional<Tensor> apart_; // made in a loop, while another thread made them
};

} // namespace ingot
