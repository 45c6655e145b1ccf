// SPDX-License-Identifier: Apache-2.0
// The instructions that the runtime carries out; they run on the fiber that executes them.
#pragma once

#include "emulator/cluster.h"
#include "kernels/family.h"

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
void bulk_commit();
void bulk_wait(int pending);
/// The 128 bytes that stand for a tensor map. Errors: Device where the driver would refuse it.
void encode_map(const kernels::TensorMap& map, std::byte* base, std::byte* encoded);

/// Elements of matrix instructions as numbers.
struct Element {
    static float f16(uint16_t bits);
    static const float* f16_table(); // by bits
    static float bf16(uint16_t bits);
    static float tf32(uint32_t bits); // the low 13 bits do not count
    /// Element `index` of a register that holds several; kind is not Tf32.
    static float of(Mma kind, uint32_t bits, int index);
    static int per_register(Mma kind);
};

} // namespace ingot::emulator
