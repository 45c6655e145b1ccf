// SPDX-License-Identifier: Apache-2.0
// Cluster: the running blocks of one cluster, one fiber per thread. A fiber runs until it must wait
// for others; when none can continue before all have ended, the error lists what each fiber waits
// for. Asynchronous copies are done as late as allowed, so that a missing wait shows.
#pragma once

#include "emulator/fiber.h"
#include "emulator/memory.h"

#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ingot::emulator {

#include "emulator/abi.h"

/// A function's code, as the compiled text offers it.
struct Entry {
    std::string name;
    void (*call)(void* const* parameters) = nullptr;
    Thread** current = nullptr; // where the text looks for the running thread
    std::vector<unsigned> parameter_sizes;
    unsigned most_threads = 1024; // of its launch bounds
    std::byte* shared = nullptr;  // variables in shared memory
    size_t shared_bytes = 0;
};

struct LaunchInfo {
    const Entry* entry = nullptr;
    void* const* parameters = nullptr;
    Index3 grid{1, 1, 1};
    unsigned threads = 1;
    unsigned shared = 0;
    unsigned cluster = 1;
    int cc = 90;
    unsigned block_y = 1; // the threads stand in a block of three dimensions
    unsigned block_z = 1;
    bool needs_wait = false; // every block has to call grid_wait
    bool reversed = false;   // threads start from the last
    Memory* memory = nullptr;
};

/// The reason why a fiber waits.
enum class Wait : uint8_t { None, Warp, Barrier, Cluster, Mbarrier, GridWait, Warpgroup, Poll };

struct BlockState;

/// Copies that a thread has issued and not waited for.
struct PendingCopies {
    std::vector<std::function<void()>> copies;
    std::vector<size_t> groups; // copies in each committed group, the oldest first
    size_t open = 0;            // copies since the last commit

    void add(std::function<void()> copy);
    void commit();
    /// Runs all groups but the last `pending`.
    void wait(size_t pending);
};

struct Fiber {
    Thread head; // first: device text points at it
    void* sp = nullptr;
    BlockState* block = nullptr;
    int index = 0;  // in the cluster
    int number = 0; // in the block
    bool ended = false;
    Wait wait = Wait::None;
    const char* waits_in = "";
    unsigned wait_detail = 0;
    PendingCopies async; // cp.async
    PendingCopies bulk;  // bulk stores
    bool wgmma_fenced = false;
    bool at_cluster_barrier = false; // has arrived, and not waited yet
    unsigned cluster_phase = 0;      // of the barrier when it arrived

    int lane() const { return number % 32; }
    int warp() const { return number / 32; }
};

/// First in, first out; at most `most` at a time.
class FiberQueue {
public:
    void reset(size_t most) {
        size_t size = std::bit_ceil(most + 1);
        items_.resize(size);
        mask_ = size - 1;
        head_ = tail_ = 0;
    }
    bool empty() const { return head_ == tail_; }
    void push(Fiber* f) { items_[tail_++ & mask_] = f; }
    Fiber* pop() { return items_[head_++ & mask_]; }

private:
    std::vector<Fiber*> items_;
    size_t mask_ = 0;
    size_t head_ = 0;
    size_t tail_ = 0;
};

/// Lanes that meet in one instruction; each lane's operands are on its own stack.
struct Meeting {
    int arrived = 0;
    const char* instruction = "";
    std::vector<void*> operands; // per lane
    std::vector<Fiber*> waiting;
};

struct Barrier {
    int expected = 0;
    int arrived = 0;
    std::vector<Fiber*> waiting;
};

/// The barrier of a cluster's threads: they arrive, and wait until all have.
struct ClusterBarrier {
    int arrived = 0;
    unsigned phase = 0;
    std::vector<Fiber*> waiting;
};

/// Bytes that another block has sent.
struct AsyncStore {
    std::byte* to;
    unsigned bytes;
    std::byte sent[16];
};

struct Mbarrier {
    unsigned at = 0;
    unsigned count = 0;
    unsigned pending = 0;
    int64_t bytes = 0;
    unsigned phase = 0;
    std::vector<Fiber*> waiting;
    std::vector<AsyncStore> stores; // on their way
};

struct TensorCopy {
    unsigned bar = 0;
    std::function<void()> run;
};

/// A warpgroup's matrix products that have not been waited for.
struct Warpgroup {
    Meeting meeting;
    PendingCopies pending;
};

struct BlockState {
    int rank = 0;
    std::byte* shared = nullptr;
    size_t shared_bytes = 0;
    bool waited = false;
    int ended = 0;
    std::vector<Meeting> warps;
    std::vector<Meeting> quads; // of four adjacent lanes
    std::vector<Warpgroup> warpgroups;
    Barrier barriers[16];
    std::deque<Mbarrier> mbarriers;   // references stay valid
    std::vector<TensorCopy> copies;   // on their way
    std::vector<std::byte> variables; // in shared memory, while another block of the cluster runs
};

/// The window of shared memory begins here, so that 0 is no address of it.
constexpr unsigned shared_base = 1024;
/// Variables in shared memory have addresses from here on.
constexpr unsigned variables_base = 1U << 20;

class Cluster {
public:
    explicit Cluster(const LaunchInfo& launch);
    ~Cluster();
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    /// Runs blocks first .. first + cluster - 1 (by linear index). `guarded`: held memory is closed
    /// until they wait. Errors: Device naming kernel, block, thread and what happened.
    void run(uint64_t first, bool guarded);

    // For the instructions, on a fiber:
    Fiber& current() { return *current_; }
    BlockState& block(int rank) { return blocks_[static_cast<size_t>(rank)]; }
    const LaunchInfo& launch() const { return *launch_; }
    int lanes_of(const Fiber& f) const;
    /// Suspends the fiber until wake(f).
    void suspend(Wait why, const char* instruction, unsigned detail = 0);
    void wake(Fiber& f);
    /// Meets the other lanes; the last to come runs `complete` and wakes the others.
    template <class Complete>
    void meet(Meeting& m, int lanes, Wait why, const char* instruction, int lane, void* operands,
              const Complete& complete) {
        if (arrive(m, lanes, instruction, lane, operands)) {
            complete(m);
            wake_all(m);
        } else {
            suspend(why, instruction);
        }
    }
    void barrier(Barrier& b, int expected, Wait why, const char* instruction, unsigned detail,
                 bool waits);
    ClusterBarrier& cluster_barrier() { return cluster_barrier_; }
    void grid_wait();
    void poll();
    /// Ends the run with this message. Does not return.
    [[noreturn]] void fail(const std::string& message);
    /// Fails on older architectures than the instruction's.
    void need(int cc, const char* instruction);
    std::byte* shared(unsigned at, unsigned bytes, int rank, const char* instruction);
    /// The address in the window; fails where `p` is not in the running block's shared memory.
    unsigned address_of(const std::byte* p);
    void complete_copies(BlockState& b, unsigned bar, bool all);
    void complete_stores(BlockState& b, Mbarrier& m);
    void complete_phase(BlockState& b, Mbarrier& m);
    /// Ends the run after a fault at `code` that touched `address` (null: unknown).
    [[noreturn]] void fault(const void* address, const char* what, const void* code);
    /// The start of the running fiber's stack, where a faulted fiber continues.
    std::byte* stack_top() const;
    /// Before it does so: its frames from `lowest` on are no more.
    void forget_frames(const void* lowest) const;
    /// Whether a fiber runs, not the scheduler.
    bool on_fiber() const { return current_ != nullptr; }

private:
    /// True for the last to arrive; the others wait.
    bool arrive(Meeting& m, int lanes, const char* instruction, int lane, void* operands);
    void wake_all(Meeting& m);
    static void fiber_main();
    void make_current(Fiber& f);
    void leave(Fiber& f);
    void start(uint64_t first);
    void loop();
    bool unblock();
    void enter(BlockState& b);
    void check_end();
    void deadlock_message();
    std::string place(const Fiber& f) const;
    std::string place_of_block(const BlockState& b) const;
    [[noreturn]] __attribute__((no_sanitize("address"))) void abandon();
    void finish_fiber();

    const LaunchInfo* launch_;
    std::vector<BlockState> blocks_;
    std::vector<Fiber> fibers_;
    FiberQueue ready_;
    Fiber* current_ = nullptr;
    BlockState* entered_ = nullptr; // whose variables are in place
    void* scheduler_ = nullptr;
    ClusterBarrier cluster_barrier_;
    std::vector<Fiber*> at_grid_wait_;
    bool guarded_ = false;
    bool closed_ = false;
    int ended_ = 0;
    uint64_t polls_ = 0;
    double poll_start_ = 0;
    std::string failure_;
};

/// The cluster that runs on this process's emulated device, or null.
Cluster* running();
/// The table that compiled texts call.
const Services& services();

} // namespace ingot::emulator
