// SPDX-License-Identifier: Apache-2.0
// WeightCheck: the hashes of an engine's weights, compared beside what else is done with them.
#pragma once

#include "engine/container.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace ingot {

/// Hashes the chunks of a container's weights on threads of its own, from the start on, and on
/// those of whoever waits. Thread safe.
class WeightCheck {
public:
    /// The bytes of `c` have to live as long as this object, and its owner keeps them. `path` is
    /// said in errors; "" when there is none.
    WeightCheck(Container c, std::string path);
    /// Stops what is still going on.
    ~WeightCheck();
    WeightCheck(const WeightCheck&) = delete;
    WeightCheck& operator=(const WeightCheck&) = delete;
    /// Returns when every chunk has been compared; quick when that was so before. Errors:
    /// InvalidEngine for the first chunk that differs, with its bytes and what to do, at each call.
    void wait();

private:
    bool hash_one();

    Container container_;
    std::string path_;
    uint64_t chunks_;
    std::atomic<uint64_t> next_{0}; // chunk that nobody works on yet
    std::atomic<bool> passed_{false};
    std::mutex mutex_;
    std::condition_variable all_done_;
    uint64_t done_ = 0;
    uint64_t first_bad_;
    std::vector<std::thread> threads_;
};

} // namespace ingot
