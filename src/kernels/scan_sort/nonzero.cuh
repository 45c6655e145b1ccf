// SPDX-License-Identifier: Apache-2.0
// Coordinates of the elements that are not zero, in row-major order: count them in each tile of
// 2048, turn the counts into places, write. Scratch: the total (u64), then a place for each tile.
#define TILE (256 * 8)
/// Bit e: element e of this thread is not zero. Element e is at tile + e * 256 + thread.
DEVICE u32 found(const T* x, const Nest& n, i64 tile) {
    u32 bits = 0;
#pragma unroll
    for (int e = 0; e < 8; e++) {
        i64 i = tile + e * 256 + threadIdx.x;
        if (i >= n.count)
            break;
        i64 at[1];
        locate<KR, 1>(n, i, at);
        if (widen(x[at[0]]) != 0)
            bits |= 1u << e;
    }
    return bits;
}
#if STEP == 0
KERNEL void __launch_bounds__(256)
    nonzero_count(const T* __restrict__ x, u64* __restrict__ places, Nest n) {
    __shared__ u32 memory[8];
    grid_wait();
    u32 all;
    block_scan((u32)__popc(found(x, n, (i64)blockIdx.x * TILE)), memory, all);
    if (threadIdx.x == 0)
        places[1 + blockIdx.x] = all;
}
#elif STEP == 1
/// One block: counts become places, in place; the total stands before them.
KERNEL void __launch_bounds__(256) places_of_counts(u64* __restrict__ places, i64 count) {
    __shared__ u64 memory[8];
    grid_wait();
    u64 carry = 0;
    for (i64 begin = 0; begin < count; begin += 256) {
        i64 i = begin + threadIdx.x;
        u64 v = i < count ? places[1 + i] : 0, all;
        u64 before = block_scan(v, memory, all);
        if (i < count)
            places[1 + i] = carry + before;
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
    nonzero_write(const T* __restrict__ x, i64* __restrict__ out, const u64* __restrict__ places,
                  Nest n, Extents s) {
    __shared__ u32 memory[8];
    grid_wait();
    i64 tile = (i64)blockIdx.x * TILE;
    u32 bits = found(x, n, tile);
    u64 place = places[1 + blockIdx.x];
#pragma unroll
    for (int e = 0; e < 8; e++) {
        u32 all, one = bits >> e & 1u;
        u32 before = block_scan(one, memory, all);
        if (one) {
            i64 rest = tile + e * 256 + threadIdx.x;
            i64* to = out + (i64)(place + before) * s.step;
#pragma unroll
            for (int d = RANK - 1; d >= 0; d--) {
                i64 q = (rest >> 32) ? rest / s.size[d] : (i64)((u32)rest / (u32)s.size[d]);
                to[d * s.axis_step] = rest - q * s.size[d];
                rest = q;
            }
        }
        place += all;
    }
}
#endif
