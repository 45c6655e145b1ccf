// SPDX-License-Identifier: Apache-2.0
// A forked child computes with threads of its own, whatever the parent was doing.
#include "base/fork.h"
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <thread>

namespace ingot {
namespace {

/// The exit code of a child that runs f; -1 when it has not ended after 30 seconds.
int in_child(const std::function<int()>& f) {
    pid_t child = ::fork();
    if (child == 0) {
        ::_exit(f());
    }
    for (int i = 0; i < 3000; ++i) {
        int status = 0;
        if (::waitpid(child, &status, WNOHANG) == child) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return -1;
}

int64_t sum(ThreadPool& pool, int64_t n) {
    std::atomic<int64_t> total{0};
    pool.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
        int64_t own = 0;
        for (int64_t i = begin; i < end; ++i) {
            own += i;
        }
        total += own;
    });
    return total;
}

/// All threads of a team wait for each other.
int64_t team(ThreadPool& pool) {
    std::barrier together(pool.size());
    std::atomic<int64_t> total{0};
    pool.run_team(pool.size(), [&](int thread) {
        together.arrive_and_wait();
        total += thread;
    });
    return total;
}

bool works(ThreadPool& pool) {
    int64_t last = pool.size() - 1;
    return sum(pool, 1000) == 499500 && team(pool) == last * (last + 1) / 2 &&
           sum(pool, 100) == 4950;
}

TEST(Fork, AChildHasThreadsOfItsOwn) {
    ThreadPool pool(4);
    ASSERT_TRUE(works(pool));
    uint64_t before = process_number();
    EXPECT_EQ(in_child([&] { return works(pool) && process_number() == before + 1 ? 7 : 1; }), 7);
    EXPECT_EQ(process_number(), before);
    EXPECT_TRUE(works(pool));
    EXPECT_EQ(in_child([&] { // its own children, too
                  return works(pool) ? in_child([&] { return works(pool) ? 8 : 1; }) : 2;
              }),
              8);
    EXPECT_EQ(in_child([&] { // several threads that need it first, at once
                  std::atomic<int> right{0};
                  std::vector<std::thread> threads;
                  for (int i = 0; i < 4; ++i) {
                      threads.emplace_back([&] { right += works(pool) ? 1 : 0; });
                  }
                  for (std::thread& t : threads) {
                      t.join();
                  }
                  return right.load();
              }),
              4);
}

TEST(Fork, AlsoInTheMiddleOfAJob) {
    ThreadPool pool(3);
    std::atomic<bool> stop{false};
    std::thread busy([&] {
        while (!stop) {
            works(pool);
        }
    });
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(in_child([&] { return works(pool) ? 5 : 1; }), 5);
    }
    stop = true;
    busy.join();
}

TEST(Fork, PoolsOfTheParentCanGo) {
    EXPECT_EQ(in_child([] {
                  auto pool = std::make_unique<ThreadPool>(3);
                  return in_child([&] {
                      pool.reset(); // without a job
                      return 9;
                  });
              }),
              9);
}

TEST(Fork, WithoutThreadsTheCallerDoesItAll) {
    ThreadPool pool(4);
    ASSERT_TRUE(works(pool));
    int code = in_child([&] {
        rlimit none{0, 0};
        if (::setuid(12345) != 0 || ::setrlimit(RLIMIT_NPROC, &none) != 0) {
            return 11; // not root: processes of this user count
        }
        std::atomic<int> calls{0};
        pool.run_team(4, [&](int thread) { calls += thread; });
        int size = pool.begin_team(
            4, [](const void*, int) {}, nullptr);
        return sum(pool, 1000) == 499500 && calls == 6 && size == 1 ? 10 : 1;
    });
    EXPECT_TRUE(code == 10 || code == 11) << code;
}

} // namespace
} // namespace ingot
