// SPDX-License-Identifier: Apache-2.0
// The runtime's side of barriers, exchanges between lanes, asynchronous copies and mbarriers.
#include "base/error.h"
#include "emulator/instructions.h"

#include <atomic>
#include <cstring>

namespace ingot::emulator {

Fiber& here() {
    return running()->current();
}

namespace {

void fail_text(const char* text) {
    running()->fail(text);
}

void wait_for_grid() {
    running()->grid_wait();
}

void barrier_of_block(int number, int threads, bool waits, const char* instruction) {
    Cluster& c = *running();
    int all = static_cast<int>(c.launch().threads);
    if (number < 0 || number > 15) {
        c.fail(str(instruction, " names barrier ", number, " of 16"));
    }
    if (threads >= 0 && (threads % 32 != 0 || threads == 0 || threads > (all + 31) / 32 * 32)) {
        c.fail(str(instruction, " names ", threads, " threads: expected whole warps of ", all,
                   " threads"));
    }
    c.barrier(c.current().block->barriers[number], threads < 0 ? all : threads, Wait::Barrier,
              instruction, static_cast<unsigned>(number), waits);
}

void sync_block(int number, int threads) {
    barrier_of_block(number, threads, true, "sync");
}

void arrive_at(int number, int threads) {
    barrier_of_block(number, threads, false, "arrive");
}

void sync_lanes() {
    in_warp("sync_warp", nullptr, [](Meeting&) {});
}

struct ExchangeOperands {
    Exchange kind;
    unsigned value;
    int operand;
    unsigned result;
};

unsigned exchange_in_quad(unsigned value, int operand) {
    ExchangeOperands mine{Exchange::Quad, value, operand, 0};
    Fiber& f = here();
    Cluster& c = *running();
    constexpr int lanes = 4;
    auto quad = static_cast<size_t>(f.warp() * (32 / lanes) + f.lane() / lanes);
    c.meet(f.block->quads[quad], lanes, Wait::Warp, "quad_xor", f.lane() % lanes, &mine,
           [](Meeting& m) {
               for (size_t lane = 0; lane < m.operands.size(); ++lane) {
                   auto* o = static_cast<ExchangeOperands*>(m.operands[lane]);
                   size_t from = lane ^ static_cast<size_t>(o->operand & (lanes - 1));
                   o->result = static_cast<ExchangeOperands*>(m.operands[from])->value;
               }
           });
    return mine.result;
}

unsigned exchange(Exchange kind, unsigned value, int operand) {
    if (kind == Exchange::Quad) {
        return exchange_in_quad(value, operand);
    }
    ExchangeOperands mine{kind, value, operand, 0};
    static constexpr const char* names[] = {"shfl_xor", "shfl", "shfl_up", "shfl_down"};
    in_warp(names[static_cast<int>(kind)], &mine, [](Meeting& m) {
        auto lanes = static_cast<int>(m.operands.size());
        for (int lane = 0; lane < lanes; ++lane) {
            auto* o = static_cast<ExchangeOperands*>(m.operands[static_cast<size_t>(lane)]);
            int from = lane;
            switch (o->kind) {
            case Exchange::Xor:
                from = lane ^ (o->operand & 31);
                break;
            case Exchange::Index:
                from = o->operand & 31;
                break;
            case Exchange::Up:
                from = lane - (o->operand & 31);
                break;
            case Exchange::Down:
                from = lane + (o->operand & 31);
                break;
            case Exchange::Quad: // above
                break;
            }
            from = from < 0 || from > 31 ? lane : from;
            if (from >= lanes) {
                o->result = 0xBADBADBAU; // a lane that does not exist
                continue;
            }
            o->result =
                static_cast<ExchangeOperands*>(m.operands[static_cast<size_t>(from)])->value;
        }
    });
    return mine.result;
}

struct BallotOperands {
    unsigned mask;
    int predicate;
    unsigned result;
};

unsigned ballot(unsigned mask, int predicate) {
    BallotOperands mine{mask, predicate, 0};
    in_warp("ballot", &mine, [](Meeting& m) {
        unsigned bits = 0;
        for (size_t lane = 0; lane < m.operands.size(); ++lane) {
            bits |= unsigned{static_cast<BallotOperands*>(m.operands[lane])->predicate != 0}
                    << lane;
        }
        for (void* o : m.operands) {
            auto* b = static_cast<BallotOperands*>(o);
            b->result = bits & b->mask;
        }
    });
    return mine.result;
}

void poll() {
    running()->poll();
}

unsigned smem_addr(const void* p) {
    return running()->address_of(static_cast<const std::byte*>(p));
}

void* smem(unsigned at, unsigned bytes, int rank) {
    return running()->shared(at, bytes, rank, "an access");
}

void cp_async(unsigned to, const void* from, int size, int bytes) {
    Cluster& c = *running();
    std::byte* target = c.shared(to, static_cast<unsigned>(size), -1, "cp_async");
    if (bytes < 0 || bytes > size) {
        c.fail(str("cp_async of ", bytes, " bytes: expected 0 to ", size));
    }
    if (reinterpret_cast<uintptr_t>(from) % static_cast<unsigned>(size) != 0) {
        c.fail(str("cp_async of ", size, " bytes from memory that is not aligned to them"));
    }
    unsigned char read[16] = {};
    // Read now, so that a fault names the instruction; written at the wait.
    std::memcpy(read, from, static_cast<size_t>(bytes));
    struct Copy {
        std::byte* to;
        int size;
        unsigned char bytes[16];
        void operator()() const { std::memcpy(to, bytes, static_cast<size_t>(size)); }
    };
    Copy copy{target, size, {}};
    std::memcpy(copy.bytes, read, sizeof read);
    c.current().async.add(copy);
}

void cp_async_commit() {
    here().async.commit();
}

void cp_async_wait(int pending) {
    here().async.wait(static_cast<size_t>(pending));
}

void global_access(const void* p, unsigned bytes) {
    if (reinterpret_cast<uintptr_t>(p) % bytes != 0) {
        running()->fail(str("access of ", bytes, " bytes that is not aligned to them"));
    }
}

unsigned long long next_time() {
    static std::atomic<unsigned long long> time = 0;
    return ++time;
}

unsigned cluster_rank() {
    return static_cast<unsigned>(here().block->rank);
}

void arrive_at_cluster(const char* instruction) {
    Cluster& c = *running();
    c.need(90, instruction);
    Fiber& f = c.current();
    ClusterBarrier& b = c.cluster_barrier();
    if (f.at_cluster_barrier) {
        c.fail(str(instruction, " after a cluster_arrive without cluster_wait"));
    }
    f.at_cluster_barrier = true;
    f.cluster_phase = b.phase;
    if (++b.arrived < static_cast<int>(c.launch().threads * c.launch().cluster)) {
        return;
    }
    b.arrived = 0;
    ++b.phase;
    for (Fiber* waiting : b.waiting) {
        c.wake(*waiting);
    }
    b.waiting.clear();
}

void wait_for_cluster(const char* instruction) {
    Cluster& c = *running();
    Fiber& f = c.current();
    ClusterBarrier& b = c.cluster_barrier();
    if (!f.at_cluster_barrier) {
        c.fail("cluster_wait without cluster_arrive");
    }
    f.at_cluster_barrier = false;
    if (b.phase == f.cluster_phase) {
        b.waiting.push_back(&f);
        c.suspend(Wait::Cluster, instruction);
    }
}

void cluster_sync() {
    arrive_at_cluster("cluster_sync");
    wait_for_cluster("cluster_sync");
}

void cluster_arrive() {
    arrive_at_cluster("cluster_arrive");
}

void cluster_wait() {
    wait_for_cluster("cluster_wait");
}

} // namespace

const Services& services() {
    static const Services table = {
        fail_text,
        wait_for_grid,
        sync_block,
        arrive_at,
        sync_lanes,
        exchange,
        ballot,
        poll,
        smem_addr,
        smem,
        cp_async,
        cp_async_commit,
        cp_async_wait,
        load_matrices,
        store_matrices,
        multiply,
        global_access,
        cluster_rank,
        cluster_sync,
        cluster_arrive,
        cluster_wait,
        cluster_address,
        mbar_init,
        mbar_expect,
        mbar_arrive,
        mbar_wait,
        tma_load,
        tma_store,
        bulk_load,
        st_async,
        bulk_commit,
        bulk_wait,
        wgmma_fence,
        wgmma,
        wgmma_commit,
        wgmma_wait,
        f16_from_f32,
        f16_from_f64,
        Element::f16_table(),
        next_time,
    };
    return table;
}

} // namespace ingot::emulator
