// SPDX-License-Identifier: Apache-2.0
// wgmma: 64 x N by four warps, operands in shared memory by descriptor (A also in registers). A
// product is computed at its wait, not when it is issued.
#include "base/error.h"
#include "emulator/instructions.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ingot::emulator {

namespace {

constexpr size_t lanes = 128;

struct WgmmaOperands {
    float* d;
    const unsigned* a;
    unsigned long long a_desc;
    unsigned long long b_desc;
};

struct Product {
    Mma kind;
    int n;
    bool from_registers;
    bool accumulate;
    bool b_transposed;
    bool a_transposed;
    BlockState* block;
    unsigned long long a_desc, b_desc;
    std::array<float*, lanes> d;
    std::array<std::array<unsigned, 4>, lanes> a;
};

/// An operand in shared memory, by its descriptor (PTX manual, "matrix descriptor format").
struct Descriptor {
    unsigned start, leading, stride, row_bytes, mask;

    explicit Descriptor(unsigned long long d) {
        start = static_cast<unsigned>(d & 0x3FFF) << 4;
        leading = static_cast<unsigned>(d >> 16 & 0x3FFF) << 4;
        stride = static_cast<unsigned>(d >> 32 & 0x3FFF) << 4;
        static constexpr unsigned rows[] = {16, 128, 64, 32};
        row_bytes = rows[d >> 62];
        mask = row_bytes / 16 - 1;
    }
    unsigned swizzled(unsigned at) const {
        // 16-byte chunks are exchanged by the number of the 128-byte line.
        return at ^ (at >> 7 & mask) << 4;
    }
    /// Byte of element (row, k) where k runs fastest.
    unsigned k_major(unsigned row, unsigned k_byte) const {
        unsigned at = start + row / 8 * stride + row % 8 * row_bytes;
        at += row_bytes == 16 ? k_byte / 16 * leading + k_byte % 16 : k_byte;
        return row_bytes == 16 ? at : swizzled(at);
    }
    /// Byte of element (row, k) where rows run fastest.
    unsigned row_major(unsigned row_byte, unsigned k) const {
        bool plain = row_bytes == 16;
        unsigned at = start + row_byte / row_bytes * (plain ? stride : leading) +
                      k / 8 * (plain ? leading : stride) + k % 8 * row_bytes + row_byte % row_bytes;
        return plain ? at : swizzled(at);
    }
};

constexpr int depth_of(Mma kind) {
    return 8 * Element::per_register(kind);
}

/// 16 bytes of an operand. Descriptors hold addresses of the window.
const std::byte* chunk(const Product& p, unsigned at) {
    return running()->shared(at, 16, p.block->rank, "wgmma");
}

/// Element (row, k) is at row_step * row + k_step * k of the result. Either way of storing an
/// operand keeps 16 bytes together.
template <Mma kind>
std::vector<float> gather(const Product& p, unsigned long long desc, int rows, bool transposed,
                          int row_step, int k_step) {
    constexpr int bytes = Element::bytes(kind);
    constexpr int depth = depth_of(kind);
    constexpr int in_chunk = 16 / bytes;
    Descriptor d(desc);
    std::vector<float> out(static_cast<size_t>(rows * depth));
    auto take = [&](unsigned at, size_t to, int step) {
        const std::byte* from = chunk(p, at);
        for (int i = 0; i < in_chunk; ++i) {
            out[to + static_cast<size_t>(i * step)] = Element::at<kind>(from + i * bytes);
        }
    };
    for (int r = 0; r < rows; r += transposed ? in_chunk : 1) {
        for (int k = 0; k < depth; k += transposed ? 1 : in_chunk) {
            auto to = static_cast<size_t>(r * row_step + k * k_step);
            if (transposed) {
                take(d.row_major(static_cast<unsigned>(r * bytes), static_cast<unsigned>(k)), to,
                     row_step);
            } else {
                take(d.k_major(static_cast<unsigned>(r), static_cast<unsigned>(k * bytes)), to,
                     k_step);
            }
        }
    }
    return out;
}

/// By row; `kind` is that of a.
template <Mma kind>
std::vector<float> a_of(const Product& p) {
    constexpr int per = Element::per_register(kind);
    constexpr int depth = depth_of(kind);
    if (!p.from_registers) {
        return gather<kind>(p, p.a_desc, 64, p.a_transposed, depth, 1);
    }
    std::vector<float> out(static_cast<size_t>(64 * depth));
    for (int t = 0; t < static_cast<int>(lanes); ++t) {
        for (int r = 0; r < 4; ++r) {
            const auto* from = reinterpret_cast<const std::byte*>(
                &p.a[static_cast<size_t>(t)][static_cast<size_t>(r)]);
            int row = t / 32 * 16 + t % 32 / 4 + r % 2 * 8;
            for (int i = 0; i < per; ++i) {
                int k = r / 2 * depth / 2 + t % 4 * per + i;
                out[static_cast<size_t>(row * depth + k)] =
                    Element::at<kind>(from + i * Element::bytes(kind));
            }
        }
    }
    return out;
}

template <Mma kind>
void compute(const Product& p) {
    using Sum = std::conditional_t<Element::is_whole(kind), int32_t, float>;
    constexpr int depth = depth_of(kind);
    std::vector<float> a = a_of<Element::of_a(kind)>(p);
    std::vector<float> b = gather<Element::of_b(kind)>(p, p.b_desc, p.n, p.b_transposed, 1, p.n);
    std::array<Sum, 256> sums{};
    for (int row = 0; row < 64; ++row) {
        multiply_row(sums.data(), &a[static_cast<size_t>(row * depth)], b.data(), depth, p.n);
        int first = row / 16 * 32 + row % 8 * 4; // the thread with the row's first columns
        for (int column = 0; column < p.n; ++column) {
            auto* d = reinterpret_cast<Sum*>(p.d[static_cast<size_t>(first + column % 8 / 2)]);
            Sum& to = d[column / 8 * 4 + row % 16 / 8 * 2 + column % 2];
            Sum sum = sums[static_cast<size_t>(column)];
            to = p.accumulate ? to + sum : sum;
        }
    }
}

Warpgroup& group_of_thread() {
    Fiber& f = here();
    return f.block->warpgroups[static_cast<size_t>(f.number / 128)];
}

} // namespace

void wgmma_fence() {
    here().wgmma_fenced = true;
}

void wgmma(Mma kind, void* d, int n, const unsigned* a, unsigned long long a_desc,
           unsigned long long b_desc, int accumulate, int transposed) {
    Fiber& f = here();
    Cluster& c = *running();
    if (c.launch().cc != 90) {
        c.fail(str("wgmma needs compute capability 9.0, this is ", c.launch().cc));
    }
    if (!f.wgmma_fenced) {
        c.fail("wgmma without a wgmma_fence before it");
    }
    if (n < 8 || n > 256 || n % 8 != 0) {
        c.fail(str("wgmma of width ", n, ": expected a multiple of 8 up to 256"));
    }
    if (transposed != 0 && Element::bytes(kind) != 2) {
        c.fail("wgmma transposes operands of 16-bit elements alone");
    }
    if (static_cast<unsigned>(f.number / 128 * 128 + 128) > c.launch().threads) {
        c.fail("wgmma in a warpgroup without 128 threads");
    }
    WgmmaOperands mine{static_cast<float*>(d), a, a_desc, b_desc};
    Warpgroup& g = group_of_thread();
    c.meet(g.meeting, static_cast<int>(lanes), Wait::Warpgroup, "wgmma", f.number % 128, &mine,
           [&](Meeting& m) {
               Product p{kind,
                         n,
                         a != nullptr,
                         accumulate != 0,
                         (transposed & 2) != 0,
                         (transposed & 1) != 0,
                         f.block,
                         a_desc,
                         b_desc,
                         {},
                         {}};
               for (size_t i = 0; i < lanes; ++i) {
                   auto* o = static_cast<WgmmaOperands*>(m.operands[i]);
                   if (o->b_desc != b_desc || (a == nullptr && o->a_desc != a_desc)) {
                       c.fail("wgmma with descriptors that differ among the warpgroup's threads");
                   }
                   p.d[i] = o->d;
                   if (o->a != nullptr) {
                       std::copy_n(o->a, 4, p.a[i].begin());
                   }
               }
               with_kind(kind, [&](auto k) {
                   constexpr Mma both = k();
                   g.pending.add([p] { compute<both>(p); });
               });
           });
}

void wgmma_commit() {
    // The first thread of the group commits for all of them: they execute the same instructions.
    if (here().number % 128 == 0) {
        group_of_thread().pending.commit();
    }
    Fiber& f = here();
    running()->meet(group_of_thread().meeting, static_cast<int>(lanes), Wait::Warpgroup,
                    "wgmma_commit", f.number % 128, nullptr, [](Meeting&) {});
}

void wgmma_wait(int pending) {
    Warpgroup& g = group_of_thread();
    Fiber& f = here();
    running()->meet(g.meeting, static_cast<int>(lanes), Wait::Warpgroup, "wgmma_wait",
                    f.number % 128, nullptr,
                    [&g, pending](Meeting&) { g.pending.wait(static_cast<size_t>(pending)); });
}

} // namespace ingot::emulator
