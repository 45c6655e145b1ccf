// SPDX-License-Identifier: Apache-2.0
// The first k elements of rows of at most 32 * E, in order of (key, index): a warp a row, E
// elements a lane, in registers. A round a result: the warp finds the smallest element, which its
// lane then drops. Keys of at most 32 bits, MASK their bits, flipped by DESCENDING; WARPS a block;
// k is at most 32.
KERNEL void __launch_bounds__(32 * WARPS)
    first_rows(const T* __restrict__ x, T* __restrict__ values, i64* __restrict__ indices,
               Nest kept, i64 n, i64 step, i64 value_step, i64 index_step, i32 k) {
    begin_kernel();
    const int lane = threadIdx.x % 32;
    const i64 row = (i64)blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= kept.count)
        return;
    i64 base[3];
    locate<KR, 3>(kept, row, base);
    grid_wait();
    u64 v[E];
#pragma unroll
    for (int e = 0; e < E; e++) {
        const int i = e * 32 + lane;
        v[e] = ~(u64)0;
        if (i < n) {
            u32 key = (u32)key_of(x[base[0] + i * step]);
            if (DESCENDING)
                key = ~key & MASK;
            v[e] = (u64)key << 32 | (u32)i;
        }
    }
    u32 own = 0; // the result of this lane's round
#pragma unroll 1
    for (int round = 0; round < k; round++) {
        u64 least = v[0];
#pragma unroll
        for (int e = 1; e < E; e++)
            least = v[e] < least ? v[e] : least;
#pragma unroll
        for (int d = 16; d > 0; d >>= 1) {
            const u64 other = exchange(least, d);
            least = other < least ? other : least;
        }
        own = lane == round ? (u32)least : own;
#pragma unroll
        for (int e = 0; e < E; e++)
            v[e] = v[e] == least ? ~(u64)0 : v[e];
    }
    end_main_loop();
    if (lane < k) {
        values[base[1] + lane * value_step] = x[base[0] + (i64)own * step];
        indices[base[2] + lane * index_step] = own;
    }
}
