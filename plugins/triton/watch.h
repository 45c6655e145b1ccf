// SPDX-License-Identifier: Apache-2.0
// Watch: ends the process when its device is lost, or when a run does not end. Nothing in the
// process can bring the device back, and the server would go on saying that it is well.
#pragma once

#include "plugins/triton/host.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

namespace ingot::triton {

inline constexpr int exit_device_lost = 86;
inline constexpr int exit_hang = 87;

/// One for the backend. Safe from any thread.
class Watch {
public:
    Watch() = default;
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    /// Time for the answers under way to leave the process, from lose() to its end.
    static constexpr std::chrono::milliseconds default_exit_delay{200};
    void set_exit_delay(std::chrono::milliseconds delay) { exit_delay_ = delay; }

    /// The first call says why; after the exit delay the process ends.
    void lose(const std::string& cause, int exit_code) noexcept;
    /// Why nothing runs any more; "" while all is well.
    std::string cause() const;
    bool lost() const { return lost_.load(std::memory_order_acquire); }
    /// Sleeps until the process ends; after lose().
    [[noreturn]] static void wait_for_the_end();

    /// Answers the requests of a run that does not end; gets the reason.
    using GiveUp = std::function<void(const std::string&)>;

    /// A run that is to end within `limit`; none for zero. Once it has passed, `give_up` is called
    /// on another thread while this run exists, and the process ends.
    class Run {
    public:
        Run(Watch& watch, std::string subject, std::chrono::milliseconds limit, GiveUp give_up);
        ~Run();
        Run(const Run&) = delete;
        Run& operator=(const Run&) = delete;

    private:
        friend class Watch;
        Watch& watch_;
        std::string subject_;
        std::chrono::milliseconds limit_;
        GiveUp give_up_;
        std::chrono::steady_clock::time_point end_;
        std::list<Run*>::iterator at_;
    };

private:
    void lose_locked(const std::string& cause, int exit_code) noexcept;
    void watch_runs();

    std::atomic<bool> lost_{false};
    std::atomic<std::chrono::milliseconds> exit_delay_{default_exit_delay};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::string cause_;
    std::list<Run*> runs_;
    /// When the thread looks at the runs again at the latest.
    std::chrono::steady_clock::time_point next_look_ = std::chrono::steady_clock::time_point::max();
    bool stopping_ = false;
    std::thread thread_; // since the first run with a limit
    std::thread ending_; // never returns
};

} // namespace ingot::triton
