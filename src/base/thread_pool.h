// SPDX-License-Identifier: Apache-2.0
// A fixed pool of threads for data-parallel loops.
#pragma once

#include <cstdint>
#include <memory>

namespace ingot {

class ThreadPool {
public:
    /// 0 means the number of CPUs this process may use (its affinity mask).
    explicit ThreadPool(int threads = 0);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;
    int size() const; // threads that take part, the caller included

    /// Calls f(begin, end) over disjoint ranges that cover [0, n), each at least `grain` long
    /// except the last; the caller works too and returns when all are done. Ranges depend only on
    /// n, grain and size(), so results are deterministic. Nested ones are serial. f must not throw.
    /// Calls beside others get threads of their own, kept, while CPUs last, and two calls beyond;
    /// the others take turns.
    template <class F>
    void parallel_for(int64_t n, int64_t grain, const F& f) {
        run(
            n, grain,
            [](const void* c, int64_t b, int64_t e) { (*static_cast<const F*>(c))(b, e); }, &f);
    }
    /// Runs f(thread_index) once on each of `threads` threads at the same time (barriers inside are
    /// allowed); threads <= size().
    template <class F>
    void run_team(int threads, const F& f) {
        team(
            threads, [](const void* c, int i) { (*static_cast<const F*>(c))(i); }, &f);
    }
    /// run_team in two halves: begin_team starts f(context, i) for i in [1, threads) on other
    /// threads; the caller runs its own part, then calls end_team, which waits for them. Returns
    /// the team's size: 1, with nothing to end, when threads is 1 or inside a job.
    int begin_team(int threads, void (*f)(const void*, int), const void* context);
    void end_team();
    /// The pool that CPU execution shares in this process.
    static ThreadPool& shared();
    /// Whether this thread runs a loop's range or a team's function of any pool: it must not wait
    /// for a thread that may wait for a pool.
    static bool is_inside();

private:
    void run(int64_t n, int64_t grain, void (*f)(const void*, int64_t, int64_t),
             const void* context);
    void team(int threads, void (*f)(const void*, int), const void* context);
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace ingot
