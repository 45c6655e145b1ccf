// SPDX-License-Identifier: Apache-2.0
#include "engine/weight_check.h"

#include "base/error.h"
#include "base/fork.h"
#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "base/trace.h"

#include <algorithm>
#include <chrono>
#include <exception>

namespace ingot {

namespace {

// From about this many threads on, hashing is bound by memory; the other CPUs lower and compile.
constexpr uint64_t most_threads = 4;
constexpr uint64_t least_for_threads = 1 << 20;
/// How often a wait looks for a stop request.
constexpr std::chrono::milliseconds glance{100};

} // namespace

WeightCheck::WeightCheck(Container c, std::string path, bool coming)
    : container_(std::move(c)), path_(std::move(path)), chunks_(container_.weight_chunks()),
      passed_(chunks_ == 0), came_(coming ? 0 : UINT64_MAX), first_bad_(chunks_),
      process_(process_number()) {
    uint64_t cpus = std::max(1U, std::thread::hardware_concurrency());
    uint64_t bytes = chunks_ == 0 ? 0 : container_.find(SectionKind::Weights)->bytes;
    uint64_t threads = bytes < least_for_threads ? 0 : std::min({most_threads, chunks_, cpus - 1});
    try {
        threads_.reserve(threads);
        for (uint64_t i = 0; i < threads; ++i) {
            threads_.emplace_back([this] {
                TraceSpan span("check weights");
                while (hash_one()) {
                }
            });
        }
    } catch (const std::exception&) {
        // No threads or no memory: the waiting thread does the work.
    }
}

WeightCheck::~WeightCheck() {
    next_ = chunks_;
    if (process_ != process_number()) { // nothing to join: the threads are the parent's
        static_cast<void>(
            std::make_unique<std::vector<std::thread>>(std::move(threads_)).release());
        return; // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): kept on purpose
    }
    came(UINT64_MAX);
    for (std::thread& t : threads_) {
        t.join();
    }
}

bool WeightCheck::hash_one() {
    uint64_t chunk = next_.fetch_add(1);
    if (chunk >= chunks_) {
        return false;
    }
    await_chunk(chunk);
    bool same = container_.weight_chunk_is_whole(chunk);
    std::scoped_lock lock(mutex_);
    first_bad_ = same ? first_bad_ : std::min(first_bad_, chunk);
    if (++done_ == chunks_) {
        passed_ = first_bad_ == chunks_;
        all_done_.notify_all();
    }
    return true;
}

void WeightCheck::came(uint64_t bytes) {
    std::scoped_lock lock(mutex_);
    came_ = bytes;
    more_came_.notify_all();
}

void WeightCheck::await_chunk(uint64_t chunk) {
    uint64_t all = container_.find(SectionKind::Weights)->bytes;
    uint64_t end = std::min((chunk + 1) * weight_chunk_bytes, all);
    if (came_ < end) {
        std::unique_lock lock(mutex_);
        more_came_.wait(lock, [&] { return came_ >= end; });
    }
}

// The parent's threads may have been in the middle of it, one with the lock.
void WeightCheck::hash_in_child() {
    std::scoped_lock lock(fork_mutex());
    first_bad_ = chunks_;
    for (uint64_t i = 0; i < chunks_ && first_bad_ == chunks_; ++i) {
        first_bad_ = container_.weight_chunk_is_whole(i) ? chunks_ : i;
    }
    passed_ = first_bad_ == chunks_;
}

void WeightCheck::throw_if_damaged() {
    if (first_bad_ < chunks_) {
        with_place([this] { return path_.empty() ? "the engine" : path_; },
                   [this] { container_.fail_weight_chunk(first_bad_); });
    }
}

void WeightCheck::wait() {
    if (passed_) {
        return;
    }
    if (process_ != process_number()) {
        hash_in_child();
        throw_if_damaged();
        return;
    }
    TraceSpan span("check weights");
    if (next_ < chunks_) {
        // Shares the remaining work; a chunk takes long enough to be one piece.
        ThreadPool::shared().parallel_for(static_cast<int64_t>(chunks_), 1,
                                          [this](int64_t begin, int64_t end) {
                                              for (int64_t i = begin; i < end; ++i) {
                                                  if (is_interrupted() || !hash_one()) {
                                                      return;
                                                  }
                                              }
                                          });
    }
    std::unique_lock lock(mutex_);
    while (!all_done_.wait_for(lock, glance, [this] { return done_ == chunks_; })) {
        check_interrupt();
    }
    throw_if_damaged();
}

} // namespace ingot
