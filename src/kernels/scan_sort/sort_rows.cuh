// SPDX-License-Identifier: Apache-2.0
// Bitonic sort of rows of at most P elements in registers, by (key, index), and therefore stable. G
// threads per row, 8 elements each: thread t has ranks 8 t to 8 t + 7. Short exchange distances
// stay in a thread, longer ones in a warp; only the longest use shared memory. Keys of at most 32
// bits, MASK their bits, flipped by DESCENDING; ROWS rows per block.
#define G (P / 8)
DEVICE void order_pair(u64& a, u64& b, bool up) {
    const bool swap = (a > b) == up;
    const u64 low = swap ? b : a;
    b = swap ? a : b;
    a = low;
}
/// The last three steps of every round.
DEVICE void merge_own(u64* v, bool up) {
#pragma unroll
    for (int d = 4; d > 0; d >>= 1)
#pragma unroll
        for (int i = 0; i < 8; i++)
            if ((i & d) == 0)
                order_pair(v[i], v[i + d], up);
}
KERNEL void __launch_bounds__(ROWS* G)
    sort_rows(const T* __restrict__ x, T* __restrict__ values, i64* __restrict__ indices, Nest kept,
              i64 n, i64 step, i64 value_step, i64 index_step, i32 k) {
    begin_kernel();
    __shared__ u64 shared[8][ROWS * G];
    const int t = threadIdx.x % G;
    const i64 row = (i64)blockIdx.x * ROWS + threadIdx.x / G;
    const bool real = row < kept.count;
    i64 base[3];
    locate<KR, 3>(kept, real ? row : 0, base);
    grid_wait();
    u64 v[8];
#pragma unroll
    for (int e = 0; e < 8; e++) {
        const i64 i = e * G + t;
        v[e] = ~(u64)0;
        if (real && i < n) {
            u32 key = (u32)key_of(x[base[0] + i * step]);
            if (DESCENDING)
                key = ~key & MASK;
            v[e] = (u64)key << 32 | (u32)i;
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i += 2)
        order_pair(v[i], v[i + 1], (i & 2) == 0);
#pragma unroll
    for (int d = 2; d > 0; d >>= 1)
#pragma unroll
        for (int i = 0; i < 8; i++)
            if ((i & d) == 0)
                order_pair(v[i], v[i + d], (i & 4) == 0);
    merge_own(v, (t & 1) == 0);
    // Distances in threads from here on.
#pragma unroll 1
    for (int size = 2; size <= G; size <<= 1) {
        const bool up = (t & size) == 0;
#pragma unroll 1
        for (int d = size >> 1; d > 0; d >>= 1) {
            const bool low = ((t & d) == 0) == up; // keeps the smaller one
#if P > 256
            if (d >= 32) {
                sync();
#pragma unroll
                for (int e = 0; e < 8; e++)
                    shared[e][threadIdx.x] = v[e];
                sync();
#pragma unroll
                for (int e = 0; e < 8; e++) {
                    const u64 other = shared[e][threadIdx.x ^ d];
                    v[e] = (other < v[e]) == low ? other : v[e];
                }
                continue;
            }
#endif
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const u64 other = exchange(v[e], d);
                v[e] = (other < v[e]) == low ? other : v[e];
            }
        }
        merge_own(v, up);
    }
    end_main_loop();
    sync();
    u32* sorted = (u32*)shared + threadIdx.x / G * P;
#pragma unroll
    for (int e = 0; e < 8; e++)
        sorted[t * 8 + e] = (u32)v[e];
    sync();
    if (!real)
        return;
#pragma unroll 4
    for (int i = t; i < k; i += G) {
        const u32 index = sorted[i];
        values[base[1] + i * value_step] = x[base[0] + (i64)index * step];
        indices[base[2] + i * index_step] = index;
    }
}
