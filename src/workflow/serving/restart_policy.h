// SPDX-License-Identifier: Apache-2.0
// When a server that has died is started again, and when it is given up.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

namespace ingot::serving {

struct RestartRules {
    std::chrono::milliseconds first_delay{100};
    std::chrono::milliseconds longest_delay{30'000};
    std::chrono::milliseconds healthy_after{60'000}; // of health: the delay is the first again
    int deaths = 10;                                 // within the window: it is given up
    std::chrono::milliseconds window{300'000};
};

/// One server's history. Times never go back.
class RestartPolicy {
public:
    using Time = std::chrono::steady_clock::time_point;

    explicit RestartPolicy(const RestartRules& rules) : rules_(rules), delay_(rules.first_delay) {}
    /// It has answered that it is alive.
    void note_health(Time now);
    /// It has ended. Returns how long to wait before its next start; nothing when it is given up.
    std::optional<std::chrono::milliseconds> note_death(Time now);
    /// Deaths since the beginning.
    int64_t deaths() const { return deaths_; }

private:
    RestartRules rules_;
    std::chrono::milliseconds delay_;
    std::optional<Time> healthy_since_;
    std::deque<Time> recent_;
    int64_t deaths_ = 0;
};

} // namespace ingot::serving
