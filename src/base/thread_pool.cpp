// SPDX-License-Identifier: Apache-2.0
// Threads claim pieces from one atomic word that holds the job's number and the number of pieces
// left. A claim fails once the job is over, so the caller never waits for a late thread, and a late
// thread never touches the description of the next job. A forked child, which has none of the
// threads, starts workers of its own when it first needs them.
#include "base/thread_pool.h"

#include "base/cpus.h"
#include "base/error.h"
#include "base/fork.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace ingot {

namespace {

using Clock = std::chrono::steady_clock;
using RangeFunction = void (*)(const void*, int64_t, int64_t);
using TeamFunction = void (*)(const void*, int);

constexpr int64_t pieces_per_thread = 4; // more than one balances threads of unequal speed
/// Beyond the CPUs: while one job is handed from caller to caller, or ends with a single thread,
/// another keeps the CPUs busy.
constexpr int spare_crews = 2;
constexpr std::chrono::microseconds longest_spin{50};
constexpr std::chrono::microseconds shortest_spin{2};

// True on a thread that works on a job: nested loops run serially.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local bool inside_job = false;

class InsideJob {
public:
    InsideJob() { inside_job = true; }
    ~InsideJob() { inside_job = false; }
    InsideJob(const InsideJob&) = delete;
    InsideJob& operator=(const InsideJob&) = delete;
};

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int threads) {
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

void pause_cpu() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Spins until `done()` holds; false when `limit` passes first.
template <class Done>
bool spin(std::chrono::nanoseconds limit, const Done& done) {
    constexpr int pauses_per_clock_read = 16;
    if (done()) {
        return true;
    }
    if (limit.count() == 0) {
        return false;
    }
    Clock::time_point end = Clock::now() + limit;
    do {
        for (int i = 0; i < pauses_per_clock_read; ++i) {
            pause_cpu();
            if (done()) {
                return true;
            }
        }
    } while (Clock::now() < end);
    return false;
}

int64_t divide_up(int64_t a, int64_t b) {
    return (a - 1) / b + 1;
}

/// Workers and their job, in one process.
struct Crew {
    // The job: written while no piece can be claimed, read only after a successful claim.
    std::atomic<RangeFunction> range{nullptr};
    std::atomic<TeamFunction> team{nullptr};
    std::atomic<const void*> context{nullptr};
    std::atomic<int64_t> items{0};
    std::atomic<int64_t> piece{0};
    std::atomic<uint32_t> pieces{0};

    alignas(64) std::atomic<uint64_t> ticket{0}; // job number << 32 | pieces left
    alignas(64) std::atomic<uint32_t> number{0}; // of the newest job; workers sleep on it
    std::atomic<int> sleepers{0};
    std::atomic<bool> stop{false};
    alignas(64) std::atomic<uint32_t> finished{0}; // pieces; the caller sleeps on it
    std::atomic<bool> caller_sleeps{false};

    alignas(64) std::mutex turn;
    std::chrono::nanoseconds spin_limit{0};
    std::vector<std::thread> workers;
    const uint64_t process = process_number();

    Crew(int threads, std::chrono::nanoseconds limit);
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;
    void end();
    void work_loop();
    uint32_t wait_for_job(uint32_t seen, std::chrono::nanoseconds& patience);
    bool claim(uint32_t job, uint32_t& index);
    void run_piece(uint32_t index);
    void work(uint32_t job);
    void publish(uint32_t count);
    void wait_until_finished(uint32_t count, uint32_t own);
};

// That of the team which this thread has begun and not ended.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local Crew* begun = nullptr;

Crew::Crew(int threads, std::chrono::nanoseconds limit) : spin_limit(limit) {
    workers.reserve(static_cast<size_t>(threads - 1));
    try {
        for (int i = 1; i < threads; ++i) {
            workers.emplace_back([this] { work_loop(); });
        }
    } catch (...) {
        end();
        throw;
    }
}

Crew::~Crew() {
    end();
}

void Crew::end() {
    stop.store(true);
    number.fetch_add(1);
    futex_wake(number, static_cast<int>(workers.size()));
    for (std::thread& worker : workers) {
        worker.join();
    }
    workers.clear();
}

uint32_t Crew::wait_for_job(uint32_t seen, std::chrono::nanoseconds& patience) {
    auto changed = [&] { return number.load(std::memory_order_acquire) != seen; };
    std::chrono::nanoseconds shortest =
        std::min<std::chrono::nanoseconds>(shortest_spin, spin_limit);
    if (spin(patience, changed)) {
        patience = std::min(patience * 2, spin_limit); // jobs follow closely: spinning pays
        return number.load(std::memory_order_acquire);
    }
    patience = std::max(patience / 2, shortest);
    // Either the publisher sees this sleeper and wakes it, or the futex sees the new number.
    sleepers.fetch_add(1);
    while (number.load() == seen) {
        futex_wait(number, seen);
    }
    sleepers.fetch_sub(1);
    return number.load(std::memory_order_acquire);
}

void Crew::work_loop() {
    uint32_t seen = 0;
    std::chrono::nanoseconds patience = spin_limit;
    InsideJob inside;
    while (true) {
        seen = wait_for_job(seen, patience);
        if (stop.load(std::memory_order_acquire)) {
            return;
        }
        work(seen);
    }
}

/// Takes one piece of job `job`; false when none is left or the job is over.
bool Crew::claim(uint32_t job, uint32_t& index) {
    uint64_t now = ticket.load(std::memory_order_acquire);
    while (now >> 32 == job && static_cast<uint32_t>(now) != 0) {
        uint32_t count = pieces.load(std::memory_order_relaxed);
        if (ticket.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
            index = count - static_cast<uint32_t>(now);
            return true;
        }
    }
    return false;
}

void Crew::run_piece(uint32_t index) {
    const void* c = context.load(std::memory_order_relaxed);
    if (TeamFunction f = team.load(std::memory_order_relaxed); f != nullptr) {
        f(c, static_cast<int>(index));
        return;
    }
    int64_t step = piece.load(std::memory_order_relaxed);
    int64_t begin = step * index;
    int64_t end = std::min(begin + step, items.load(std::memory_order_relaxed));
    range.load(std::memory_order_relaxed)(c, begin, end);
}

/// A worker's part in a job; it takes at most one piece of a team's job.
void Crew::work(uint32_t job) {
    uint32_t index = 0;
    uint32_t own = 0;
    uint32_t count = 0;
    bool more = true;
    while (more && claim(job, index)) {
        count = pieces.load(std::memory_order_relaxed);
        more = team.load(std::memory_order_relaxed) == nullptr;
        run_piece(index);
        ++own;
    }
    if (own != 0 && finished.fetch_add(own) + own == count && caller_sleeps.load()) {
        futex_wake(finished, 1);
    }
}

/// Opens the job for claims; piece 0 is the caller's.
void Crew::publish(uint32_t count) {
    pieces.store(count, std::memory_order_relaxed);
    finished.store(0, std::memory_order_relaxed);
    uint32_t next = number.load(std::memory_order_relaxed) + 1;
    ticket.store(uint64_t{next} << 32 | (count - 1));
    number.store(next);
    if (sleepers.load() > 0) {
        futex_wake(number, static_cast<int>(std::min<size_t>(count - 1, workers.size())));
    }
}

void Crew::wait_until_finished(uint32_t count, uint32_t own) {
    if (finished.fetch_add(own) + own == count) {
        return;
    }
    auto all_done = [&] { return finished.load(std::memory_order_acquire) == count; };
    if (spin(spin_limit, all_done)) {
        return;
    }
    caller_sleeps.store(true);
    for (uint32_t now = finished.load(); now != count; now = finished.load()) {
        futex_wait(finished, now);
    }
    caller_sleeps.store(false, std::memory_order_relaxed);
}

/// A place that differs between threads: the next loops of a thread find the crew that still spins.
size_t place_of_thread() {
    static std::atomic<size_t> next{0};
    thread_local size_t own = next.fetch_add(1, std::memory_order_relaxed);
    return own;
}

} // namespace

/// The crews: one at first, and one more for each call beside others, while there are CPUs for all
/// of their threads, and a few beyond. A forked child replaces them when it first needs them.
struct ThreadPool::State {
    int size = 0;
    std::chrono::nanoseconds spin_limit{0};
    std::vector<std::atomic<Crew*>> crews; // null where none was needed yet

    explicit State(size_t most) : crews(most) {}
    ~State();
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    Crew* take();

private:
    Crew* made(size_t i) noexcept;
};

/// That of place `i`, new where there is none in this process; null when it gets no threads.
Crew* ThreadPool::State::made(size_t i) noexcept {
    Crew* c = crews[i].load(std::memory_order_acquire);
    if (c != nullptr && c->process == process_number()) [[likely]] {
        return c;
    }
    try {
        std::lock_guard lock(fork_mutex());
        c = crews[i].load(std::memory_order_acquire);
        if (c == nullptr || c->process != process_number()) {
            // The old one stays in memory: its threads are not there to be joined, and one of them
            // may have been in the middle of a job.
            c = std::make_unique<Crew>(size, spin_limit).release();
            crews[i].store(c, std::memory_order_release);
        }
        return c;
    } catch (const std::exception&) {
        return nullptr;
    }
}

/// A crew whose turn is this thread's. Null in a forked child that gets no threads.
Crew* ThreadPool::State::take() {
    size_t own = place_of_thread() % crews.size();
    for (bool makes : {false, true}) {
        for (size_t i = 0; i < crews.size(); ++i) {
            size_t place = (own + i) % crews.size();
            Crew* c = crews[place].load(std::memory_order_acquire);
            bool is_there = c != nullptr && c->process == process_number();
            c = is_there || !makes ? c : made(place);
            if ((is_there || makes) && c != nullptr && c->turn.try_lock()) {
                return c;
            }
        }
    }
    Crew* c = made(0);
    if (c != nullptr) {
        c->turn.lock();
    }
    return c;
}

ThreadPool::State::~State() {
    for (std::atomic<Crew*>& place : crews) {
        std::unique_ptr<Crew> c(place.load());
        if (c != nullptr && c->process != process_number()) {
            static_cast<void>(c.release());
        }
    }
}

ThreadPool::ThreadPool(int threads) {
    require(threads >= 0, ErrorCode::InvalidArgument, "expected a number of threads, got ",
            threads);
    auto cpus = static_cast<int>(usable_cpus().size());
    cpus = cpus == 0 ? std::max(1, static_cast<int>(std::thread::hardware_concurrency())) : cpus;
    int size = threads == 0 ? cpus : threads;
    state_ = std::make_unique<State>(static_cast<size_t>(std::max(1, cpus / size) + spare_crews));
    state_->size = size;
    // With more threads than CPUs, spinning would starve the thread being waited for.
    state_->spin_limit = size <= cpus ? longest_spin : std::chrono::microseconds(0);
    state_->crews[0] = std::make_unique<Crew>(size, state_->spin_limit).release();
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const {
    return state_->size;
}

void ThreadPool::run(int64_t n, int64_t grain, RangeFunction f, const void* context) {
    if (n <= 0) {
        return;
    }
    int64_t wanted = size() == 1 ? 1 : size() * pieces_per_thread;
    int64_t piece = std::max({grain, divide_up(n, wanted), int64_t{1}});
    int64_t count = divide_up(n, piece);
    Crew* crew = count == 1 || inside_job ? nullptr : state_->take();
    if (crew == nullptr) {
        for (int64_t begin = 0; begin < n; begin += piece) {
            f(context, begin, std::min(n - begin, piece) + begin);
        }
        return;
    }
    Crew& s = *crew;
    std::lock_guard lock(s.turn, std::adopt_lock);
    InsideJob inside;
    s.range.store(f, std::memory_order_relaxed);
    s.team.store(nullptr, std::memory_order_relaxed);
    s.context.store(context, std::memory_order_relaxed);
    s.items.store(n, std::memory_order_relaxed);
    s.piece.store(piece, std::memory_order_relaxed);
    auto pieces = static_cast<uint32_t>(count);
    s.publish(pieces);
    uint32_t job = s.number.load(std::memory_order_relaxed);
    uint32_t own = 0;
    uint32_t index = 0;
    do {
        s.run_piece(index);
        ++own;
    } while (s.claim(job, index));
    s.wait_until_finished(pieces, own);
}

void ThreadPool::team(int threads, TeamFunction f, const void* context) {
    CHECK(threads >= 1 && threads <= size(), "a team of ", threads, " in a pool of ", size());
    if (threads == 1) {
        f(context, 0);
        return;
    }
    CHECK(!inside_job, "a team cannot start inside a parallel loop");
    Crew* crew = state_->take();
    if (crew == nullptr) {
        InsideJob inside;
        for (int i = 0; i < threads; ++i) {
            f(context, i);
        }
        return;
    }
    Crew& s = *crew;
    std::lock_guard lock(s.turn, std::adopt_lock);
    InsideJob inside;
    s.team.store(f, std::memory_order_relaxed);
    s.context.store(context, std::memory_order_relaxed);
    s.publish(static_cast<uint32_t>(threads));
    s.run_piece(0);
    s.wait_until_finished(static_cast<uint32_t>(threads), 1);
}

int ThreadPool::begin_team(int threads, TeamFunction f, const void* context) {
    CHECK(threads >= 1 && threads <= size(), "a team of ", threads, " in a pool of ", size());
    Crew* crew = threads == 1 || inside_job ? nullptr : state_->take();
    if (crew == nullptr) {
        return 1;
    }
    Crew& s = *crew;
    begun = crew;
    inside_job = true;
    s.team.store(f, std::memory_order_relaxed);
    s.context.store(context, std::memory_order_relaxed);
    s.publish(static_cast<uint32_t>(threads));
    return threads;
}

void ThreadPool::end_team() {
    Crew& s = *begun;
    s.wait_until_finished(s.pieces.load(std::memory_order_relaxed), 1);
    inside_job = false;
    s.turn.unlock();
}

bool ThreadPool::is_inside() {
    return inside_job;
}

ThreadPool& ThreadPool::shared() {
    // Never destroyed: joining at exit would hang in a forked child, which has no workers.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
    static ThreadPool& pool = *std::make_unique<ThreadPool>().release();
    return pool;
}

} // namespace ingot
