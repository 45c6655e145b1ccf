// SPDX-License-Identifier: Apache-2.0
// Coordinates of the elements that are not zero, in row-major order: count them in each tile of
// 2048, turn the counts into places, write. Scratch: the total (u64), then a place for each tile.
#define TILE (256 * 8)
/// Bit e: element e of this thread is not zero. Element e is at tile + thread * 8 + e.
DEVICE u32 found(const T* x, const Nest& n, i64 tile) {
    u32 bits = 0;
#pragma unroll
    for (int e = 0; e < 8; e++) {
        i64 i = tile + threadIdx.x * 8 + e;
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
    __shared__ u16 kept[TILE];
    grid_wait();
    i64 tile = (i64)blockIdx.x * TILE;
    u32 bits = found(x, n, tile), all;
    u32 at = block_scan((u32)__popc(bits), memory, all);
    for (; bits; bits &= bits - 1)
        kept[at++] = (u16)(threadIdx.x * 8 + (31 - __clz((i32)(bits & (~bits + 1)))));
    sync();
    i64* to = out + (i64)places[1 + blockIdx.x] * s.step;
    for (u32 i = threadIdx.x; i < all; i += 256) {
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
