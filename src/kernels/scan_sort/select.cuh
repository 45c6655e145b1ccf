// SPDX-License-Identifier: Apache-2.0
// The first k of long rows (blockIdx.y): finds the k-th key digit by digit from the top, each by
// counting digits among the keys that agree so far; then the indices of smaller keys, and of as
// many equal keys as fit, in their order. KEY u32 or u64, MASK its bits, flipped by DESCENDING.
// Traffic: x once per digit of 11 bits, and twice more.
#define BINS 2048
#define TILE 2048
struct State {
    KEY prefix; // digits found so far; all of them: the k-th key
    u32 left;   // how many elements of that prefix are needed
};
DEVICE KEY key_at(const T* x, i64 i, i64 step) {
    KEY key = (KEY)key_of(x[i * step]);
    return DESCENDING ? ~key & MASK : key;
}

#if STEP == 0
KERNEL void __launch_bounds__(256)
    select_clear(u32* __restrict__ counts, State* __restrict__ states, i64 n, i32 rows, u32 k) {
    begin_kernel();
    grid_wait();
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        counts[i] = 0;
    if (i < rows) {
        State s;
        s.prefix = 0;
        s.left = k;
        states[i] = s;
    }
}
#elif STEP == 1
KERNEL void __launch_bounds__(256) select_count(const T* __restrict__ x, u32* __restrict__ counts,
                                                const State* __restrict__ states, Nest kept, i64 n,
                                                i64 step, i32 shift, i32 width, i32 first) {
    begin_kernel();
    __shared__ u32 own[BINS];
    grid_wait();
    for (int i = threadIdx.x; i < BINS; i += 256)
        own[i] = 0;
    i64 base[3];
    locate<KR, 3>(kept, blockIdx.y, base);
    const KEY prefix = states[blockIdx.y].prefix;
    sync();
    const u32 digits = (1u << width) - 1u;
    i64 end = ((i64)blockIdx.x + 1) * (TILE * 4);
    end = end < n ? end : n;
#pragma unroll 8
    for (i64 i = (i64)blockIdx.x * (TILE * 4) + threadIdx.x; i < end; i += 256) {
        KEY key = key_at(x + base[0], i, step) >> shift;
        if (first || key >> width == prefix)
            atomicAdd(&own[(u32)key & digits], 1u);
    }
    sync();
    for (int i = threadIdx.x; i < BINS; i += 256)
        if (own[i])
            atomicAdd(&counts[(i64)blockIdx.y * BINS + i], own[i]);
}
#elif STEP == 2
/// A block per row: the digit of the k-th element.
KERNEL void __launch_bounds__(256)
    select_digit(const u32* __restrict__ counts, State* __restrict__ states, i32 width) {
    begin_kernel();
    __shared__ u32 memory[8];
    grid_wait();
    const u32* own = counts + (i64)blockIdx.x * BINS + threadIdx.x * 8;
    State s = states[blockIdx.x];
    u32 bins[8], sum = 0, all;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        bins[i] = own[i];
        sum += bins[i];
    }
    u32 before = block_scan(sum, memory, all);
    if (before < s.left && s.left <= before + sum) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (before < s.left && s.left <= before + bins[i]) {
                State next;
                next.prefix = (KEY)(s.prefix << width) | (KEY)(threadIdx.x * 8 + i);
                next.left = s.left - before;
                states[blockIdx.x] = next;
            }
            before += bins[i];
        }
    }
}
#elif STEP == 3
/// Counts of a thread's 8 elements: those before the k-th key (low half), and those equal to it.
DEVICE u64 sides(const T* x, i64 tile, i64 n, i64 step, KEY kth, u32& before, u32& equal) {
    before = equal = 0;
#pragma unroll
    for (int e = 0; e < 8; e++) {
        i64 i = tile + threadIdx.x * 8 + e;
        if (i >= n)
            break;
        KEY key = key_at(x, i, step);
        before |= key < kth ? 1u << e : 0u;
        equal |= key == kth ? 1u << e : 0u;
    }
    return (u64)__popc(equal) << 32 | (u32)__popc(before);
}
KERNEL void __launch_bounds__(256)
    select_sides(const T* __restrict__ x, u64* __restrict__ places,
                 const State* __restrict__ states, Nest kept, i64 n, i64 step) {
    begin_kernel();
    __shared__ u64 memory[8];
    grid_wait();
    i64 base[3];
    locate<KR, 3>(kept, blockIdx.y, base);
    u32 before, equal;
    u64 all;
    block_scan(sides(x + base[0], (i64)blockIdx.x * TILE, n, step, states[blockIdx.y].prefix,
                     before, equal),
               memory, all);
    if (threadIdx.x == 0)
        places[(i64)blockIdx.y * gridDim.x + blockIdx.x] = all;
}
/// A block per row: replaces counts of tiles by prefix sums.
KERNEL void __launch_bounds__(256) select_prefix_sum(u64* __restrict__ places, i32 tiles) {
    begin_kernel();
    __shared__ u64 memory[8];
    grid_wait();
    u64* own = places + (i64)blockIdx.x * tiles;
    u64 carry = 0;
    for (int begin = 0; begin < tiles; begin += 256) {
        int i = begin + threadIdx.x;
        u64 v = i < tiles ? own[i] : 0, all;
        u64 before = block_scan(v, memory, all);
        if (i < tiles)
            own[i] = carry + before;
        carry += all;
    }
}
KERNEL void __launch_bounds__(256)
    select_write(const T* __restrict__ x, const u64* __restrict__ places,
                 const State* __restrict__ states, u32* __restrict__ chosen, Nest kept, i64 n,
                 i64 step, u32 k) {
    begin_kernel();
    __shared__ u64 memory[8];
    grid_wait();
    i64 base[3], tile = (i64)blockIdx.x * TILE;
    locate<KR, 3>(kept, blockIdx.y, base);
    const State s = states[blockIdx.y];
    u32 before, equal;
    u64 own = sides(x + base[0], tile, n, step, s.prefix, before, equal), all;
    u64 place = places[(i64)blockIdx.y * gridDim.x + blockIdx.x] + block_scan(own, memory, all);
    u32 at = (u32)place, rank = (u32)(place >> 32);
    u32* to = chosen + (i64)blockIdx.y * k;
    for (u32 e = 0; e < 8; e++) {
        u32 index = (u32)(tile + threadIdx.x * 8 + e);
        if (before >> e & 1u)
            to[at++] = index;
        if (equal >> e & 1u) {
            if (rank < s.left)
                to[k - s.left + rank] = index;
            rank++;
        }
    }
}
#endif
