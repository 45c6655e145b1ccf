// SPDX-License-Identifier: Apache-2.0
// WeightCheck: compares the hashes of an engine's weights in the background.
#pragma once

#include "engine/container.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace ingot {

/// Hashes the chunks of a container's weights on its own threads from construction on, and on
/// threads that wait. Thread safe.
class WeightCheck {
public:
    /// The bytes of `c` must outlive this object; their owner keeps them. `path` appears in errors;
    /// "" when there is none. With `coming`, weights are hashed as came() reports them.
    WeightCheck(Container c, std::string path, bool coming = false);
    /// Stops the remaining work.
    ~WeightCheck();
    WeightCheck(const WeightCheck&) = delete;
    WeightCheck& operator=(const WeightCheck&) = delete;
    /// The first `bytes` of the weights lie in the container's memory by now.
    void came(uint64_t bytes);
    /// Call after all weights have come. Returns after every chunk has been compared; fast
    /// afterwards. Errors: InvalidEngine for the first chunk that differs, with its bytes and the
    /// remedy, at each call.
    void wait();

private:
    bool hash_one();
    void await_chunk(uint64_t chunk);
    void hash_in_child();
    void throw_if_damaged();

    Container container_;
    std::string path_;
    uint64_t chunks_;
    std::atomic<uint64_t> next_{0}; // the next unclaimed chunk
    std::atomic<bool> passed_{false};
    std::mutex mutex_;
    std::condition_variable all_done_;
    std::condition_variable more_came_;
    std::atomic<uint64_t> came_;
    uint64_t done_ = 0;
    uint64_t first_bad_;
    uint64_t process_; // whose threads these are
    std::vector<std::thread> threads_;
};

} // namespace ingot
