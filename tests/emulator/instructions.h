// SPDX-License-Identifier: Apache-2.0
// The instructions that the runtime carries out; they run on the fiber that executes them.
#pragma once

#include "base/dtype.h"
#include "emulator/cluster.h"
#include "kernels/family.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace ingot::emulator {

/// The fiber that runs.
Fiber& here();
/// Meets all lanes of the warp; `complete` runs once, with every lane's operands.
template <class Complete>
void in_warp(const char* instruction, void* operands, const Complete& complete) {
    Fiber& f = here();
    Cluster& c = *running();
    c.meet(f.block->warps[static_cast<size_t>(f.warp())], c.lanes_of(f), Wait::Warp, instruction,
           f.lane(), operands, complete);
}

// matrices.cpp
void load_matrices(unsigned* r, unsigned at, int matrices, int transposed);
void store_matrices(unsigned at, const unsigned* r, int matrices, int transposed);
void multiply(Mma kind, void* c, const unsigned* a, const unsigned* b);

// warpgroup.cpp
void wgmma_fence();
void wgmma(Mma kind, void* d, int n, const unsigned* a, unsigned long long a_desc,
           unsigned long long b_desc, int accumulate, int transposed);
void wgmma_commit();
void wgmma_wait(int pending);

// tma.cpp
void mbar_init(unsigned bar, unsigned arrivals);
void mbar_expect(unsigned bar, unsigned bytes, unsigned arrivals);
void mbar_arrive(unsigned bar, int rank);
void mbar_wait(unsigned bar, unsigned parity);
void tma_load(unsigned to, const void* map, int rank, const int* at, unsigned bar, unsigned blocks);
void tma_store(const void* map, int rank, const int* at, unsigned from);
void bulk_load(unsigned to, const void* from, unsigned bytes, unsigned bar);
unsigned cluster_address(unsigned at, unsigned rank);
void st_async(unsigned to, const void* from, unsigned bytes, unsigned bar);
void bulk_commit();
void bulk_wait(int pending);
/// The 128 bytes that stand for a tensor map. Errors: Device where the driver would refuse it.
void encode_map(const kernels::TensorMap& map, std::byte* base, std::byte* encoded);

/// Elements of matrix instructions as numbers.
struct Element {
    static const float* f16_table(); // by bits

    /// Both operands of a kind, as kinds with equal operands.
    static constexpr Mma of_a(Mma kind) { return kind == Mma::U8S8 ? Mma::U8 : kind; }
    static constexpr Mma of_b(Mma kind) { return kind == Mma::U8S8 ? Mma::S8 : kind; }
    static constexpr bool is_whole(Mma kind) {
        return kind == Mma::S8 || kind == Mma::U8 || kind == Mma::U8S8;
    }
    static constexpr int bytes(Mma kind) {
        return kind == Mma::Tf32 ? 4 : kind == Mma::F16 || kind == Mma::BF16 ? 2 : 1;
    }
    static constexpr int per_register(Mma kind) { return 4 / bytes(kind); }

    /// The element at `from`.
    template <Mma kind>
    static float at(const void* from) {
        std::conditional_t<bytes(kind) == 4, uint32_t,
                           std::conditional_t<bytes(kind) == 2, uint16_t, uint8_t>>
            bits = 0;
        std::memcpy(&bits, from, sizeof bits);
        if constexpr (kind == Mma::F16) {
            return f16_values[bits];
        } else if constexpr (kind == Mma::BF16) {
            return f32_from_bf16(bits);
        } else if constexpr (kind == Mma::Tf32) {
            return std::bit_cast<float>(bits & 0xFFFFE000U); // the low 13 bits do not count
        } else if constexpr (kind == Mma::S8) {
            return static_cast<int8_t>(bits);
        } else if constexpr (kind == Mma::U8) {
            return bits;
        } else {
            static_assert(kind == Mma::E4M3 || kind == Mma::E5M2);
            return kind == Mma::E4M3 ? f32_from_f8e4m3(bits) : f32_from_f8e5m2(bits);
        }
    }

private:
    static const float* const f16_values;
};

/// Calls f(std::integral_constant<Mma, kind>()).
template <class F>
void with_kind(Mma kind, const F& f) {
    switch (kind) {
    case Mma::F16:
        return f(std::integral_constant<Mma, Mma::F16>());
    case Mma::BF16:
        return f(std::integral_constant<Mma, Mma::BF16>());
    case Mma::Tf32:
        return f(std::integral_constant<Mma, Mma::Tf32>());
    case Mma::S8:
        return f(std::integral_constant<Mma, Mma::S8>());
    case Mma::U8:
        return f(std::integral_constant<Mma, Mma::U8>());
    case Mma::E4M3:
        return f(std::integral_constant<Mma, Mma::E4M3>());
    case Mma::E5M2:
        return f(std::integral_constant<Mma, Mma::E5M2>());
    case Mma::U8S8:
        return f(std::integral_constant<Mma, Mma::U8S8>());
    }
}

/// A row of a product: sums[c] over k of a[k] * b[k][c], in the order of k; `b` has `columns`
/// elements a row, a multiple of 8.
template <class Sum>
void multiply_row(Sum* sums, const float* a, const float* b, int depth, int columns) {
    constexpr int width = 8; // these sums stay in registers
    for (int first = 0; first < columns; first += width) {
        Sum block[width] = {};
        for (int k = 0; k < depth; ++k) {
            const float* from = b + k * columns + first;
            for (int c = 0; c < width; ++c) {
                block[c] += static_cast<Sum>(a[k] * from[c]);
            }
        }
        std::copy_n(block, width, sums + first);
    }
}

} // namespace ingot::emulator
