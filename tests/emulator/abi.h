// SPDX-License-Identifier: Apache-2.0
// Shared by emulated device text and the emulator's runtime. Plain C++17 without includes: device
// text includes it inside a namespace of its own, the runtime inside ingot::emulator.
#pragma once

struct Index3 {
    unsigned x, y, z;
};

/// Quad: as Xor, among four adjacent lanes.
enum class Exchange : int { Xor, Index, Up, Down, Quad };
enum class Mma : int { F16, BF16, Tf32, S8, U8, E4M3, E5M2, U8S8 };

/// The runtime's side of instructions that need more than their own thread.
struct Services {
    void (*fail)(const char* text); // does not return
    void (*grid_wait)();
    void (*sync)(int barrier, int threads); // threads < 0: the whole block
    void (*arrive)(int barrier, int threads);
    void (*sync_warp)();
    unsigned (*exchange)(Exchange kind, unsigned value, int operand);
    unsigned (*ballot)(unsigned mask, int predicate);
    void (*poll)(); // other threads go on: called where a thread may spin

    unsigned (*smem_addr)(const void* p);
    /// Checks and translates an address of shared memory; rank < 0 is the own block.
    void* (*smem)(unsigned at, unsigned bytes, int rank);
    void (*cp_async)(unsigned to, const void* from, int size, int bytes);
    void (*cp_async_commit)();
    void (*cp_async_wait)(int pending);
    void (*ldmatrix)(unsigned* r, unsigned at, int matrices, int transposed);
    void (*stmatrix)(unsigned at, const unsigned* r, int matrices, int transposed);
    void (*mma)(Mma kind, void* c, const unsigned* a, const unsigned* b);
    void (*global_access)(const void* p, unsigned bytes); // alignment

    unsigned (*cluster_rank)();
    void (*cluster_sync)();
    void (*cluster_arrive)();
    void (*cluster_wait)();
    /// The address of another block's shared memory, as st_async takes it.
    unsigned (*cluster_address)(unsigned at, unsigned rank);

    void (*mbar_init)(unsigned bar, unsigned arrivals);
    void (*mbar_expect)(unsigned bar, unsigned bytes, unsigned arrivals);
    void (*mbar_arrive)(unsigned bar, int rank);
    void (*mbar_wait)(unsigned bar, unsigned parity);
    void (*tma_load)(unsigned to, const void* map, int rank, const int* at, unsigned bar,
                     unsigned blocks); // blocks: mask of a multicast, 0 for none
    void (*tma_store)(const void* map, int rank, const int* at, unsigned from);
    void (*bulk_load)(unsigned to, const void* from, unsigned bytes, unsigned bar);
    /// Stores in another block; the bytes count at its mbarrier.
    void (*st_async)(unsigned to, const void* from, unsigned bytes, unsigned bar);
    void (*bulk_commit)();
    void (*bulk_wait)(int pending);

    void (*wgmma_fence)();
    void (*wgmma)(Mma kind, void* d, int n, const unsigned* a, unsigned long long a_desc,
                  unsigned long long b_desc, int accumulate, int transposed);
    void (*wgmma_commit)();
    void (*wgmma_wait)(int pending);

    unsigned short (*f16_of_f32)(float x);
    unsigned short (*f16_of_f64)(double x);
    const float* f32_of_f16;      // by bits
    unsigned long long (*time)(); // greater at each call
};

/// The running thread's fields that device text reads.
struct Thread {
    Index3 thread, block, block_size, grid;
    unsigned char* shared; // of its block
    const Services* services;
};
