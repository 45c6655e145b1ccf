// SPDX-License-Identifier: Apache-2.0
// Coordinates of the nonzero elements, in row-major order: mark and count them in each tile,
// compute prefix sums of the counts, write. A tile is 256 threads times LOADS loads of VEC
// elements; element v of load k of a thread is (k * 256 + thread) * VEC + v of the tile. With VEC >
// 1 the elements are contiguous. Scratch: the total (u64), a prefix sum per tile, then 16 marks for
// each thread of each tile. Traffic: x once, the result once.
#define TILE (256 * VEC * LOADS)
#if STEP == 0
/// Bit k * VEC + v: element v of load k is not zero.
DEVICE u32 found(const T* x, const Nest& n, i64 tile) {
    u32 bits = 0;
#if VEC > 1
    Pack<T, VEC> p[LOADS];
    const i64 first = tile + threadIdx.x * VEC, left = n.count - first;
    x += first;
#pragma unroll
    for (int k = 0; k < LOADS; k++)
        if (left >= (k * 256 + 1) * VEC)
            p[k] = *(const Pack<T, VEC>*)(x + k * 256 * VEC);
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        if (left >= (k * 256 + 1) * VEC) {
#pragma unroll
            for (int v = 0; v < VEC; v++)
                bits |= widen(p[k].v[v]) != 0 ? 1u << (k * VEC + v) : 0u;
        } else {
            for (int v = 0; k * 256 * VEC + v < left; v++)
                bits |= widen(x[k * 256 * VEC + v]) != 0 ? 1u << (k * VEC + v) : 0u;
        }
    }
#else
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        i64 i = tile + k * 256 + threadIdx.x, at[1];
        if (i >= n.count)
            break;
        locate<KR, 1>(n, i, at);
        bits |= widen(x[at[0]]) != 0 ? 1u << k : 0u;
    }
#endif
    return bits;
}
KERNEL void __launch_bounds__(256) nonzero_count(const T* __restrict__ x, u64* __restrict__ places,
                                                 u16* __restrict__ marks, Nest n) {
    begin_kernel();
    __shared__ u32 memory[8];
    grid_wait();
    u32 bits = found(x, n, (i64)blockIdx.x * TILE), all;
    marks[(i64)blockIdx.x * 256 + threadIdx.x] = (u16)bits;
    block_scan((u32)__popc(bits), memory, all);
    if (threadIdx.x == 0)
        places[1 + blockIdx.x] = all;
}
#elif STEP == 1
/// One block: replaces counts by their exclusive prefix sums, with the total before them.
KERNEL void __launch_bounds__(1024) prefix_sum_of_counts(u64* __restrict__ places, i64 count) {
    begin_kernel();
    __shared__ u64 memory[32];
    grid_wait();
    u64 carry = 0;
    for (i64 begin = 0; begin < count; begin += 4096) {
        const i64 first = begin + threadIdx.x * 4;
        u64 v[4], sum = 0, all;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            v[e] = first + e < count ? places[1 + first + e] : 0;
            sum += v[e];
        }
        u64 before = carry + block_scan<32>(sum, memory, all);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            if (first + e < count)
                places[1 + first + e] = before;
            before += v[e];
        }
        carry += all;
    }
    if (threadIdx.x == 0)
        places[0] = carry;
}
#else
struct Extents {
    i64 size[8];
    i64 axis_step, step;
};
KERNEL void __launch_bounds__(256)
    nonzero_write(i64* __restrict__ out, const u64* __restrict__ places,
                  const u16* __restrict__ marks, Extents s) {
    begin_kernel();
    __shared__ u64 memory[8];
    __shared__ u16 kept[TILE];
    grid_wait();
    const u32 bits = marks[(i64)blockIdx.x * 256 + threadIdx.x];
    i64* to = out + (i64)places[1 + blockIdx.x] * s.step;
    // Counts of each load, 16 bits wide.
    u64 counts = 0, all;
#pragma unroll
    for (int k = 0; k < LOADS; k++)
        counts |= (u64)__popc(bits >> (k * VEC) & ((1u << VEC) - 1u)) << (16 * k);
    const u64 before = block_scan(counts, memory, all);
    u32 total = 0;
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        u32 at = total + ((u32)(before >> (16 * k)) & 0xffffu);
        for (u32 b = bits >> (k * VEC) & ((1u << VEC) - 1u); b; b &= b - 1)
            kept[at++] = (u16)((k * 256 + threadIdx.x) * VEC + (31 - __clz((i32)(b & (~b + 1)))));
        total += (u32)(all >> (16 * k)) & 0xffffu;
    }
    sync();
    const i64 tile = (i64)blockIdx.x * TILE;
    for (u32 i = threadIdx.x; i < total; i += 256) {
        i64 rest = tile + kept[i];
#pragma unroll
        for (int d = RANK - 1; d >= 0; d--) {
            i64 q = d == 0         ? 0
                    : (rest >> 32) ? rest / s.size[d]
                                   : (i64)((u32)rest / (u32)s.size[d]);
            to[i * s.step + d * s.axis_step] = rest - q * s.size[d];
            rest = q;
        }
    }
}
#endif
