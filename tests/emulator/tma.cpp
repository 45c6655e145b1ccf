// SPDX-License-Identifier: Apache-2.0
// mbarriers and TMA: tensor maps, tiles with the 128-byte swizzle, zeros outside. A load happens
// when its mbarrier is waited for, a store when its group is.
#include "base/error.h"
#include "emulator/instructions.h"

#include <algorithm>
#include <cstring>

namespace ingot::emulator {

namespace {

/// The content of a tensor map's 128 bytes here.
struct Map {
    uint64_t magic;
    std::byte* base;
    uint64_t sizes[5];
    uint64_t strides[4];
    uint8_t box[5]; // less 1
    uint8_t rank;
    uint8_t element_bytes;
    uint8_t swizzle;
    uint8_t tf32;
};
static_assert(sizeof(Map) <= 128);
constexpr uint64_t magic = 0x70616d2d746f676eULL;

Map decode(const void* encoded) {
    Map m;
    std::memcpy(&m, encoded, sizeof m);
    if (m.magic != magic) {
        running()->fail("a tensor copy by what is no tensor map");
    }
    return m;
}

Mbarrier& mbarrier(BlockState& b, unsigned at) {
    for (Mbarrier& m : b.mbarriers) {
        if (m.at == at) {
            return m;
        }
    }
    running()->fail(
        str("an mbarrier at byte ", int64_t{at} - shared_base, " that was not initialised"));
}

uint64_t box_bytes(const Map& m) {
    uint64_t bytes = m.element_bytes;
    for (int i = 0; i < m.rank; ++i) {
        bytes *= m.box[i] + 1U;
    }
    return bytes;
}

/// Calls f(global address or null when outside, address in shared memory, bytes) for every row.
template <class F>
void for_rows(const Map& m, const std::vector<int>& at, unsigned shared, F f) {
    uint64_t row = uint64_t{m.element_bytes} * (m.box[0] + 1U);
    uint64_t rows = box_bytes(m) / row;
    for (uint64_t r = 0; r < rows; ++r) {
        uint64_t rest = r;
        std::byte* global = m.base;
        bool inside = true;
        for (size_t i = 1; i < m.rank; ++i) {
            int64_t c = at[i] + static_cast<int64_t>(rest % (m.box[i] + 1U));
            rest /= m.box[i] + 1U;
            inside = inside && c >= 0 && static_cast<uint64_t>(c) < m.sizes[i];
            global += c * static_cast<int64_t>(m.strides[i - 1]);
        }
        for (uint64_t e = 0; e <= m.box[0]; ++e) {
            int64_t c = at[0] + static_cast<int64_t>(e);
            bool there = inside && c >= 0 && static_cast<uint64_t>(c) < m.sizes[0];
            auto to = static_cast<unsigned>(shared + r * row + e * m.element_bytes);
            to = m.swizzle != 0 ? to ^ (to >> 7 & 7U) << 4 : to;
            f(there ? global + c * m.element_bytes : nullptr, to, m.element_bytes);
        }
    }
}

void check_tile(const Map& m, int rank, unsigned shared, const char* instruction) {
    Cluster& c = *running();
    if (rank != m.rank) {
        c.fail(str(instruction, " of ", rank, " dimensions by a map of ", int{m.rank}));
    }
    if (shared % 128 != 0) {
        c.fail(str(instruction, " with shared memory at ", shared,
                   ", which is not a multiple of 128"));
    }
    c.shared(shared, static_cast<unsigned>(box_bytes(m)), -1, instruction);
}

/// To the nearest value of TF32, ties to even; infinities and NaNs stay.
void copy_as_tf32(std::byte* to, const std::byte* from) {
    uint32_t bits = 0;
    std::memcpy(&bits, from, sizeof bits);
    if ((bits & 0x7F800000U) != 0x7F800000U) {
        bits = (bits + 0xFFFU + (bits >> 13 & 1U)) & 0xFFFFE000U;
    }
    std::memcpy(to, &bits, sizeof bits);
}

void load_tile(const Map& m, const std::vector<int>& at, unsigned to, const BlockState& b) {
    bool tf32 = m.tf32 != 0;
    for_rows(m, at, to, [&b, tf32](const std::byte* from, unsigned shared, size_t bytes) {
        std::byte* target = b.shared + (shared - shared_base);
        if (from != nullptr && tf32) {
            copy_as_tf32(target, from);
        } else if (from != nullptr) {
            std::memcpy(target, from, bytes);
        } else {
            std::memset(target, 0, bytes);
        }
    });
}

} // namespace

void encode_map(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) {
    int64_t element = bit_width(map.dtype) / 8;
    auto need = [](bool ok, const auto&... text) {
        require(ok, ErrorCode::Device, "tensor map: ", text...);
    };
    need(map.rank >= 1 && map.rank <= 5, "rank ", map.rank, ", expected 1 to 5");
    need(reinterpret_cast<uintptr_t>(base) % 16 == 0, "the base is not 16-byte aligned");
    need(element > 0, "elements of ", bit_width(map.dtype), " bits");
    need(!map.tf32 || map.dtype == DType::F32, "elements of ", map.dtype,
         " are not rounded to TF32");
    Map m{magic,
          base,
          {},
          {},
          {},
          static_cast<uint8_t>(map.rank),
          static_cast<uint8_t>(element),
          map.swizzle128,
          map.tf32};
    for (size_t i = 0; i < static_cast<size_t>(map.rank); ++i) {
        need(map.sizes[i] >= 1 && map.sizes[i] <= uint64_t{1} << 32, "size ", map.sizes[i],
             " of dimension ", i);
        need(map.box[i] >= 1 && map.box[i] <= 256, "box ", map.box[i], " of dimension ", i,
             ", expected 1 to 256");
        m.sizes[i] = map.sizes[i];
        m.box[i] = static_cast<uint8_t>(map.box[i] - 1);
        if (i > 0) {
            uint64_t stride = map.strides[i - 1];
            need(stride % 16 == 0 && stride < uint64_t{1} << 40, "stride ", stride,
                 " of dimension ", i, ", expected a multiple of 16");
            m.strides[i - 1] = stride;
        }
    }
    uint64_t inner = map.box[0] * static_cast<uint64_t>(element);
    need(inner % 16 == 0 && (!map.swizzle128 || inner <= 128), "inner box of ", inner,
         " bytes, expected a multiple of 16", map.swizzle128 ? " up to 128" : "");
    std::memset(encoded, 0, 128);
    std::memcpy(encoded, &m, sizeof m);
}

void Cluster::complete_phase(BlockState&, Mbarrier& m) {
    if (m.pending != 0 || m.bytes != 0) {
        return;
    }
    ++m.phase;
    m.pending = m.count;
    for (Fiber* f : m.waiting) {
        wake(*f);
    }
    m.waiting.clear();
}

void Cluster::complete_copies(BlockState& b, unsigned bar, bool all) {
    std::vector<TensorCopy> now;
    auto rest = std::stable_partition(b.copies.begin(), b.copies.end(),
                                      [&](const TensorCopy& c) { return !all && c.bar != bar; });
    std::move(rest, b.copies.end(), std::back_inserter(now));
    b.copies.erase(rest, b.copies.end());
    for (TensorCopy& c : now) {
        c.run();
    }
}

void Cluster::complete_stores(BlockState& b, Mbarrier& m) {
    if (m.stores.empty()) {
        return;
    }
    for (const AsyncStore& s : m.stores) {
        std::memcpy(s.to, s.sent, s.bytes);
        m.bytes -= s.bytes;
    }
    m.stores.clear();
    complete_phase(b, m);
}

void mbar_init(unsigned bar, unsigned arrivals) {
    Cluster& c = *running();
    c.need(90, "mbar_init");
    c.shared(bar, 8, -1, "mbar_init");
    BlockState& b = *c.current().block;
    for (const Mbarrier& m : b.mbarriers) {
        if (m.at == bar) {
            c.fail(str("the mbarrier at byte ", bar - shared_base, " is initialised twice"));
        }
    }
    if (arrivals == 0) {
        c.fail("mbar_init with no arrivals");
    }
    b.mbarriers.push_back({bar, arrivals, arrivals, 0, 0, {}, {}});
}

void mbar_expect(unsigned bar, unsigned bytes, unsigned arrivals) {
    Cluster& c = *running();
    BlockState& b = *c.current().block;
    Mbarrier& m = mbarrier(b, bar);
    m.bytes += bytes;
    if (m.pending < arrivals) {
        c.fail("more arrivals at an mbarrier than it was initialised for");
    }
    m.pending -= arrivals;
    c.complete_phase(b, m);
}

void mbar_arrive(unsigned bar, int rank) {
    Cluster& c = *running();
    BlockState& b = rank < 0 ? *c.current().block : c.block(rank);
    Mbarrier& m = mbarrier(b, bar);
    if (m.pending == 0) {
        c.fail("more arrivals at an mbarrier than it was initialised for");
    }
    --m.pending;
    c.complete_phase(b, m);
}

void mbar_wait(unsigned bar, unsigned parity) {
    Cluster& c = *running();
    BlockState& b = *c.current().block;
    Mbarrier& m = mbarrier(b, bar);
    while ((m.phase & 1U) == (parity & 1U)) {
        c.complete_copies(b, bar, false);
        c.complete_stores(b, m);
        if ((m.phase & 1U) != (parity & 1U)) {
            break;
        }
        m.waiting.push_back(&c.current());
        c.suspend(Wait::Mbarrier, "mbar_wait at byte", bar - shared_base);
    }
}

void tma_load(unsigned to, const void* map, int rank, const int* at, unsigned bar,
              unsigned blocks) {
    Cluster& c = *running();
    Map m = decode(map);
    check_tile(m, rank, to, "tma_load");
    std::vector<int> where(at, at + rank);
    uint64_t bytes = box_bytes(m);
    for (int r = 0; r < static_cast<int>(c.launch().cluster); ++r) {
        bool own = blocks == 0 && r == c.current().block->rank;
        if (!own && (blocks >> r & 1U) == 0) {
            continue;
        }
        BlockState* b = &c.block(r);
        Mbarrier* barrier = &mbarrier(*b, bar);
        b->copies.push_back({bar, [m, where, to, b, barrier, bytes, &c] {
                                 load_tile(m, where, to, *b);
                                 barrier->bytes -= static_cast<int64_t>(bytes);
                                 c.complete_phase(*b, *barrier);
                             }});
        // A waiting fiber would not check again.
        if (!barrier->waiting.empty()) {
            c.complete_copies(*b, bar, false);
        }
    }
}

void tma_store(const void* map, int rank, const int* at, unsigned from) {
    Cluster& c = *running();
    Map m = decode(map);
    check_tile(m, rank, from, "tma_store");
    std::vector<int> where(at, at + rank);
    BlockState* b = c.current().block;
    c.current().bulk.add([m, where, from, b] {
        for_rows(m, where, from, [b](std::byte* to, unsigned shared, size_t bytes) {
            if (to != nullptr) {
                std::memcpy(to, b->shared + (shared - shared_base), bytes);
            }
        });
    });
}

void bulk_load(unsigned to, const void* from, unsigned bytes, unsigned bar) {
    Cluster& c = *running();
    if (bytes % 16 != 0 || to % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0) {
        c.fail("bulk_load whose addresses or size are not multiples of 16");
    }
    std::byte* target = c.shared(to, 0, -1, "bulk_load");
    c.shared(to + bytes, 0, -1, "bulk_load");
    BlockState* b = c.current().block;
    Mbarrier* barrier = &mbarrier(*b, bar);
    b->copies.push_back({bar, [=, &c] {
                             std::memcpy(target, from, bytes);
                             barrier->bytes -= bytes;
                             c.complete_phase(*b, *barrier);
                         }});
    if (!barrier->waiting.empty()) {
        c.complete_copies(*b, bar, false);
    }
}

namespace {

constexpr unsigned rank_shift = 24; // of a cluster's addresses

} // namespace

unsigned cluster_address(unsigned at, unsigned rank) {
    Cluster& c = *running();
    c.need(90, "cluster_address");
    c.shared(at, 0, static_cast<int>(rank), "cluster_address");
    return at | (rank + 1) << rank_shift;
}

void st_async(unsigned to, const void* from, unsigned bytes, unsigned bar) {
    Cluster& c = *running();
    constexpr unsigned inside = (1U << rank_shift) - 1;
    unsigned rank = (to >> rank_shift) - 1;
    if (rank != (bar >> rank_shift) - 1) {
        c.fail("st_async whose mbarrier is not in the block that it stores to");
    }
    if (rank >= c.launch().cluster) {
        c.fail("st_async to what is no cluster_address");
    }
    BlockState& b = c.block(static_cast<int>(rank));
    std::byte* target = c.shared(to & inside, bytes, b.rank, "st_async");
    if (b.ended == static_cast<int>(c.launch().threads)) {
        c.fail(str("st_async to block ", rank, " of the cluster, which has ended"));
    }
    Mbarrier& m = mbarrier(b, bar & inside);
    AsyncStore store{target, bytes, {}};
    std::memcpy(store.sent, from, bytes);
    m.stores.push_back(store);
    if (!m.waiting.empty()) { // a waiting fiber would not check again
        c.complete_stores(b, m);
    }
}

void bulk_commit() {
    here().bulk.commit();
}

void bulk_wait(int pending) {
    here().bulk.wait(static_cast<size_t>(pending));
}

} // namespace ingot::emulator
