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

int depth_of(Mma kind) {
    return 8 * Element::per_register(kind);
}

uint32_t read(const BlockState& b, unsigned at, int bytes) {
    uint32_t v = 0;
    // Descriptors hold addresses of the window.
    std::memcpy(&v, running()->shared(at, 0, b.rank, "wgmma"), static_cast<size_t>(bytes));
    return v;
}

std::vector<float> gather(const Product& p, unsigned long long desc, int rows, bool transposed) {
    Descriptor d(desc);
    int bytes = 4 / Element::per_register(p.kind);
    int depth = depth_of(p.kind);
    std::vector<float> out(static_cast<size_t>(rows * depth));
    for (int r = 0; r < rows; ++r) {
        for (int k = 0; k < depth; ++k) {
            unsigned at =
                transposed ? d.row_major(static_cast<unsigned>(r * bytes), static_cast<unsigned>(k))
                           : d.k_major(static_cast<unsigned>(r), static_cast<unsigned>(k * bytes));
            running()->shared(at, static_cast<unsigned>(bytes), p.block->rank, "wgmma");
            out[static_cast<size_t>(r * depth + k)] =
                Element::of(p.kind, read(*p.block, at, bytes), 0);
        }
    }
    return out;
}

std::vector<float> a_of(const Product& p) {
    if (!p.from_registers) {
        return gather(p, p.a_desc, 64, p.a_transposed);
    }
    int per = Element::per_register(p.kind);
    int depth = depth_of(p.kind);
    std::vector<float> out(static_cast<size_t>(64 * depth));
    for (int t = 0; t < static_cast<int>(lanes); ++t) {
        for (int r = 0; r < 4; ++r) {
            for (int i = 0; i < per; ++i) {
                int row = t / 32 * 16 + t % 32 / 4 + r % 2 * 8;
                int k = r / 2 * depth / 2 + t % 4 * per + i;
                out[static_cast<size_t>(row * depth + k)] =
                    Element::of(p.kind, p.a[static_cast<size_t>(t)][static_cast<size_t>(r)], i);
            }
        }
    }
    return out;
}

template <class Sum>
void compute(const Product& p) {
    int depth = depth_of(p.kind);
    std::vector<float> a = a_of(p);
    std::vector<float> b = gather(p, p.b_desc, p.n, p.b_transposed);
    for (int t = 0; t < static_cast<int>(lanes); ++t) {
        auto* d = reinterpret_cast<Sum*>(p.d[static_cast<size_t>(t)]);
        for (int i = 0; i < p.n / 2; ++i) {
            int row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8;
            int column = i / 4 * 8 + t % 4 * 2 + i % 2;
            const float* x = &a[static_cast<size_t>(row * depth)];
            const float* y = &b[static_cast<size_t>(column * depth)];
            Sum sum = 0;
            for (int k = 0; k < depth; ++k) {
                sum += static_cast<Sum>(x[k] * y[k]);
            }
            d[i] = p.accumulate ? d[i] + sum : sum;
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
               bool whole = kind == Mma::S8 || kind == Mma::U8;
               g.pending.add([p, whole] { whole ? compute<int32_t>(p) : compute<float>(p); });
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
