// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/piece_threads.h"

#include "backends/cuda/driver/exit_gate.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "base/trace.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace ingot::cuda {

namespace {

/// A thread pays from about this many bytes on: it begins by locking pages.
constexpr size_t least_for_thread = 16 << 20;
constexpr size_t most_threads = 8;
/// How often a wait looks for a stop request.
constexpr std::chrono::milliseconds glance{100};

} // namespace

ThreadPool& PieceThreads::serial() {
    static ThreadPool one(1);
    return one;
}

PieceThreads::PieceThreads(Gpu& gpu, Job job) : gpu_(gpu), job_(std::move(job)) {
    size_t cpus = std::max(1U, std::thread::hardware_concurrency());
    size_t threads = std::min({job_.bytes / least_for_thread, most_threads, cpus});
    threads = std::max(threads, std::min(job_.least_threads, job_.pieces));
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
        try {
            do_pieces();
        } catch (...) {
            job_.ended(false);
            throw;
        }
        job_.ended(true);
    }
}

PieceThreads::~PieceThreads() {
    stopping_ = true;
    for (std::thread& t : threads_) {
        t.join();
    }
}

void PieceThreads::work() noexcept {
    std::exception_ptr problem;
    try {
        do_pieces();
    } catch (...) {
        problem = std::current_exception();
        next_ = job_.pieces; // the others stop too
    }
    std::scoped_lock lock(mutex_);
    problem_ = problem_ == nullptr ? problem : problem_;
    if (--working_ == 0) {
        job_.ended(problem_ == nullptr && !stopping_);
        done_.notify_all();
    }
}

void PieceThreads::do_pieces() {
    ExitGate inside;
    require(static_cast<bool>(inside), ErrorCode::Interrupted,
            "weights are not copied any more: the process is ending");
    TraceSpan span(job_.what, str(job_.pieces, " pieces, shared"));
    std::unique_ptr<Stream> stream;
    std::optional<Hand> hand;
    for (size_t i = next_++; i < job_.pieces && !stopping_; i = next_++) {
        if (stream == nullptr) {
            stream = gpu_.create_stream();
            if (StreamOrder* order = stream->parts().order; order != nullptr && job_.lent) {
                order->wait_for(nullptr);
            }
            hand.emplace(Hand{*stream, stopping_});
        }
        job_.work(i, *hand);
    }
    if (stream != nullptr) {
        stream->synchronize(); // other streams may use what was copied from now on
    }
}

bool PieceThreads::failed() const {
    std::scoped_lock lock(mutex_);
    return problem_ != nullptr;
}

void PieceThreads::wait() {
    std::unique_lock lock(mutex_);
    while (!done_.wait_for(lock, glance, [this] { return working_ == 0; })) {
        check_interrupt();
    }
    if (problem_ != nullptr) {
        std::rethrow_exception(problem_);
    }
}

} // namespace ingot::cuda
