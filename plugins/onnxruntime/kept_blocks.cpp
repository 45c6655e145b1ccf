// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/kept_blocks.h"

#include <algorithm>

namespace ingot::ort {

size_t block_size(size_t bytes) {
    size_t step = 512;
    while (step * 8 < bytes) {
        step *= 2;
    }
    return (bytes + step - 1) / step * step;
}

KeptBlocks::Freed KeptBlocks::take_kept(size_t size, bool& waits, uint64_t& given) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = kept_.find(size);
    if (it == kept_.end()) {
        return {};
    }
    Freed out = it->second;
    kept_.erase(it);
    kept_bytes_ -= size;
    waits = out.number > waited_;
    given = given_;
    return out;
}

void* KeptBlocks::take(size_t bytes) {
    if (bytes > most_block) {
        return memory_->allocate(bytes);
    }
    size_t size = block_size(bytes);
    bool waits = false;
    uint64_t given = 0;
    void* memory = take_kept(size, waits, given).memory;
    if (memory == nullptr) {
        memory = memory_->allocate(size);
    }
    try {
        if (waits) {
            memory_->wait();
        }
        std::lock_guard<std::mutex> lock(mutex_);
        waited_ = waits ? std::max(waited_, given) : waited_;
        used_.emplace(memory, size);
    } catch (...) {
        memory_->release(memory);
        throw;
    }
    return memory;
}

bool KeptBlocks::give(void* memory) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = used_.find(memory);
    if (it == used_.end()) {
        return false;
    }
    size_t size = it->second;
    used_.erase(it);
    if (kept_bytes_ + size > most_bytes) {
        return false;
    }
    kept_.emplace(size, Freed{memory, ++given_});
    kept_bytes_ += size;
    return true;
}

void KeptBlocks::release() noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [size, freed] : kept_) {
        memory_->release(freed.memory);
    }
    kept_.clear();
    kept_bytes_ = 0;
}

} // namespace ingot::ort
