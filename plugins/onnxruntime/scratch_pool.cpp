// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/scratch_pool.h"

#include <algorithm>
#include <utility>

namespace ingot::ort {

namespace {

constexpr size_t step = 64 << 10U; // sizes that hardly differ share a block

} // namespace

ScratchPool::Lease& ScratchPool::Lease::operator=(Lease&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(block_, other.block_);
    std::swap(stream_, other.stream_);
    std::swap(is_captured_, other.is_captured_);
    return *this;
}

ScratchPool::Lease::~Lease() {
    if (pool_ != nullptr) {
        pool_->give(block_, stream_);
    }
}

ScratchPool::~ScratchPool() {
    shrink();
}

ScratchPool::Block ScratchPool::take_free(size_t bytes, const void* preferred) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
        if (it->bytes < bytes) {
            continue;
        }
        if (it->memory == preferred) {
            best = it;
            break;
        }
        if (best == free_.end() || it->bytes < best->bytes) {
            best = it;
        }
    }
    if (best == free_.end()) {
        return {};
    }
    Block found = *best;
    free_.erase(best);
    return found;
}

/// Makes what is queued on `stream` from now on follow the use.
void ScratchPool::follow_use(LastUse& use, void* stream, bool is_captured) {
    if (!is_captured && OwnStreams::is_in_order(use, stream)) {
        return;
    }
    require(streams_->record(use), ErrorCode::InvalidArgument,
            "a stream of the provider is captured, expected one of the application: pass it as "
            "user_compute_stream");
    if (is_captured) {
        require(memory_->has_passed(use.event), ErrorCode::InvalidArgument,
                "the stream is captured while earlier runs go on: wait for them before");
    } else {
        memory_->make_wait(stream, use.event); // none for an event that was never recorded
    }
}

ScratchPool::Lease ScratchPool::take(size_t bytes, void* stream, const void* preferred) {
    Lease out;
    if (bytes == 0) {
        return out;
    }
    out.is_captured_ = memory_->is_captured(stream);
    bytes = (bytes + step - 1) / step * step;
    Block block = take_free(bytes, preferred);
    if (block.memory == nullptr) {
        shrink(); // a larger block takes the place of those that are free
        block.use.event = memory_->create_event();
        try {
            block.memory = memory_->allocate(bytes);
        } catch (Error& e) {
            memory_->release_event(block.use.event);
            e.at("scratch memory for a run");
            throw;
        }
        block.bytes = bytes;
        std::lock_guard<std::mutex> lock(mutex_);
        held_bytes_ += bytes;
    }
    try {
        follow_use(block.use, stream, out.is_captured_);
    } catch (...) {
        keep(block);
        throw;
    }
    out.pool_ = this;
    out.block_ = block;
    out.stream_ = stream;
    return out;
}

void ScratchPool::give(Block block, void* stream) noexcept {
    try {
        streams_->end_use(block.use, stream);
    } catch (...) { // the driver waits for its last use
        destroy(block);
        return;
    }
    keep(block);
}

void ScratchPool::keep(const Block& block) noexcept {
    try {
        std::lock_guard<std::mutex> lock(mutex_);
        free_.push_back(block);
    } catch (...) {
        destroy(block);
    }
}

void ScratchPool::destroy(const Block& block) noexcept {
    memory_->release(block.memory);
    memory_->release_event(block.use.event);
    std::lock_guard<std::mutex> lock(mutex_);
    held_bytes_ -= block.bytes;
}

void ScratchPool::shrink() noexcept {
    std::vector<Block> all;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        all.swap(free_);
    }
    for (const Block& b : all) {
        destroy(b);
    }
}

void ScratchPool::enter() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++users_;
}

void ScratchPool::leave() noexcept {
    bool is_last = false;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        is_last = --users_ == 0;
    }
    if (is_last) {
        shrink();
    }
}

size_t ScratchPool::held_bytes() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return held_bytes_;
}

} // namespace ingot::ort
