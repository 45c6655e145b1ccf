// SPDX-License-Identifier: Apache-2.0
#include "base/allocation_count.h"
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {
// 0: those that there are.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<int> pretended_cpus{0};
} // namespace

// In place of the C library's, for the whole program.
extern "C" int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* set) noexcept {
    std::memset(set, 0, bytes);
    for (int cpu = 0; cpu < pretended_cpus; ++cpu) {
        CPU_SET_S(static_cast<size_t>(cpu), bytes, set);
    }
    return pretended_cpus > 0 || syscall(SYS_sched_getaffinity, thread, bytes, set) >= 0 ? 0 : -1;
}

namespace ingot {
namespace {

using Range = std::pair<int64_t, int64_t>;

std::vector<Range> ranges_of(ThreadPool& pool, int64_t n, int64_t grain) {
    std::mutex mutex;
    std::vector<Range> ranges;
    pool.parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        std::lock_guard lock(mutex);
        ranges.emplace_back(begin, end);
    });
    std::sort(ranges.begin(), ranges.end());
    return ranges;
}

TEST(thread_pool, ranges_cover_everything_once) {
    for (int threads : {1, 2, 3, 8}) {
        ThreadPool pool(threads);
        EXPECT_EQ(pool.size(), threads);
        for (int64_t n : {0, 1, 2, 7, 64, 1000, 12345}) {
            for (int64_t grain : {0, 1, 3, 100, 1000000}) {
                std::vector<Range> ranges = ranges_of(pool, n, grain);
                int64_t next = 0;
                for (const Range& r : ranges) {
                    ASSERT_EQ(r.first, next);
                    ASSERT_GT(r.second, r.first);
                    next = r.second;
                    if (next != n) {
                        ASSERT_GE(r.second - r.first, grain);
                    }
                }
                ASSERT_EQ(next, n) << threads << " threads, grain " << grain;
            }
        }
        EXPECT_TRUE(ranges_of(pool, -5, 1).empty());
    }
}

TEST(thread_pool, large_work_has_ranges_for_all_threads) {
    ThreadPool pool(4);
    EXPECT_GE(ranges_of(pool, 1000, 1).size(), 4U);
    EXPECT_EQ(ranges_of(pool, 1000, 1000).size(), 1U);
    EXPECT_EQ(ranges_of(pool, 1000, 500).size(), 2U);
}

TEST(thread_pool, ranges_depend_on_arguments_and_size_alone) {
    ThreadPool pool(3);
    ThreadPool other(3);
    std::vector<Range> expected = ranges_of(pool, 1001, 7);
    for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(ranges_of(pool, 1001, 7), expected);
        ASSERT_EQ(ranges_of(other, 1001, 7), expected);
    }
    std::vector<Range> nested; // the outer call has one piece for each index
    pool.parallel_for(2, 1, [&](int64_t begin, int64_t) {
        if (begin == 0) {
            nested = ranges_of(pool, 1001, 7);
        }
    });
    EXPECT_EQ(nested, expected);
}

TEST(thread_pool, every_call_sees_the_results_of_the_last) {
    // Many short jobs, back to back and after pauses in which the workers fall asleep.
    ThreadPool pool(4);
    std::vector<int64_t> values(64, 0);
    constexpr int rounds = 20000;
    for (int i = 0; i < rounds; ++i) {
        pool.parallel_for(64, 1, [&](int64_t begin, int64_t end) {
            for (int64_t j = begin; j < end; ++j) {
                ++values[static_cast<size_t>(j)];
            }
        });
        ASSERT_EQ(values[static_cast<size_t>(i % 64)], i + 1);
        if (i % 500 == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(300));
        }
    }
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), int64_t{64} * rounds);
}

TEST(thread_pool, unequal_pieces_all_finish) {
    ThreadPool pool(3);
    for (int i = 0; i < 20; ++i) {
        std::atomic<int64_t> sum{0};
        pool.parallel_for(12, 1, [&](int64_t begin, int64_t end) {
            for (int64_t j = begin; j < end; ++j) {
                std::this_thread::sleep_for(std::chrono::microseconds(j == i % 12 ? 1000 : 10));
                sum += j;
            }
        });
        ASSERT_EQ(sum.load(), 66);
    }
}

TEST(thread_pool, work_is_shared_between_threads) {
    ThreadPool pool(2);
    std::mutex mutex;
    std::set<std::thread::id> threads;
    pool.parallel_for(8, 1, [&](int64_t, int64_t) {
        {
            std::lock_guard lock(mutex);
            threads.insert(std::this_thread::get_id());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    EXPECT_EQ(threads.size(), 2U);
    EXPECT_TRUE(threads.contains(std::this_thread::get_id())) << "the caller works too";
}

TEST(thread_pool, nested_calls_run_on_their_own_thread) {
    ThreadPool pool(3);
    ThreadPool second(3);
    std::atomic<int64_t> sum{0};
    std::atomic<int> strangers{0};
    pool.parallel_for(9, 1, [&](int64_t begin, int64_t end) {
        std::thread::id me = std::this_thread::get_id();
        for (ThreadPool* inner : {&pool, &second}) {
            inner->parallel_for(100, 1, [&](int64_t b, int64_t e) {
                strangers += std::this_thread::get_id() == me ? 0 : 1;
                sum += (e - b) * (end - begin);
            });
        }
    });
    EXPECT_EQ(sum.load(), 9 * 100 * 2);
    EXPECT_EQ(strangers.load(), 0);
}

/// While it lives, the process seems to have so many CPUs.
class PretendedCpus {
public:
    explicit PretendedCpus(int count) { pretended_cpus = count; }
    ~PretendedCpus() { pretended_cpus = 0; }
    PretendedCpus(const PretendedCpus&) = delete;
    PretendedCpus& operator=(const PretendedCpus&) = delete;
};

/// Whether so many threads come here before a time that only a failure takes.
class Meeting {
public:
    explicit Meeting(int count) : count_(count) {}
    bool come() {
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        for (++came_; came_ < count_;) {
            if (std::chrono::steady_clock::now() > end) {
                return false;
            }
            std::this_thread::yield();
        }
        return true;
    }

private:
    int count_;
    std::atomic<int> came_{0};
};

TEST(thread_pool, callers_have_threads_of_their_own_while_there_are_cpus) {
    PretendedCpus cpus(9);
    ThreadPool pool(3);
    Meeting loops(9);
    Meeting teams(9);
    std::atomic<int> missed{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 3; ++c) {
        callers.emplace_back([&] {
            pool.run_team(3, [&](int) { missed += teams.come() ? 0 : 1; });
            pool.parallel_for(3, 1, [&](int64_t, int64_t) { missed += loops.come() ? 0 : 1; });
        });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    EXPECT_EQ(missed, 0);
}

TEST(thread_pool, callers_beyond_the_cpus_take_turns) {
    PretendedCpus cpus(5); // for two jobs of two threads; two more jobs may run
    ThreadPool pool(2);
    std::atomic<int> active{0};
    std::atomic<int> most{0};
    std::vector<int64_t> sums(12, 0);
    std::vector<std::thread> callers;
    for (int64_t& total : sums) {
        callers.emplace_back([&] {
            for (int i = 0; i < 300; ++i) {
                std::atomic<int64_t> sum{0};
                pool.parallel_for(40, 1, [&](int64_t begin, int64_t end) {
                    int now = ++active;
                    for (int before = most;
                         before < now && !most.compare_exchange_weak(before, now);) {
                    }
                    sum += end - begin;
                    --active;
                });
                total += sum;
            }
        });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    EXPECT_LE(most, 8);
    EXPECT_EQ(sums, (std::vector<int64_t>(12, 12000)));
}

TEST(thread_pool, two_callers_beyond_the_cpus_have_threads_too) {
    PretendedCpus cpus(2);
    ThreadPool pool(2);
    Meeting all(6); // three teams of two
    std::atomic<int> missed{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 3; ++c) {
        callers.emplace_back([&] { pool.run_team(2, [&](int) { missed += all.come() ? 0 : 1; }); });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    EXPECT_EQ(missed, 0);
}

TEST(thread_pool, ranges_are_the_same_beside_another_call) {
    PretendedCpus cpus(6);
    ThreadPool pool(3);
    std::vector<Range> alone = ranges_of(pool, 1000, 7);
    Meeting begun(2);
    Meeting ended(2);
    std::thread other([&] {
        pool.run_team(2, [&](int i) {
            if (i == 0) {
                EXPECT_TRUE(begun.come());
                EXPECT_TRUE(ended.come());
            }
        });
    });
    EXPECT_TRUE(begun.come());
    EXPECT_EQ(ranges_of(pool, 1000, 7), alone);
    EXPECT_TRUE(ended.come());
    other.join();
}

TEST(thread_pool, a_team_runs_at_the_same_time) {
    ThreadPool pool(4);
    for (int threads : {1, 2, 3, 4}) {
        for (int round = 0; round < 100; ++round) {
            std::barrier<> barrier(threads);
            std::vector<std::thread::id> ids(static_cast<size_t>(threads));
            std::vector<int> phase(static_cast<size_t>(threads), 0);
            std::atomic<int> wrong{0};
            pool.run_team(threads, [&](int i) {
                auto me = static_cast<size_t>(i);
                ids[me] = std::this_thread::get_id();
                for (int step = 1; step <= 3; ++step) {
                    phase[me] = step;
                    barrier.arrive_and_wait();
                    for (int other : phase) {
                        wrong += other == step ? 0 : 1;
                    }
                    barrier.arrive_and_wait();
                }
            });
            ASSERT_EQ(wrong.load(), 0);
            ASSERT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), ids.size());
        }
    }
}

TEST(thread_pool, teams_and_loops_alternate) {
    ThreadPool pool(3);
    std::atomic<int64_t> sum{0};
    for (int i = 0; i < 2000; ++i) {
        pool.run_team(3, [&](int index) { sum += index; });
        pool.parallel_for(10, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
        pool.run_team(
            2, [&](int) { pool.parallel_for(5, 1, [&](int64_t b, int64_t e) { sum += e - b; }); });
    }
    EXPECT_EQ(sum.load(), 2000 * (3 + 10 + 10));
}

TEST(thread_pool, does_not_allocate) {
    ThreadPool pool(3);
    std::atomic<int64_t> sum{0};
    auto work = [&] {
        pool.parallel_for(1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
        pool.run_team(3, [&](int) { ++sum; });
    };
    work();
    int64_t before = allocation_count();
    for (int i = 0; i < 1000; ++i) {
        work();
    }
    EXPECT_EQ(allocation_count(), before);
    EXPECT_EQ(sum.load(), 1001 * 1003);
}

TEST(thread_pool, starts_and_stops_quickly_many_times) {
    for (int i = 0; i < 200; ++i) {
        ThreadPool pool(1 + i % 5);
        if (i % 2 == 0) {
            EXPECT_FALSE(ranges_of(pool, 10, 1).empty());
        }
    }
}

TEST(thread_pool, the_shared_pool_uses_the_cpus_of_this_process) {
    cpu_set_t own;
    ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
    EXPECT_EQ(ThreadPool::shared().size(), CPU_COUNT(&own));
    EXPECT_EQ(ThreadPool(0).size(), CPU_COUNT(&own));
    EXPECT_EQ(ThreadPool::shared().size(), ThreadPool(0).size());
    int first = 0;
    while (!CPU_ISSET(first, &own)) {
        ++first;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    int restricted = ThreadPool(0).size();
    ASSERT_EQ(::sched_setaffinity(0, sizeof own, &own), 0);
    EXPECT_EQ(restricted, 1);
}

} // namespace
} // namespace ingot
