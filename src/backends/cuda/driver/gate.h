// SPDX-License-Identifier: Apache-2.0
// Gate: holds a stream back until the host lets it go on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace ingot::cuda {

/// Blocks a stream until the host opens it.
class Gate {
public:
    void close() {
        std::scoped_lock lock(mutex_);
        open_ = false;
    }
    void open() {
        std::scoped_lock lock(mutex_);
        open_ = true;
        opened_.notify_all();
    }
    /// Gives up after a while: a full queue would block the host, which then never opens the gate.
    void pass() {
        std::unique_lock lock(mutex_);
        opened_.wait_for(lock, std::chrono::seconds(2), [this] { return open_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = true;
};

} // namespace ingot::cuda
