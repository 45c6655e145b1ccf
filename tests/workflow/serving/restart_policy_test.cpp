// SPDX-License-Identifier: Apache-2.0
#include "workflow/serving/restart_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace ingot::serving {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// Delays in milliseconds of a server that dies `life` after each start; -1 when it is given up.
std::vector<int64_t> delays(RestartPolicy& policy, RestartPolicy::Time& now, int deaths,
                            milliseconds life, bool healthy) {
    std::vector<int64_t> out;
    for (int i = 0; i < deaths; ++i) {
        if (healthy) {
            policy.note_health(now);
            policy.note_health(now + life);
        }
        now += life;
        std::optional<milliseconds> delay = policy.note_death(now);
        out.push_back(delay ? delay->count() : -1);
        now += delay.value_or(milliseconds(0));
    }
    return out;
}

TEST(RestartPolicy, delays_double_up_to_half_a_minute_and_the_tenth_death_is_the_last) {
    RestartPolicy policy{RestartRules()};
    RestartPolicy::Time now{};
    EXPECT_EQ(delays(policy, now, 10, milliseconds(50), false),
              (std::vector<int64_t>{100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, -1}));
    EXPECT_EQ(policy.deaths(), 10);
}

TEST(RestartPolicy, deaths_that_are_five_minutes_old_do_not_count) {
    RestartPolicy policy{RestartRules()};
    RestartPolicy::Time now{};
    // One death in 31 seconds and more: never ten in five minutes, and never healthy.
    std::vector<int64_t> got = delays(policy, now, 40, seconds(5), false);
    EXPECT_EQ(got[8], 25600);
    EXPECT_EQ(got[9], -1); // the first nine delays are short
    RestartPolicy slow{RestartRules()};
    got = delays(slow, now, 40, seconds(31), false);
    EXPECT_EQ(got[9], 30000);
    EXPECT_EQ(got[39], 30000);
}

TEST(RestartPolicy, a_minute_of_health_resets_the_delay_and_less_does_not) {
    RestartPolicy policy{RestartRules()};
    RestartPolicy::Time now{};
    EXPECT_EQ(delays(policy, now, 3, seconds(59), true), (std::vector<int64_t>{100, 200, 400}));
    EXPECT_EQ(delays(policy, now, 2, minutes(1), true), (std::vector<int64_t>{100, 100}));
    EXPECT_EQ(delays(policy, now, 2, minutes(2), false), (std::vector<int64_t>{200, 400}));
}

} // namespace
} // namespace ingot::serving
