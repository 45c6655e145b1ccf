// SPDX-License-Identifier: Apache-2.0
// KeptBlocks: memory that was given back, kept for the next who asks, where allocating and freeing
// is dear.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <optional>

namespace ingot {

/// At most so many bytes; the block that was given back longest ago makes way. Not thread safe. It
/// frees nothing: its owner does.
class KeptBlocks {
public:
    struct Block {
        void* memory;
        size_t bytes;
    };
    explicit KeptBlocks(size_t most) : most_(most) {}
    /// The smallest block of `least` to `largest` bytes, and of several the last one given back. It
    /// is no longer kept. Null memory: there is none.
    Block take(size_t least, size_t largest) noexcept {
        auto found = blocks_.end();
        for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
            bool fits = it->bytes >= least && it->bytes <= largest;
            if (fits && (found == blocks_.end() || it->bytes < found->bytes)) {
                found = it;
            }
        }
        return found == blocks_.end() ? Block{nullptr, 0} : remove(found);
    }
    /// Keeps a block: then it is the first of all. False for one larger than all may be together,
    /// and without memory for the list: it is the caller's to free.
    bool keep(Block block) noexcept {
        if (block.bytes > most_) {
            return false;
        }
        try {
            blocks_.push_front(block);
        } catch (...) {
            return false;
        }
        bytes_ += block.bytes;
        return true;
    }
    /// A block that is too much, which is no longer kept; to be asked until there is none.
    std::optional<Block> evict() noexcept {
        if (bytes_ <= most_) {
            return std::nullopt;
        }
        return remove(std::prev(blocks_.end()));
    }
    /// Any block, which is no longer kept; until there is none.
    std::optional<Block> take_any() noexcept {
        if (blocks_.empty()) {
            return std::nullopt;
        }
        return remove(blocks_.begin());
    }
    /// The sum over all blocks.
    size_t bytes() const { return bytes_; }

private:
    Block remove(std::list<Block>::iterator at) noexcept {
        Block block = *at;
        bytes_ -= block.bytes;
        blocks_.erase(at);
        return block;
    }

    size_t most_;
    size_t bytes_ = 0;
    std::list<Block> blocks_; // the last given back first
};

} // namespace ingot
