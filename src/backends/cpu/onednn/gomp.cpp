// SPDX-License-Identifier: Apache-2.0
// The ten functions of libgomp that oneDNN calls, as GCC's compiled code expects them: a parallel
// region is started, run by the caller itself, then ended. A region inside a region has one thread.
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

/// What one thread is doing. Loops of one thread cannot nest without a region in between.
struct Place {
    Team* team = nullptr;
    int thread = 0;
    long next = 0; // of the loop with a static schedule: the first iteration of the next chunk
    long end = 0;
    long step = 0;
    long chunk = 0; // iterations; 0: one chunk for each thread
};

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): what OpenMP keeps per thread
thread_local const Threads* in_use = nullptr;
thread_local Place place;
thread_local Team teams[deepest_nesting]; // of the regions that this thread started
thread_local Place outer[deepest_nesting];
thread_local int nesting = 0;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

void work_in_team(const void* context, int thread) {
    auto* team = static_cast<Team*>(const_cast<void*>(context));
    Place before = place;
    place = {};
    place.team = team;
    place.thread = thread;
    team->region(team->data);
    place = before;
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

// Some linkers give an alias the visibility of what it stands for.
#pragma GCC visibility push(default)
extern "C" {

int omp_get_max_threads() {
    return in_use == nullptr || place.team != nullptr ? 1 : in_use->count;
}

int omp_get_num_threads() {
    return place.team == nullptr ? 1 : place.team->threads;
}

int omp_get_thread_num() {
    return place.thread;
}

int omp_in_parallel() {
    return place.team != nullptr && place.team->threads > 1 ? 1 : 0;
}

// NOLINTBEGIN(readability-identifier-naming): the names are those of libgomp, which oneDNN calls.
void GOMP_parallel_start(Region region, void* data, unsigned threads) {
    if (nesting == deepest_nesting) {
        __builtin_trap();
    }
    Team& team = teams[nesting];
    outer[nesting] = place;
    ++nesting;
    team.region = region;
    team.data = data;
    int most = omp_get_max_threads();
    team.threads = threads == 0 ? most : std::min(static_cast<int>(threads), most);
    team.arrived.store(0, std::memory_order_relaxed);
    place = {};
    place.team = &team;
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
    place = outer[nesting];
}

void GOMP_barrier() {
    Team* team = place.team;
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
    Place& p = place;
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
    Place& p = place;
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
