// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/weight_copies.h"

#include "backends/cuda/driver/exit_gate.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "base/trace.h"

#include <algorithm>
#include <chrono>

namespace ingot::cuda {

namespace {

/// A thread takes this much at a time: half of a stream's page-locked memory.
constexpr size_t piece_bytes = 4 << 20;
/// A thread pays from about this many bytes on: it begins by locking pages.
constexpr size_t least_for_thread = 16 << 20;
constexpr size_t most_threads = 8;
/// How often a wait looks for a stop request.
constexpr std::chrono::milliseconds glance{100};

/// The threads here are those that share the work.
ThreadPool& serial() {
    static ThreadPool one(1);
    return one;
}

} // namespace

WeightCopies::WeightCopies(Gpu& gpu, std::vector<Copy> copies, bool lent)
    : gpu_(gpu), lent_(lent), copies_(std::move(copies)) {
    size_t bytes = 0;
    for (const Copy& c : copies_) {
        size_t all = c.constant.size();
        size_t piece = c.constant.part_bytes(piece_bytes);
        bytes += all;
        for (size_t at = 0; at < all; at += piece) {
            pieces_.push_back({&c, at, std::min(piece, all - at)});
        }
    }
    size_t cpus = std::max(1U, std::thread::hardware_concurrency());
    size_t threads = std::min({bytes / least_for_thread, most_threads, cpus});
    try {
        threads_.reserve(threads);
        while (threads_.size() < threads) {
            std::scoped_lock lock(mutex_);
            threads_.emplace_back([this] { work(); });
            working_++;
        }
    } catch (const std::exception&) {
        // The system gives no more threads: fewer do it.
    }
    if (threads_.empty()) {
        copy_pieces();
    }
}

WeightCopies::~WeightCopies() {
    next_ = pieces_.size();
    for (std::thread& t : threads_) {
        t.join();
    }
}

void WeightCopies::work() noexcept {
    std::exception_ptr problem;
    try {
        copy_pieces();
    } catch (...) {
        problem = std::current_exception();
        next_ = pieces_.size(); // the others stop too
    }
    std::scoped_lock lock(mutex_);
    problem_ = problem_ == nullptr ? problem : problem_;
    if (--working_ == 0) {
        done_.notify_all();
    }
}

void WeightCopies::copy_pieces() {
    ExitGate inside;
    require(static_cast<bool>(inside), ErrorCode::Interrupted,
            "weights are not copied any more: the process is ending");
    TraceSpan span("upload", str(pieces_.size(), " pieces, shared"));
    std::unique_ptr<Stream> stream;
    for (size_t i = next_++; i < pieces_.size(); i = next_++) {
        if (stream == nullptr) {
            stream = gpu_.create_stream();
            if (StreamOrder* order = stream->parts().order; order != nullptr && lent_) {
                order->wait_for(nullptr);
            }
        }
        const Piece& p = pieces_[i];
        const plan::StoredConstant& constant = p.copy->constant;
        if (constant.is_gathered()) { // bytes as they are need no memory between
            stream->write_filled(p.copy->to + p.at, p.bytes,
                                 [&](size_t within, std::span<std::byte> part) {
                                     constant.read(p.at + within, part, serial());
                                 });
        } else {
            stream->write(p.copy->to + p.at, constant.source().bytes().data() + p.at, p.bytes);
        }
    }
    if (stream != nullptr) {
        stream->synchronize(); // other streams may use them from now on
    }
}

bool WeightCopies::failed() const {
    std::scoped_lock lock(mutex_);
    return problem_ != nullptr;
}

void WeightCopies::wait() {
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, glance, [this] { return working_ == 0; })) {
        check_interrupt();
    }
    if (problem_ != nullptr) {
        std::rethrow_exception(problem_);
    }
}

} // namespace ingot::cuda
