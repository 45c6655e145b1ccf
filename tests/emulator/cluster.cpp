// SPDX-License-Identifier: Apache-2.0
#include "emulator/cluster.h"

#include "base/error.h"
#include "emulator/address_space.h"
#include "emulator/source_line.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>

namespace ingot::emulator {

namespace {

Cluster* running_cluster = nullptr; // one launch at a time: EmulatedGpu holds a lock

constexpr size_t shared_room = 256 * 1024;
constexpr auto red = std::byte{0xA5};
constexpr uint64_t many_polls = 1 << 16;
constexpr double poll_seconds = 20;

Stacks& stacks() {
    static Stacks s;
    return s;
}

/// Shared memory of every block of a cluster, each between pages that fault.
std::byte* shared_memory(size_t rank) {
    static std::vector<std::byte*> areas;
    while (areas.size() <= rank) {
        std::byte* base = take_addresses(shared_room);
        require(base != nullptr && mprotect(base, shared_room, PROT_READ | PROT_WRITE) == 0,
                ErrorCode::OutOfMemory, "no memory for a block's shared memory");
        areas.push_back(base);
    }
    return areas[rank];
}

/// The end of shared memory is the end of the room, as far as 1024-byte alignment allows.
std::byte* place_shared(size_t rank, size_t bytes) {
    std::byte* room = shared_memory(rank);
    size_t rounded = (bytes + 1023) / 1024 * 1024;
    std::byte* at = room + (shared_room - rounded);
    std::memset(std::max(room, at - page), static_cast<int>(red),
                static_cast<size_t>(at - std::max(room, at - page)));
    std::memset(at, poison, bytes);
    std::memset(at + bytes, static_cast<int>(red), rounded - bytes);
    return at;
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

} // namespace

Cluster* running() {
    return running_cluster;
}

void PendingCopies::add(std::function<void()> copy) {
    copies.push_back(std::move(copy));
    ++open;
}

void PendingCopies::commit() {
    groups.push_back(open);
    open = 0;
}

void PendingCopies::wait(size_t pending) {
    if (groups.size() <= pending) {
        return;
    }
    auto done = groups.end() - static_cast<std::ptrdiff_t>(pending);
    size_t count = std::accumulate(groups.begin(), done, size_t{0});
    groups.erase(groups.begin(), done);
    for (size_t i = 0; i < count; ++i) {
        copies[i]();
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(count));
}

Cluster::Cluster(const LaunchInfo& launch) : launch_(&launch) {
    size_t count = size_t{launch.threads} * launch.cluster;
    stacks().reserve(count);
    fibers_.resize(count);
    CHECK(running_cluster == nullptr, "one launch at a time");
    running_cluster = this;
}

Cluster::~Cluster() {
    if (closed_) {
        launch_->memory->protect_held(false);
    }
    running_cluster = nullptr;
}

void Cluster::start(uint64_t first) {
    const LaunchInfo& l = *launch_;
    blocks_.clear();
    blocks_.resize(l.cluster);
    cluster_barrier_ = {};
    at_grid_wait_.clear();
    ready_.reset(fibers_.size());
    entered_ = nullptr;
    ended_ = 0;
    polls_ = 0;
    for (size_t rank = 0; rank < l.cluster; ++rank) {
        BlockState& b = blocks_[rank];
        b.rank = static_cast<int>(rank);
        b.shared_bytes = l.shared;
        b.shared = place_shared(rank, l.shared);
        b.warps.resize((l.threads + 31) / 32);
        b.quads.resize(b.warps.size() * 8);
        b.warpgroups.resize((l.threads + 127) / 128);
        uint64_t index = first + rank;
        Index3 at{static_cast<unsigned>(index % l.grid.x),
                  static_cast<unsigned>(index / l.grid.x % l.grid.y),
                  static_cast<unsigned>(index / l.grid.x / l.grid.y)};
        unsigned width = l.threads / (l.block_y * l.block_z);
        for (unsigned t = 0; t < l.threads; ++t) {
            size_t i = rank * l.threads + t;
            Fiber& f = fibers_[i] = Fiber{};
            f.head = {{t % width, t / width % l.block_y, t / width / l.block_y},
                      at,
                      {width, l.block_y, l.block_z},
                      l.grid,
                      reinterpret_cast<unsigned char*>(b.shared),
                      &services()};
            f.sp = stacks().prepare(i, fiber_main);
            f.block = &b;
            f.index = static_cast<int>(i);
            f.number = static_cast<int>(t);
        }
    }
    for (size_t i = 0; i < fibers_.size(); ++i) {
        ready_.push(&fibers_[l.reversed ? fibers_.size() - 1 - i : i]);
    }
}

void Cluster::run(uint64_t first, bool guarded) {
    start(first);
    guarded_ = closed_ = guarded;
    if (guarded) {
        launch_->memory->protect_held(true);
    }
    loop();
    if (failure_.empty()) {
        check_end();
    }
    if (closed_) {
        closed_ = false;
        launch_->memory->protect_held(false);
    }
    if (!failure_.empty()) { // no other fiber continues either
        for (size_t i = 0; i < fibers_.size(); ++i) {
            stacks().forget_frames(i, fibers_[i].sp);
        }
        ingot::fail(ErrorCode::Device, failure_);
    }
}

/// Copies the block's variables to the shared memory that its code uses.
void Cluster::enter(BlockState& b) {
    const Entry& e = *launch_->entry;
    if (entered_ == &b || e.shared_bytes == 0) {
        return;
    }
    if (entered_ != nullptr) {
        entered_->variables.assign(e.shared, e.shared + e.shared_bytes);
    }
    entered_ = &b;
    if (b.variables.empty()) {
        std::memset(e.shared, poison, e.shared_bytes);
    } else {
        std::memcpy(e.shared, b.variables.data(), e.shared_bytes);
    }
}

void Cluster::make_current(Fiber& f) {
    current_ = &f;
    enter(*f.block);
    *launch_->entry->current = &f.head;
}

/// Switches to the fiber that is ready next, or to the scheduler when there is none.
void Cluster::leave(Fiber& f) {
    if (ready_.empty()) {
        ingot_emulator_switch(&f.sp, scheduler_);
    } else {
        make_current(*ready_.pop());
        ingot_emulator_switch(&f.sp, current_->sp);
    }
}

void Cluster::loop() {
    while (ended_ < static_cast<int>(fibers_.size())) {
        if (ready_.empty() && !unblock()) {
            deadlock_message();
            return;
        }
        make_current(*ready_.pop());
        ingot_emulator_switch(&scheduler_, current_->sp);
        current_ = nullptr;
        if (!failure_.empty()) {
            return;
        }
    }
}

/// Nothing is ready: performs asynchronous hardware work now.
bool Cluster::unblock() {
    for (BlockState& b : blocks_) {
        if (!b.copies.empty()) {
            complete_copies(b, 0, true);
        }
        for (Mbarrier& m : b.mbarriers) {
            complete_stores(b, m);
        }
    }
    if (ready_.empty() && !at_grid_wait_.empty()) {
        closed_ = false;
        launch_->memory->protect_held(false);
        for (Fiber* f : at_grid_wait_) {
            wake(*f);
        }
        at_grid_wait_.clear();
    }
    return !ready_.empty();
}

void Cluster::fiber_main() {
    Cluster& c = *running_cluster;
    c.launch_->entry->call(c.launch_->parameters);
    c.finish_fiber();
}

void Cluster::finish_fiber() {
    Fiber& f = *current_;
    if (!f.bulk.copies.empty()) {
        fail("ends before its bulk stores have been read (bulk_wait_read is missing)");
    }
    f.ended = true;
    ++f.block->ended;
    ++ended_;
    polls_ = 0;
    abandon();
}

void Cluster::suspend(Wait why, const char* instruction, unsigned detail) {
    Fiber& f = *current_;
    f.wait = why;
    f.waits_in = instruction;
    f.wait_detail = detail;
    leave(f);
}

void Cluster::wake(Fiber& f) {
    f.wait = Wait::None;
    polls_ = 0;
    ready_.push(&f);
}

int Cluster::lanes_of(const Fiber& f) const {
    return std::min(32, static_cast<int>(launch_->threads) - f.warp() * 32);
}

bool Cluster::arrive(Meeting& m, int lanes, const char* instruction, int lane, void* operands) {
    if (m.arrived == 0) {
        m.instruction = instruction;
        m.operands.assign(static_cast<size_t>(lanes), nullptr);
    } else if (m.instruction != instruction && std::strcmp(m.instruction, instruction) != 0) {
        fail(str("is in ", instruction, " while others of its warp are in ", m.instruction));
    }
    m.operands[static_cast<size_t>(lane)] = operands;
    if (++m.arrived == lanes) {
        return true;
    }
    m.waiting.push_back(current_);
    return false;
}

void Cluster::wake_all(Meeting& m) {
    m.arrived = 0;
    for (Fiber* f : m.waiting) {
        wake(*f);
    }
    m.waiting.clear();
}

void Cluster::barrier(Barrier& b, int expected, Wait why, const char* instruction, unsigned detail,
                      bool waits) {
    if (b.arrived > 0 && b.expected != expected) {
        fail(
            str("names ", expected, " threads at barrier ", detail, ", others named ", b.expected));
    }
    b.expected = expected;
    if (++b.arrived < expected) {
        if (waits) {
            b.waiting.push_back(current_);
            suspend(why, instruction, detail);
        }
        return;
    }
    b.arrived = 0;
    for (Fiber* f : b.waiting) {
        wake(*f);
    }
    b.waiting.clear();
}

void Cluster::grid_wait() {
    current_->block->waited = true;
    if (closed_) {
        at_grid_wait_.push_back(current_);
        suspend(Wait::GridWait, "grid_wait");
    }
}

void Cluster::poll() {
    if (polls_++ == 0) {
        poll_start_ = now();
    }
    if (polls_ % many_polls == 0 && now() - poll_start_ > poll_seconds) {
        fail("spins: nothing else has happened for a long time");
    }
    Fiber& f = *current_;
    ready_.push(&f);
    leave(f);
}

std::string Cluster::place(const Fiber& f) const {
    const Index3& b = f.head.block;
    return str("kernel '", launch_->entry->name, "', block (", b.x, ",", b.y, ",", b.z,
               "), thread ", f.number);
}

std::string Cluster::place_of_block(const BlockState& b) const {
    const Index3& at = fibers_[static_cast<size_t>(b.rank) * launch_->threads].head.block;
    return str("kernel '", launch_->entry->name, "', block (", at.x, ',', at.y, ',', at.z, ')');
}

void Cluster::forget_frames(const void* lowest) const {
    stacks().forget_frames(static_cast<size_t>(current_->index), lowest);
}

void Cluster::abandon() {
    forget_frames(__builtin_frame_address(0));
    void* abandoned = nullptr;
    ingot_emulator_switch(&abandoned, scheduler_);
    __builtin_unreachable();
}

void Cluster::fail(const std::string& message) {
    failure_ = str(place(*current_), ": ", message, source_line_of_caller());
    abandon();
}

void Cluster::fault(const void* address, const char* what, const void* code) {
    std::string text = str(place(*current_), ": ", what);
    if (stacks().is_overflow(address)) {
        text += ": the thread's stack is full";
    } else if (address != nullptr) {
        const BlockState& b = *current_->block;
        auto* a = static_cast<const std::byte*>(address);
        bool near_shared = a >= b.shared - page && a < b.shared + b.shared_bytes + 2 * page;
        text += near_shared ? str(" at byte ", a - b.shared, " of ", b.shared_bytes,
                                  " bytes of shared memory")
                            : ' ' + launch_->memory->describe(address);
    }
    failure_ = text + source_line(code);
    abandon();
}

void Cluster::need(int cc, const char* instruction) {
    if (launch_->cc < cc) {
        fail(str(instruction, " needs compute capability ", cc / 10, '.', cc % 10, ", this is ",
                 launch_->cc / 10, '.', launch_->cc % 10));
    }
}

std::byte* Cluster::stack_top() const {
    return stacks().top(static_cast<size_t>(current_->index));
}

std::byte* Cluster::shared(unsigned at, unsigned bytes, int rank, const char* instruction) {
    const BlockState& b = rank < 0 ? *current_->block : blocks_[static_cast<size_t>(rank)];
    if (rank >= static_cast<int>(launch_->cluster)) {
        fail(str(instruction, " names block ", rank, " of a cluster of ", launch_->cluster));
    }
    const Entry& e = *launch_->entry;
    if (at >= variables_base && rank < 0) {
        auto* p = reinterpret_cast<std::byte*>(
            (reinterpret_cast<uintptr_t>(e.shared) & ~uintptr_t{1023}) + (at - variables_base));
        if (p >= e.shared && p + bytes <= e.shared + e.shared_bytes) {
            return p;
        }
    }
    if (at < shared_base || uint64_t{at} + bytes > shared_base + b.shared_bytes) {
        fail(str(instruction, " reaches byte ", int64_t{at} - shared_base, " to ",
                 int64_t{at} - shared_base + bytes, " of ", b.shared_bytes,
                 " bytes of shared memory"));
    }
    if (bytes != 0 && (bytes & (bytes - 1)) == 0 && bytes <= 16 && at % bytes != 0) {
        fail(str(instruction, " of ", bytes, " bytes at byte ", at - shared_base,
                 " of shared memory, which is not aligned"));
    }
    return b.shared + (at - shared_base);
}

unsigned Cluster::address_of(const std::byte* p) {
    const Entry& e = *launch_->entry;
    const BlockState& b = *current_->block;
    if (p >= e.shared && p < e.shared + e.shared_bytes) {
        return variables_base +
               static_cast<unsigned>(reinterpret_cast<uintptr_t>(p) -
                                     (reinterpret_cast<uintptr_t>(e.shared) & ~uintptr_t{1023}));
    }
    if (p < b.shared || p > b.shared + b.shared_bytes) {
        fail("smem_addr of memory that is not the block's shared memory");
    }
    return static_cast<unsigned>(p - b.shared) + shared_base;
}

void Cluster::check_end() {
    auto is_red = [](std::byte x) { return x == red; };
    const LaunchInfo& l = *launch_;
    for (const BlockState& b : blocks_) {
        std::string where = place_of_block(b);
        size_t tail = (b.shared_bytes + 1023) / 1024 * 1024 - b.shared_bytes;
        std::byte* front = b.shared - std::min(page, shared_room - b.shared_bytes - tail);
        std::byte* end = b.shared + b.shared_bytes;
        if (!std::all_of(front, b.shared, is_red) || !std::all_of(end, end + tail, is_red)) {
            failure_ =
                str(where, ": wrote outside its ", b.shared_bytes, " bytes of shared memory");
        } else if (l.needs_wait && !b.waited) {
            failure_ = str(where, ": ended without grid_wait");
        } else if (!b.copies.empty()) {
            failure_ = str(where, ": ended before its tensor loads had arrived");
        } else if (std::any_of(b.mbarriers.begin(), b.mbarriers.end(),
                               [](const Mbarrier& m) { return !m.stores.empty(); })) {
            failure_ = str(where, ": ended before what others sent it had arrived");
        }
    }
}

void Cluster::deadlock_message() {
    std::map<std::string, std::vector<int>> groups;
    for (const Fiber& f : fibers_) {
        std::string what = f.ended ? "ended" : str("in ", f.waits_in);
        if (f.wait == Wait::Barrier || f.wait == Wait::Mbarrier) {
            what += str(' ', f.wait_detail);
        }
        groups[what].push_back(f.index);
    }
    failure_ = place_of_block(blocks_[0]) + ": deadlock:";
    for (const auto& [what, threads] : groups) {
        failure_ += str(failure_.back() == ':' ? " " : "; ", threads.size(),
                        threads.size() == 1 ? " thread " : " threads ", what, " (the first is ",
                        threads[0], ")");
    }
}

} // namespace ingot::emulator
