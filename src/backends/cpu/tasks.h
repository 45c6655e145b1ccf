// SPDX-License-Identifier: Apache-2.0
// Parallel tasks with per-thread working memory.
#pragma once

#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>

namespace ingot::cpu {

/// Calls f(task, thread) for every task in [0, n); threads take the next task when free. Results
/// must not depend on the thread.
template <class F>
void for_tasks(ThreadPool& pool, int64_t n, const F& f) {
    auto threads = static_cast<int>(std::min<int64_t>(pool.size(), n));
    if (threads <= 1) {
        for (int64_t i = 0; i < n; ++i) {
            f(i, 0);
        }
        return;
    }
    std::atomic<int64_t> next{0};
    pool.run_team(threads, [&](int thread) {
        for (int64_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) {
            f(i, thread);
        }
    });
}

} // namespace ingot::cpu
