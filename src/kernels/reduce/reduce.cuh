// SPDX-License-Identifier: Apache-2.0
// Reductions over rows. Memory traffic: every element of x once; few long rows are split over
// blocks, whose partial results a second kernel combines in a fixed order.
//
// T stored type of x, C compute type, FN as in combine.cuh, IDENTITY its identity, OUT
// stored result, R type of the result before it is stored; KR and RR: axes kept and reduced; V
// elements a load; G threads a row (reduce_rows); ARG: 0, or 1 for the place of the extreme (LAST:
// of the last one among equals).
struct Inner {
    i64 count;
    i64 sizes[8];
    i64 strides[8];
};
DEVICE i64 inner_offset(const Inner& n, i64 index) {
    if (RR == 1)
        return index * n.strides[0];
    i64 at = 0;
    u64 i = (u64)index;
#pragma unroll
    for (int k = RR - 1; k >= 0; k--) {
        u64 q = k == 0 ? 0 : (i >> 32) ? i / (u64)n.sizes[k] : (u64)((u32)i / (u32)n.sizes[k]);
        at += (i64)(i - q * (u64)n.sizes[k]) * n.strides[k];
        i = q;
    }
    return at;
}

#if ARG
struct Acc {
    C v;
    i64 i;
};
DEVICE Acc acc_empty() {
    Acc a;
    a.v = (C)0;
    a.i = -1;
    return a;
}
DEVICE bool further(C a, C b) { // a is more extreme than b
#if FN == 2
    return a < b || (a != a && b == b);
#else
    return a > b || (a != a && b == b);
#endif
}
DEVICE Acc merge(Acc a, Acc b) {
    if (b.i < 0)
        return a;
    if (a.i < 0 || further(b.v, a.v))
        return b;
    if (further(a.v, b.v))
        return a;
    return (LAST ? b.i > a.i : b.i < a.i) ? b : a;
}
DEVICE Acc acc_of(C v, i64 i) {
    Acc a;
    a.v = v;
    a.i = i;
    return a;
}
DEVICE Acc acc_exchange(Acc a, int m) {
    Acc b;
    b.v = exchange(a.v, m);
    b.i = exchange(a.i, m);
    return b;
}
DEVICE R result_of(Acc a) {
    return (R)a.i;
}
#else
struct Acc {
    C v;
};
DEVICE Acc acc_empty() {
    Acc a;
    a.v = IDENTITY;
    return a;
}
DEVICE Acc merge(Acc a, Acc b) {
    a.v = combine<FN>(a.v, b.v);
    return a;
}
DEVICE Acc acc_of(C v, i64) {
    Acc a;
    a.v = v;
    return a;
}
DEVICE Acc acc_exchange(Acc a, int m) {
    a.v = exchange(a.v, m);
    return a;
}
DEVICE R result_of(Acc a) {
    return (R)a.v;
}
#endif
template <int N>
DEVICE Acc warp_merge(Acc a) {
#pragma unroll
    for (int m = N / 2; m > 0; m >>= 1)
        a = merge(a, acc_exchange(a, m));
    return a;
}
DEVICE void deliver(Acc a, OUT* out, const i64* at EPI_PARAMS) {
    out[at[1]] = epilogue(result_of(a), at EPI_PASS);
}

#if FORM == 0
// G threads per row: 1, 32 or all 256 of the block.
KERNEL void __launch_bounds__(256)
    reduce_rows(const T* __restrict__ x, OUT* __restrict__ out, Acc* __restrict__ partial,
                Nest kept, Inner inner, i64 part EPI_PARAMS) {
    begin_kernel();
    grid_wait();
    int lane = threadIdx.x % G;
    i64 row = (i64)blockIdx.x * (256 / G) + threadIdx.x / G;
    Acc a = acc_empty();
    i64 at[NV];
    bool inside = row < kept.count;
    locate<KR, NV>(kept, inside ? row : 0, at);
    i64 begin = blockIdx.y * part, end = inside ? inner.count : 0;
    end = begin + part < end ? begin + part : end;
    const T* p = x + at[0];
#pragma unroll 4
    for (i64 i = begin + lane * V; i < end; i += G * V) {
        Pack<T, V> v = *(const Pack<T, V>*)(p + inner_offset(inner, i));
#pragma unroll
        for (int k = 0; k < V; k++)
            a = merge(a, acc_of((C)widen(v.v[k]), i + k));
    }
    if (G > 1)
        a = warp_merge<(G < 32 ? G : 32)>(a);
#if G > 32
    __shared__ Acc warps[8];
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = a;
    sync();
    if (threadIdx.x >= 32)
        return;
    a = threadIdx.x < 8 ? warps[threadIdx.x] : acc_empty();
    a = warp_merge<8>(a);
#endif
    end_main_loop();
    if (!inside || lane != 0)
        return;
    if (partial)
        partial[row * gridDim.y + blockIdx.y] = a;
    else
        deliver(a, out, at EPI_PASS);
}
#elif FORM == 1
// The innermost kept axis is contiguous: a lane takes V of its elements, and the 8 warps of the
// block split the reduced axis.
KERNEL void __launch_bounds__(256)
    reduce_columns(const T* __restrict__ x, OUT* __restrict__ out, Acc* __restrict__ partial,
                   Nest kept, Inner inner, i64 part EPI_PARAMS) {
    begin_kernel();
    __shared__ Acc warps[8][32 * V + 1];
    grid_wait();
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // The number of blocks along the axis, and of earlier blocks, is below 2^31.
    i64 width = kept.sizes[KR - 1];
    u32 blocks = (u32)((u64)(width + 32 * V - 1) / (32u * V)), before = blockIdx.x / blocks;
    i64 outer = before, first = (i64)(blockIdx.x - before * blocks) * (32 * V);
    i64 column = first + lane * V;
    Acc a[V];
#pragma unroll
    for (int k = 0; k < V; k++)
        a[k] = acc_empty();
    i64 begin = blockIdx.y * part, end = begin + part < inner.count ? begin + part : inner.count;
    if (column < width) {
        i64 at[NV];
        locate<KR, NV>(kept, outer * width + column, at);
        const T* p = x + at[0];
#pragma unroll 4
        for (i64 i = begin + warp; i < end; i += 8) {
            Pack<T, V> v = *(const Pack<T, V>*)(p + inner_offset(inner, i));
#pragma unroll
            for (int k = 0; k < V; k++)
                a[k] = merge(a[k], acc_of((C)widen(v.v[k]), i));
        }
    }
#pragma unroll
    for (int k = 0; k < V; k++)
        warps[warp][lane * V + k] = a[k];
    sync();
    end_main_loop();
    for (int c = threadIdx.x; c < 32 * V; c += 256) {
        if (first + c >= width)
            break;
        Acc b = warps[0][c];
#pragma unroll
        for (int w = 1; w < 8; w++)
            b = merge(b, warps[w][c]);
        i64 row = outer * width + first + c;
        if (partial) {
            partial[row * gridDim.y + blockIdx.y] = b;
        } else {
            i64 at[NV];
            locate<KR, NV>(kept, row, at);
            deliver(b, out, at EPI_PASS);
        }
    }
}
#else
// A warp combines the `parts` partial results of a row.
KERNEL void __launch_bounds__(256)
    reduce_parts(const Acc* __restrict__ partial, OUT* __restrict__ out, Nest kept,
                 i32 parts EPI_PARAMS) {
    begin_kernel();
    grid_wait();
    int lane = threadIdx.x % 32;
    i64 row = (i64)blockIdx.x * 8 + threadIdx.x / 32;
    Acc a = acc_empty();
    bool inside = row < kept.count;
    for (int i = lane; inside && i < parts; i += 32)
        a = merge(a, partial[row * parts + i]);
    a = warp_merge<32>(a);
    end_main_loop();
    if (!inside || lane != 0)
        return;
    i64 at[NV];
    locate<KR, NV>(kept, row, at);
    deliver(a, out, at EPI_PASS);
}
#endif
