// SPDX-License-Identifier: Apache-2.0
// Contraction on tensor cores. A_ALIGNED, B_ALIGNED: the bytes, 16, 8 or 4, that are aligned and
// dense along the depth (for B_COLUMNS: along the columns); 0: elements are gathered with a stride.
struct Copies {
    static constexpr int rows_at_once = threads / chunks;
    static constexpr int na = BM / rows_at_once, nb = BN / rows_at_once;
    const IN *a, *b;
    u8* memory;
    i64 m0, n0;
    const Geometry& g;
    // Offsets of the rows, stored where computing them takes more than a product.
    u32 oa[A_ALIGNED && RM > 1 ? na : 1], ob[B_ALIGNED && !B_COLUMNS && RN > 1 ? nb : 1];
    int row, chunk;
    DEVICE Copies(const IN* a_, const IN* b_, u8* memory_, const Tile& t, const Geometry& g_)
        : memory(memory_), m0(t.m), n0(t.n), g(g_) {
        u32 at[RB];
        unravel<RB>(at, t.batch, g.batch);
        a = a_ + place<RB>(at, g.ab);
        b = b_ + place<RB>(at, g.bb);
        row = threadIdx.x / chunks, chunk = threadIdx.x % chunks;
#if A_ALIGNED && RM > 1
#pragma unroll
        for (int i = 0; i < na; i++)
            oa[i] = row_of_a(i);
#endif
#if B_ALIGNED && !B_COLUMNS && RN > 1
#pragma unroll
        for (int i = 0; i < nb; i++)
            ob[i] = row_of_b(i);
#endif
    }
    // Rows and columns past the edge repeat the last one.
    DEVICE u32 row_of_a(int i) const {
        i64 m = m0 + row + i * rows_at_once;
        return (u32)offset_of<RM>((u32)(m < g.m ? m : g.m - 1), g.rows, g.am);
    }
    DEVICE u32 row_of_b(int i) const {
        i64 n = n0 + row + i * rows_at_once;
        return (u32)offset_of<RN>((u32)(n < g.n ? n : g.n - 1), g.columns, g.bn);
    }
    DEVICE void operator()(int stage, int step) {
        u32 to = stage * stage_bytes;
        i64 k = (i64)step * BK + chunk * per_chunk;
        int count = (int)(g.k - k < per_chunk ? g.k - k : per_chunk);
        if (count < 0)
            count = 0;
        i64 ka = count > 0 ? k * g.ak[0] : 0;
#if A_ALIGNED
#pragma unroll
        for (int i = 0; i < na; i++)
            copy_chunk<A_ALIGNED>(memory, to + swizzled<row_bytes>(row + i * rows_at_once, chunk),
                                  a + ka + (RM > 1 ? oa[RM > 1 ? i : 0] : row_of_a(i)), 1, count);
#else
#pragma unroll 1
        for (int i = 0; i < na; i++)
            copy_chunk<0>(memory, to + swizzled<row_bytes>(row + i * rows_at_once, chunk),
                          a + ka + row_of_a(i), g.ak[0], count);
#endif
        to += a_bytes;
#if B_COLUMNS
        constexpr int column_chunks = BN * element / 16, at_once = threads / column_chunks;
        int r = threadIdx.x / column_chunks, c = threadIdx.x % column_chunks;
        i64 n = n0 + c * per_chunk;
        int wide = (int)(g.n - n < per_chunk ? g.n - n : per_chunk);
        i64 on = offset_of<RN>((u32)(wide > 0 ? n : 0), g.columns, g.bn);
#pragma unroll
        for (int i = 0; i < BK / at_once; i++) {
            i64 kb = (i64)step * BK + r + i * at_once;
            bool inside = kb < g.k && wide > 0;
            copy_chunk<16>(memory, to + swizzled<BN * element>(r + i * at_once, c),
                           b + (inside ? on + kb * g.bk[0] : 0), 1, inside ? wide : 0);
        }
#else
        i64 kb = count > 0 ? k * g.bk[0] : 0;
#if B_ALIGNED
#pragma unroll
        for (int i = 0; i < nb; i++)
            copy_chunk<B_ALIGNED>(memory, to + swizzled<row_bytes>(row + i * rows_at_once, chunk),
                                  b + kb + (RN > 1 ? ob[RN > 1 ? i : 0] : row_of_b(i)), 1, count);
#else
#pragma unroll 1
        for (int i = 0; i < nb; i++)
            copy_chunk<0>(memory, to + swizzled<row_bytes>(row + i * rows_at_once, chunk),
                          b + kb + row_of_b(i), g.bk[0], count);
#endif
#endif
    }
};

KERNEL void __launch_bounds__(threads, 1)
    gemm_mma(const IN* __restrict__ a, const IN* __restrict__ b, OUT* __restrict__ out,
             ACC* __restrict__ partial, i32 splits, const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    Tile t(g, splits);
    grid_wait();
    Copies copies(a, b, memory, t, g);
    Sums sums;
    multiply(sums, smem_addr(memory), t.begin, t.end, copies);
    store_by_epilogue(sums, memory, t, splits, partial, g, out EPI_PASS);
}
