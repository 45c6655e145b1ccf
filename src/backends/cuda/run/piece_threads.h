// SPDX-License-Identifier: Apache-2.0
// PieceThreads: threads that share pieces of work, each with a stream of its own.
#pragma once

#include "backends/cuda/driver/gpu.h"
#include "base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ingot::cuda {

/// Thread safe.
class PieceThreads {
public:
    /// Tools of one of the threads.
    struct Hand {
        Stream& stream;
        const std::atomic<bool>& stopping; // a piece that waits for others gives up
        std::vector<std::byte> memory = {};
    };
    struct Job {
        const char* what = ""; // for traces
        size_t pieces = 0;
        size_t bytes = 0;         // of all pieces together: they decide how many threads begin
        size_t least_threads = 0; // 0: the constructor does few bytes itself
        bool lent = false;        // the memory may be in use by work on the default stream
        std::function<void(size_t piece, Hand& hand)> work;
        /// Called once by the last thread: whether all pieces were done.
        std::function<void(bool all)> ended;
    };
    /// Errors: those of the work, where no thread began.
    PieceThreads(Gpu& gpu, Job job);
    /// Leaves out what has not begun.
    ~PieceThreads();
    PieceThreads(const PieceThreads&) = delete;
    PieceThreads& operator=(const PieceThreads&) = delete;
    /// Waits for the end of all threads. Errors: those of the work; Interrupted, while the threads
    /// go on.
    void wait();
    bool failed() const;
    /// For loops of a piece: the threads here are those that share the work.
    static ThreadPool& serial();

private:
    void work() noexcept;
    void do_pieces();

    Gpu& gpu_;
    Job job_;
    std::atomic<bool> stopping_{false};
    std::atomic<size_t> next_{0};
    mutable std::mutex mutex_;
    std::condition_variable done_;
    size_t working_ = 0; // threads
    std::exception_ptr problem_;
    std::vector<std::thread> threads_;
};

} // namespace ingot::cuda
