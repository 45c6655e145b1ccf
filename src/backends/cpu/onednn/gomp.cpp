// SPDX-License-Identifier: Apache-2.0
// The ten libgomp functions that oneDNN calls, with the semantics of GCC's compiled code: starts a
// parallel region, whose caller also runs its part, then ends it. A nested region has one thread.
#include "backends/cpu/onednn/gomp.h"

#include <sched.h>

#include <algorithm>
#include <atomic>

namespace ingot::cpu::onednn {

namespace {

using Region = void (*)(void*);

struct Team {
    Region region = nullptr;
    void* data = nullptr;
    int threads = 1;
    std::atomic<int> arrived{0};
    std::atomic<unsigned> round{0};
};

constexpr int deepest_nesting = 8;

/// The state of one thread. A thread's loops cannot nest without a region in between.
struct ThreadState {
    Team* team = nullptr;
    int thread = 0;
    long next = 0; // of the loop with a static schedule: first iteration of the next chunk
    long end = 0;
    long step = 0;
    long chunk = 0; // iterations; 0: one chunk for each thread
};

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): OpenMP's per-thread state
thread_local const Threads* in_use = nullptr;
thread_local ThreadState current;
thread_local Team teams[deepest_nesting]; // of the regions that this thread started
thread_local ThreadState outer[deepest_nesting];
thread_local int nesting = 0;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

void work_in_team(const void* context, int thread) {
    auto* team = static_cast<Team*>(const_cast<void*>(context));
    ThreadState before = current;
    current = {};
    current.team = team;
    current.thread = thread;
    team->region(team->data);
    current = before;
}

void pause_or_yield(int spins) {
    constexpr int spins_before_yield = 4096;
    if (spins < spins_before_yield) {
        __builtin_ia32_pause();
    } else {
        ::sched_yield();
    }
}

} // namespace

ThreadsInUse::ThreadsInUse(const Threads& threads) : before_(in_use) {
    in_use = &threads;
}

ThreadsInUse::~ThreadsInUse() {
    in_use = before_;
}

// Some linkers give an alias the visibility of its target.
#pragma GCC visibility push(default)
extern "C" {

int omp_get_max_threads() {
    return in_use == nullptr || current.team != nullptr ? 1 : in_use->count;
}

int omp_get_num_threads() {
    return current.team == nullptr ? 1 : current.team->threads;
}

int omp_get_thread_num() {
    return current.thread;
}

int omp_in_parallel() {
    return current.team != nullptr && current.team->threads > 1 ? 1 : 0;
}

// NOLINTBEGIN(readability-identifier-naming): libgomp's names.
void GOMP_parallel_start(Region region, void* data, unsigned threads) {
    if (nesting == deepest_nesting) {
        __builtin_trap();
    }
    Team& team = teams[nesting];
    outer[nesting] = current;
    ++nesting;
    team.region = region;
    team.data = data;
    int most = omp_get_max_threads();
    team.threads = threads == 0 ? most : std::min(static_cast<int>(threads), most);
    team.arrived.store(0, std::memory_order_relaxed);
    current = {};
    current.team = &team;
    if (team.threads > 1) {
        int wanted = team.threads;
        int got = in_use->begin(in_use->pool, wanted, work_in_team, &team);
        if (got < wanted) {
            team.threads = 1;
        }
    }
}

void GOMP_parallel_end() {
    --nesting;
    if (teams[nesting].threads > 1) {
        in_use->end(in_use->pool);
    }
    current = outer[nesting];
}

void GOMP_barrier() {
    Team* team = current.team;
    if (team == nullptr || team->threads == 1) {
        return;
    }
    unsigned round = team->round.load(std::memory_order_acquire);
    if (team->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == team->threads) {
        team->arrived.store(0, std::memory_order_relaxed);
        team->round.store(round + 1, std::memory_order_release);
        return;
    }
    for (int spins = 0; team->round.load(std::memory_order_acquire) == round; ++spins) {
        pause_or_yield(spins);
    }
}

bool GOMP_loop_static_next(long* first, long* last) {
    ThreadState& p = current;
    bool forward = p.step > 0;
    if (forward ? p.next >= p.end : p.next <= p.end) {
        return false;
    }
    long size = p.chunk * p.step;
    *first = p.next;
    *last = forward ? std::min(p.next + size, p.end) : std::max(p.next + size, p.end);
    p.next += size * omp_get_num_threads();
    return true;
}

bool GOMP_loop_static_start(long start, long end, long step, long chunk, long* first, long* last) {
    ThreadState& p = current;
    long threads = omp_get_num_threads();
    long count = step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
    p.chunk = chunk;
    if (chunk == 0) {
        p.chunk = std::max(1L, (count + threads - 1) / threads);
    }
    p.step = step;
    p.end = end;
    p.next = start + p.thread * p.chunk * step;
    return GOMP_loop_static_next(first, last);
}

void GOMP_loop_end_nowait() {}
// NOLINTEND(readability-identifier-naming)

} // extern "C"
#pragma GCC visibility pop

} // namespace ingot::cpu::onednn
