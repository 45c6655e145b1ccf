// SPDX-License-Identifier: Apache-2.0
// ScratchPool: memory of a GPU for the activations of runs, shared by all sessions of the device.
#pragma once

#include "plugins/onnxruntime/own_streams.h"

#include <memory>
#include <mutex>
#include <vector>

namespace ingot::ort {

/// Runs that go on at the same time have a block each; later ones take the same blocks. Thread
/// safe.
class ScratchPool {
    struct Block {
        void* memory = nullptr;
        size_t bytes = 0;
        LastUse use;
    };

public:
    ScratchPool(std::shared_ptr<DeviceMemory> memory, std::shared_ptr<OwnStreams> streams)
        : memory_(std::move(memory)), streams_(std::move(streams)) {}
    ~ScratchPool();
    ScratchPool(const ScratchPool&) = delete;
    ScratchPool& operator=(const ScratchPool&) = delete;

    /// A block for one run. The destructor gives it back, in the order of the run's stream.
    class Lease {
    public:
        Lease() = default;
        Lease(Lease&& other) noexcept { *this = std::move(other); }
        Lease& operator=(Lease&& other) noexcept;
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        ~Lease();
        void* memory() const { return block_.memory; }
        size_t bytes() const { return block_.bytes; }
        /// Whether the stream was captured when the block was taken.
        bool is_captured() const { return is_captured_; }

    private:
        friend class ScratchPool;
        ScratchPool* pool_ = nullptr;
        Block block_;
        void* stream_ = nullptr;
        bool is_captured_ = false;
    };
    /// At least `bytes` for work that is queued on `stream`; `preferred` if it is free and fits,
    /// since recorded graphs hold addresses. Nothing for 0 bytes. A stream that is captured cannot
    /// wait for earlier work. Errors: OutOfMemory; InvalidArgument for such a wait.
    Lease take(size_t bytes, void* stream, const void* preferred);

    /// Gives free blocks back to the GPU.
    void shrink() noexcept;
    /// A user keeps free blocks alive: the last that leaves shrinks the pool.
    void enter();
    void leave() noexcept;
    /// Bytes of all blocks.
    size_t held_bytes() const;

private:
    Block take_free(size_t bytes, const void* preferred);
    void follow_use(LastUse& use, void* stream, bool is_captured);
    void keep(const Block& block) noexcept;
    void give(Block block, void* stream) noexcept;
    void destroy(const Block& block) noexcept;

    std::shared_ptr<DeviceMemory> memory_;
    std::shared_ptr<OwnStreams> streams_;
    mutable std::mutex mutex_;
    std::vector<Block> free_;
    size_t held_bytes_ = 0;
    size_t users_ = 0;
};

/// Membership in a pool.
class ScratchUser {
public:
    /// Null: no pool.
    explicit ScratchUser(std::shared_ptr<ScratchPool> pool) : pool_(std::move(pool)) {
        if (pool_ != nullptr) {
            pool_->enter();
        }
    }
    ~ScratchUser() {
        if (pool_ != nullptr) {
            pool_->leave();
        }
    }
    ScratchUser(const ScratchUser&) = delete;
    ScratchUser& operator=(const ScratchUser&) = delete;
    ScratchPool* pool() const { return pool_.get(); }

private:
    std::shared_ptr<ScratchPool> pool_;
};

} // namespace ingot::ort
