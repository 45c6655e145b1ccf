// SPDX-License-Identifier: Apache-2.0
// Stable radix sort of long rows (blockIdx.y), 8 bits per pass: count the digits of each tile,
// compute prefix sums of the counts, scatter. Keys and indices alternate between two buffers; the
// elements themselves are fetched once, at the end. KEY u32 or u64, ITEMS elements for each of the
// 512 threads of a tile.
#define TILE (512 * ITEMS)
#if STEP == 0
KERNEL void __launch_bounds__(256)
    radix_keys(const T* __restrict__ x, KEY* __restrict__ keys, u32* __restrict__ from, Nest kept,
               i64 first_row, i64 n, i64 step) {
    begin_kernel();
    grid_wait();
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    i64 base[3];
    locate<KR, 3>(kept, first_row + blockIdx.y, base);
    KEY key = (KEY)key_of(x[base[0] + i * step]);
    keys[blockIdx.y * n + i] = DESCENDING ? ~key & MASK : key;
    from[blockIdx.y * n + i] = (u32)i;
}
KERNEL void __launch_bounds__(256)
    radix_gather(const T* __restrict__ x, T* __restrict__ values, i64* __restrict__ indices,
                 const u32* __restrict__ from, Nest kept, i64 first_row, i64 n, i64 step,
                 i64 value_step, i64 index_step, i64 k) {
    begin_kernel();
    grid_wait();
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= k)
        return;
    i64 base[3];
    locate<KR, 3>(kept, first_row + blockIdx.y, base);
    u32 index = from[blockIdx.y * n + i];
    values[base[1] + i * value_step] = x[base[0] + (i64)index * step];
    indices[base[2] + i * index_step] = index;
}
#else
DEVICE i64 tile_position() {
    return (i64)blockIdx.x * TILE + (threadIdx.x / 32) * (32 * ITEMS) + threadIdx.x % 32;
}

#if STEP == 1
KERNEL void __launch_bounds__(512)
    radix_count(const KEY* __restrict__ keys, u32* __restrict__ places, i64 n, i32 shift) {
    begin_kernel();
    __shared__ u32 counts[256];
    grid_wait();
    keys += blockIdx.y * n;
    if (threadIdx.x < 256)
        counts[threadIdx.x] = 0;
    sync();
    i64 at = tile_position();
#pragma unroll
    for (int e = 0; e < ITEMS; e++)
        if (at + e * 32 < n)
            atomicAdd(&counts[(u32)(keys[at + e * 32] >> shift) & 255u], 1u);
    sync();
    if (threadIdx.x < 256)
        places[((i64)blockIdx.y * 256 + threadIdx.x) * gridDim.x + blockIdx.x] =
            counts[threadIdx.x];
}
/// A block for each digit of each row: exclusive prefix sums over the tiles, in place.
KERNEL void __launch_bounds__(256)
    radix_prefix_sum(u32* __restrict__ places, u32* __restrict__ totals, i32 tiles) {
    begin_kernel();
    __shared__ u32 memory[8];
    grid_wait();
    u32* own = places + ((i64)blockIdx.y * 256 + blockIdx.x) * tiles;
    u32 carry = 0;
    for (int begin = 0; begin < tiles; begin += 256) {
        int i = begin + threadIdx.x;
        u32 v = i < tiles ? own[i] : 0u, all;
        u32 before = block_scan(v, memory, all);
        if (i < tiles)
            own[i] = carry + before;
        carry += all;
    }
    if (threadIdx.x == 0)
        totals[blockIdx.y * 256 + blockIdx.x] = carry;
}
#else
/// Ranks of this thread's keys among those of the same digit and warp; counts[warp][digit]. Element
/// e of a thread is at warp * 32 * ITEMS + e * 32 + lane of the tile.
DEVICE void rank_keys(const KEY* key, int shift, i64 at, i64 n, u16 (*counts)[256], u32* rank) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int d = lane; d < 256; d += 32)
        counts[warp][d] = 0;
    sync_warp();
#pragma unroll
    for (int e = 0; e < ITEMS; e++) {
        u32 digit = (u32)(key[e] >> shift) & 255u;
        bool real = at + e * 32 < n;
        u32 same = ballot(real);
#pragma unroll
        for (int b = 0; b < 8; b++) {
            bool one = (digit >> b) & 1u;
            u32 set = ballot(one);
            same &= one ? set : ~set;
        }
        u32 before = (u32)__popc(same & lanes_below(lane));
        u32 old = real ? counts[warp][digit] : 0u;
        rank[e] = old + before;
        sync_warp();
        if (real && before == 0)
            counts[warp][digit] = (u16)(old + (u32)__popc(same));
        sync_warp();
    }
    sync();
}
KERNEL void __launch_bounds__(512)
    radix_scatter(const KEY* __restrict__ keys, const u32* __restrict__ from,
                  KEY* __restrict__ to_keys, u32* __restrict__ to, const u32* __restrict__ places,
                  const u32* __restrict__ totals, i64 n, i32 shift) {
    begin_kernel();
    __shared__ u16 counts[16][256];
    __shared__ u32 start[256], target[256], memory[16];
    __shared__ KEY sorted[TILE];
    __shared__ u32 moved[TILE];
    grid_wait();
    i64 row = blockIdx.y, at = tile_position();
    keys += row * n;
    from += row * n;
    KEY key[ITEMS];
    u32 rank[ITEMS];
#pragma unroll
    for (int e = 0; e < ITEMS; e++)
        key[e] = at + e * 32 < n ? keys[at + e * 32] : (KEY)0;
    rank_keys(key, shift, at, n, counts, rank);
    const int d = threadIdx.x & 255, warp = threadIdx.x / 32;
    const bool own = threadIdx.x < 256;
    u32 sum = 0, all;
    if (own) {
#pragma unroll
        for (int w = 0; w < 16; w++) {
            u32 c = counts[w][d];
            counts[w][d] = (u16)sum;
            sum += c;
        }
    }
    u32 local = block_scan<16>(sum, memory, all);
    u32 global = block_scan<16>(own ? totals[row * 256 + d] : 0u, memory, all);
    if (own) {
        start[d] = local;
        target[d] = global + places[(row * 256 + d) * gridDim.x + blockIdx.x] - local;
    }
    sync();
#pragma unroll
    for (int e = 0; e < ITEMS; e++) {
        if (at + e * 32 < n) {
            u32 digit = (u32)(key[e] >> shift) & 255u;
            u32 place = start[digit] + counts[warp][digit] + rank[e];
            sorted[place] = key[e];
            moved[place] = from[at + e * 32];
        }
    }
    sync();
    i64 left = n - (i64)blockIdx.x * TILE;
    int count = left < TILE ? (int)left : TILE;
    for (int i = threadIdx.x; i < count; i += 512) {
        KEY v = sorted[i];
        i64 place = row * n + (u32)(target[(u32)(v >> shift) & 255u] + i);
        to_keys[place] = v;
        to[place] = moved[i];
    }
}
#endif
#endif
