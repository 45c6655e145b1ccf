// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/weight_comparison.h"

#include <algorithm>
#include <cstring>

namespace ingot::cuda {

WeightComparison::WeightComparison(Gpu& gpu, std::vector<Pair> pairs,
                                   std::vector<const WeightSlab*> tried)
    : pairs_(std::move(pairs)), tried_(std::move(tried)) {
    size_t bytes = 0;
    for (size_t i = 0; i < pairs_.size(); ++i) {
        differs_.emplace_back(false);
        for (const Placed& placed : pairs_[i].constants) {
            size_t all = placed.constant.size();
            size_t piece = placed.constant.part_bytes(Stream::visited_bytes);
            for (size_t at = 0; at < all; at += piece) {
                add(i, {&placed, at, std::min(piece, all - at)});
            }
            bytes += all;
        }
    }
    // A slab may be another's that is still being filled: one thread at least waits for that.
    threads_.emplace(gpu, PieceThreads::Job{"compare weights", groups_.size(), bytes, 1, false,
                                            [this](size_t i, PieceThreads::Hand& hand) {
                                                compare(groups_[i], hand);
                                            },
                                            [](bool) {}});
}

void WeightComparison::add(size_t pair, const Piece& piece) {
    size_t end = piece.placed->at + piece.at + piece.bytes;
    auto begin = [](const Piece& p) { return p.placed->at + p.at; };
    if (groups_.empty() || groups_.back().pair != pair ||
        end - begin(groups_.back().pieces.front()) > Stream::visited_bytes) {
        groups_.push_back({pair, {}});
    }
    groups_.back().pieces.push_back(piece);
}

void WeightComparison::compare(const Group& group, PieceThreads::Hand& hand) {
    std::atomic<bool>& differs = differs_[group.pair];
    const WeightSlab& slab = *pairs_[group.pair].slab;
    if (differs || !slab.wait_whole(hand.stopping)) {
        differs = true;
        return;
    }
    const Piece& last = group.pieces.back();
    size_t begin = group.pieces.front().placed->at + group.pieces.front().at;
    size_t end = last.placed->at + last.at + last.bytes;
    hand.stream.visit(slab.data() + begin, end - begin,
                      [&](size_t, std::span<const std::byte> found) {
                          for (const Piece& p : group.pieces) {
                              size_t at = p.placed->at + p.at - begin;
                              differs = differs || !equals(p, found.data() + at, hand.memory);
                          }
                      });
}

bool WeightComparison::equals(const Piece& p, const std::byte* found,
                              std::vector<std::byte>& memory) {
    const plan::StoredConstant& constant = p.placed->constant;
    const std::byte* bytes = constant.in_place(PieceThreads::serial());
    if (bytes == nullptr) {
        memory.resize(std::max(memory.size(), p.bytes));
        constant.read(p.at, std::span(memory).first(p.bytes), PieceThreads::serial());
    }
    return std::memcmp(found, bytes == nullptr ? memory.data() : bytes + p.at, p.bytes) == 0;
}

} // namespace ingot::cuda
