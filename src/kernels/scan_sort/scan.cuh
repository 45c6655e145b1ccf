// SPDX-License-Identifier: Apache-2.0
// Cumulative FN along an axis, one row per block (blockIdx.y counts rows). PHASE 0: the block loops
// over the row with a carry. Long rows: 1 combines each tile, 2 scans the results of a row's tiles,
// 3 scans each tile from the result before it. PHASE 4: a thread per row, for many adjacent rows.
// PHASE 5: a warp per row, for rows of at most 32 * SHARE elements. PHASE 6: 8 warps, whose lanes
// are 32 adjacent rows, for rows of at most 8 * SHARE elements. T stored, C compute; EXCLUSIVE and
// REVERSE as in the op; VECTORS: rows are contiguous and accessed by 8 elements.
#define TILE (256 * 8)
DEVICE C shift_up(C v, int d) {
    union {
        C v;
        u32 u;
        u64 w;
    } b;
    b.w = 0;
    b.v = v;
    if (sizeof(C) == 8)
        b.w = shfl_up(b.w, d);
    else
        b.u = shfl_up(b.u, d);
    return b.v;
}
/// The combination of all lanes up to this one; `before`: of those before it.
DEVICE C up_to_me(C sum, C& before) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        C u = shift_up(sum, d);
        if (lane >= d)
            sum = combine<FN>(u, sum);
    }
    before = shift_up(sum, 1);
    if (lane == 0)
        before = IDENTITY;
    return sum;
}
/// The combination of all threads before this one, and of all of them.
DEVICE C before_me(C v, C* memory, C& all) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    C before, sum = up_to_me(v, before);
    sync();
    if (lane == 31)
        memory[warp] = sum;
    sync();
    C front = IDENTITY;
    all = IDENTITY;
#pragma unroll
    for (int w = 0; w < 8; w++) {
        C part = memory[w];
        if (w < warp)
            front = combine<FN>(front, part);
        all = combine<FN>(all, part);
    }
    return combine<FN>(front, before);
}
struct Line {
    i64 n, x_step, out_step;
};
DEVICE i64 place(i64 i, i64 n) {
    return REVERSE ? n - 1 - i : i;
}
/// One tile from `carry`; returns the carry after it.
DEVICE C scan_tile(const T* x, T* out, const Line& l, i64 tile, C carry, C* memory) {
    C v[8], own = IDENTITY, all;
    i64 first = tile * TILE + threadIdx.x * 8;
#if VECTORS
    Pack<T, 8> io;
    if (first < l.n)
        io = *(const Pack<T, 8>*)(x + first);
#endif
#pragma unroll
    for (int e = 0; e < 8; e++) {
#if VECTORS
        v[e] = first < l.n ? (C)widen(io.v[e]) : IDENTITY;
#else
        v[e] = first + e < l.n ? (C)widen(x[place(first + e, l.n) * l.x_step]) : IDENTITY;
#endif
        own = combine<FN>(own, v[e]);
    }
    C running = combine<FN>(carry, before_me(own, memory, all));
#if PHASE != 1
#pragma unroll
    for (int e = 0; e < 8; e++) {
        C next = combine<FN>(running, v[e]);
#if VECTORS
        io.v[e] = narrow<T>(EXCLUSIVE ? running : next);
#else
        if (first + e < l.n)
            out[place(first + e, l.n) * l.out_step] = narrow<T>(EXCLUSIVE ? running : next);
#endif
        running = next;
    }
#if VECTORS
    if (first < l.n)
        *(Pack<T, 8>*)(out + first) = io;
#endif
#endif
    return combine<FN>(carry, all);
}

#if PHASE == 2
/// In place: replaces each tile's result by the combination of earlier ones.
KERNEL void __launch_bounds__(256) scan_parts(C* __restrict__ parts, i32 count) {
    begin_kernel();
    __shared__ C memory[8];
    grid_wait();
    C* own = parts + (i64)blockIdx.x * count;
    C carry = IDENTITY;
    for (int begin = 0; begin < count; begin += 256) {
        int i = begin + threadIdx.x;
        C v = i < count ? own[i] : IDENTITY, all;
        C before = combine<FN>(carry, before_me(v, memory, all));
        if (i < count)
            own[i] = before;
        carry = combine<FN>(carry, all);
    }
}
#elif PHASE == 4
KERNEL void __launch_bounds__(256)
    scan_columns(const T* __restrict__ x, T* __restrict__ out, Nest kept, Line l) {
    begin_kernel();
    grid_wait();
    i64 row = (i64)blockIdx.x * 256 + threadIdx.x;
    if (row >= kept.count)
        return;
    i64 at[2];
    locate<KR, 2>(kept, row, at);
    C running = IDENTITY;
#pragma unroll 4
    for (i64 i = 0; i < l.n; i++) {
        C next = combine<FN>(running, (C)widen(x[at[0] + place(i, l.n) * l.x_step]));
        out[at[1] + place(i, l.n) * l.out_step] = narrow<T>(EXCLUSIVE ? running : next);
        running = next;
    }
}
#elif PHASE == 5
KERNEL void __launch_bounds__(256)
    scan_short_rows(const T* __restrict__ x, T* __restrict__ out, Nest kept, Line l) {
    begin_kernel();
    grid_wait();
    i64 row = (i64)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= kept.count)
        return;
    i64 at[2];
    locate<KR, 2>(kept, row, at);
    i64 first = threadIdx.x % 32 * SHARE;
    C v[SHARE], own = IDENTITY, running;
#pragma unroll
    for (int e = 0; e < SHARE; e++) {
        v[e] = first + e < l.n ? (C)widen(x[at[0] + place(first + e, l.n) * l.x_step]) : IDENTITY;
        own = combine<FN>(own, v[e]);
    }
    up_to_me(own, running);
#pragma unroll
    for (int e = 0; e < SHARE; e++) {
        C next = combine<FN>(running, v[e]);
        if (first + e < l.n)
            out[at[1] + place(first + e, l.n) * l.out_step] = narrow<T>(EXCLUSIVE ? running : next);
        running = next;
    }
}
#elif PHASE == 6
KERNEL void __launch_bounds__(256)
    scan_short_columns(const T* __restrict__ x, T* __restrict__ out, Nest kept, Line l) {
    begin_kernel();
    __shared__ C sums[8][32];
    grid_wait();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 row = (i64)blockIdx.x * 32 + lane, first = (i64)warp * SHARE;
    const bool inside = row < kept.count;
    i64 at[2];
    locate<KR, 2>(kept, inside ? row : 0, at);
    C v[SHARE], own = IDENTITY, running = IDENTITY;
#pragma unroll
    for (int e = 0; e < SHARE; e++) {
        v[e] = inside && first + e < l.n ? (C)widen(x[at[0] + place(first + e, l.n) * l.x_step])
                                         : IDENTITY;
        own = combine<FN>(own, v[e]);
    }
    sums[warp][lane] = own;
    sync();
#pragma unroll
    for (int w = 0; w < 8; w++)
        if (w < warp)
            running = combine<FN>(running, sums[w][lane]);
#pragma unroll
    for (int e = 0; e < SHARE; e++) {
        C next = combine<FN>(running, v[e]);
        if (inside && first + e < l.n)
            out[at[1] + place(first + e, l.n) * l.out_step] = narrow<T>(EXCLUSIVE ? running : next);
        running = next;
    }
}
#else
KERNEL void __launch_bounds__(256, 4) scan_rows(const T* __restrict__ x, T* __restrict__ out,
                                                C* __restrict__ parts, Nest kept, Line l) {
    begin_kernel();
    __shared__ C memory[8];
    grid_wait();
#if PHASE == 0
    i64 row = blockIdx.x;
#else
    i64 row = blockIdx.y;
#endif
    i64 at[2];
    locate<KR, 2>(kept, row, at);
#if PHASE == 0
    C carry = IDENTITY;
    for (i64 t = 0; t * TILE < l.n; t++)
        carry = scan_tile(x + at[0], out + at[1], l, t, carry, memory);
#else
    C* part = parts + row * gridDim.x + blockIdx.x;
#if PHASE == 1
    C all = scan_tile(x + at[0], out, l, blockIdx.x, IDENTITY, memory);
    if (threadIdx.x == 0)
        *part = all;
#else
    scan_tile(x + at[0], out + at[1], l, blockIdx.x, *part, memory);
#endif
#endif
}
#endif
