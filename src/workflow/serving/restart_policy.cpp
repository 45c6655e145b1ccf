// SPDX-License-Identifier: Apache-2.0
#include "workflow/serving/restart_policy.h"

#include <algorithm>

namespace ingot::serving {

void RestartPolicy::note_health(Time now) {
    if (!healthy_since_) {
        healthy_since_ = now;
    }
    if (now - *healthy_since_ >= rules_.healthy_after) {
        delay_ = rules_.first_delay;
    }
}

std::optional<std::chrono::milliseconds> RestartPolicy::note_death(Time now) {
    healthy_since_.reset();
    deaths_++;
    recent_.push_back(now);
    while (now - recent_.front() > rules_.window) {
        recent_.pop_front();
    }
    if (recent_.size() >= static_cast<size_t>(rules_.deaths)) {
        return std::nullopt;
    }
    std::chrono::milliseconds delay = delay_;
    delay_ = std::min(2 * delay_, rules_.longest_delay);
    return delay;
}

} // namespace ingot::serving
