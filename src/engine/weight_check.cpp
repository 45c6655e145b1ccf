// SPDX-License-Identifier: Apache-2.0
#include "engine/weight_check.h"

#include "base/error.h"
#include "base/thread_pool.h"

#include <algorithm>
#include <exception>

namespace ingot {

namespace {

// From about this many threads on, hashing is bound by memory; the other CPUs lower and compile.
constexpr uint64_t most_threads = 4;
constexpr uint64_t least_for_threads = 1 << 20;

} // namespace

WeightCheck::WeightCheck(Container c, std::string path)
    : container_(std::move(c)), path_(std::move(path)), chunks_(container_.weight_chunks()),
      passed_(chunks_ == 0), first_bad_(chunks_) {
    uint64_t cpus = std::max(1U, std::thread::hardware_concurrency());
    uint64_t bytes = chunks_ == 0 ? 0 : container_.find(SectionKind::Weights)->bytes;
    uint64_t threads = bytes < least_for_threads ? 0 : std::min({most_threads, chunks_, cpus - 1});
    try {
        threads_.reserve(threads);
        for (uint64_t i = 0; i < threads; ++i) {
            threads_.emplace_back([this] {
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
    for (std::thread& t : threads_) {
        t.join();
    }
}

bool WeightCheck::hash_one() {
    uint64_t chunk = next_.fetch_add(1);
    if (chunk >= chunks_) {
        return false;
    }
    bool same = container_.weight_chunk_is_whole(chunk);
    std::scoped_lock lock(mutex_);
    first_bad_ = same ? first_bad_ : std::min(first_bad_, chunk);
    if (++done_ == chunks_) {
        passed_ = first_bad_ == chunks_;
        all_done_.notify_all();
    }
    return true;
}

void WeightCheck::wait() {
    if (passed_) {
        return;
    }
    if (next_ < chunks_) {
        // Shares the remaining work; a chunk takes long enough to be one piece.
        ThreadPool::shared().parallel_for(static_cast<int64_t>(chunks_), 1,
                                          [this](int64_t begin, int64_t end) {
                                              for (int64_t i = begin; i < end && hash_one(); ++i) {
                                              }
                                          });
    }
    std::unique_lock lock(mutex_);
    all_done_.wait(lock, [this] { return done_ == chunks_; });
    if (first_bad_ < chunks_) {
        with_place([this] { return path_.empty() ? "the engine" : path_; },
                   [this] { container_.fail_weight_chunk(first_bad_); });
    }
}

} // namespace ingot
