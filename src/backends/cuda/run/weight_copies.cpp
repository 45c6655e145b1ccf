// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/weight_copies.h"

#include <algorithm>

namespace ingot::cuda {

namespace {

/// A thread takes this much at a time: half of a stream's page-locked memory.
constexpr size_t piece_bytes = 4 << 20;
/// Inputs and outputs of a run wait for what is queued before them, so that this much is while
/// others run: some 40 us of the bus.
constexpr size_t small_bytes = 1 << 20;

} // namespace

WeightCopies::WeightCopies(Gpu& gpu, std::vector<Copy> copies, bool lent,
                           std::function<void(bool all)> ended)
    : traffic_(RunTraffic::of(gpu)), copies_(std::move(copies)) {
    size_t bytes = 0;
    for (const Copy& c : copies_) {
        size_t all = c.constant.size();
        size_t piece = c.constant.part_bytes(piece_bytes);
        bytes += all;
        for (size_t at = 0; at < all; at += piece) {
            pieces_.push_back({&c, at, std::min(piece, all - at)});
        }
    }
    // A lazy constant is made by the thread with one of its pieces, for which the others would
    // wait.
    std::stable_partition(pieces_.begin(), pieces_.end(), [](const Piece& p) { return p.at == 0; });
    threads_.emplace(gpu, PieceThreads::Job{"upload", pieces_.size(), bytes, 0, lent,
                                            [this](size_t i, PieceThreads::Hand& hand) {
                                                copy(pieces_[i], hand.stream);
                                            },
                                            std::move(ended)});
}

void WeightCopies::copy(const Piece& p, Stream& stream) {
    const size_t small = p.copy->constant.part_bytes(small_bytes);
    for (size_t at = p.at, end = p.at + p.bytes; at < end;) {
        if (!traffic_.is_busy()) {
            write({p.copy, at, end - at}, stream);
            return;
        }
        Piece part = {p.copy, at, std::min(small, end - at)};
        std::scoped_lock turn(traffic_.turn());
        write(part, stream);
        stream.synchronize();
        at += part.bytes;
    }
}

void WeightCopies::write(const Piece& p, Stream& stream) {
    const plan::StoredConstant& constant = p.copy->constant;
    if (const std::byte* bytes = constant.in_place(PieceThreads::serial())) {
        stream.write(p.copy->to + p.at, bytes + p.at, p.bytes);
    } else {
        stream.write_filled(p.copy->to + p.at, p.bytes,
                            [&](size_t within, std::span<std::byte> part) {
                                constant.read(p.at + within, part, PieceThreads::serial());
                            });
    }
}

} // namespace ingot::cuda
