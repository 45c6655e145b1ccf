// SPDX-License-Identifier: Apache-2.0
#include "base/cpus.h"
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <mutex>
#include <thread>

namespace ingot {
namespace {

/// Keeps the calling thread to one CPU.
void confine_to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(cpu), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

TEST(Cpus, AConfinedThreadIsToldFromTheProcess) {
    std::vector<int> all = usable_cpus();
    ASSERT_FALSE(all.empty());
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    EXPECT_FALSE(is_confined());
    std::thread([&] {
        confine_to(all.back());
        EXPECT_EQ(usable_cpus(), std::vector<int>{all.back()});
        EXPECT_EQ(is_confined(), all.size() > 1);
    }).join();
    EXPECT_EQ(usable_cpus(), all);
}

TEST(Cpus, AConfinedThreadsPoolIsConfinedToo) {
    int last = usable_cpus().back();
    std::mutex mutex;
    std::vector<std::vector<int>> seen;
    std::thread([&] {
        confine_to(last);
        ThreadPool one;
        EXPECT_EQ(one.size(), 1);
        ThreadPool three(3);
        three.run_team(3, [&](int) {
            std::lock_guard<std::mutex> lock(mutex);
            seen.push_back(usable_cpus());
        });
    }).join();
    EXPECT_EQ(seen, std::vector<std::vector<int>>(3, std::vector<int>{last}));
}

} // namespace
} // namespace ingot
