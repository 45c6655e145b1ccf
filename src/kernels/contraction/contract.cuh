// SPDX-License-Identifier: Apache-2.0
// The layouts of a contraction's operands and results, and the store of a finished tile. RB, RM, RN
// and RK are the axes of batch, rows, columns and depth after merging; NV counts the views that are
// walked at the end: the result, then the epilogue's operands.
struct Geometry {
    i64 batches, m, n, k;
    i64 batch[RB], rows[RM], columns[RN], depth[RK];
    i64 ab[RB], am[RM], ak[RK];
    i64 bb[RB], bn[RN], bk[RK];
    i64 cb[NV][RB], cm[NV][RM], cn[NV][RN];
};

/// A vector of an operand as it is kept until the epilogue uses it.
#if EARLY
/// As words, since it is loaded ahead of the main loop: the compiler takes a Pack of 16-bit
/// elements apart where it is loaded, and waits for it there; words stay in flight until they are
/// unpacked.
template <class T, int N>
struct __align__(sizeof(T) * N) Loaded {
    u32 words[sizeof(T) * N / 4];
};
template <class T, int N>
union PackOrWords {
    Pack<T, N> pack;
    Loaded<T, N> loaded;
};
template <class T, int N>
DEVICE Loaded<T, N> loaded(const Pack<T, N>& x) {
    PackOrWords<T, N> u;
    u.pack = x;
    return u.loaded;
}
template <class T, int N>
DEVICE Pack<T, N> unpacked(const Loaded<T, N>& x) {
    PackOrWords<T, N> u;
    u.loaded = x;
    return u.pack;
}
#else
template <class T, int N>
using Loaded = Pack<T, N>;
template <class T, int N>
DEVICE const Pack<T, N>& loaded(const Pack<T, N>& x) {
    return x;
}
template <class T, int N>
DEVICE const Pack<T, N>& unpacked(const Pack<T, N>& x) {
    return x;
}
#endif

/// The coordinates of an index, the last axis fastest.
template <int R>
DEVICE void unravel(u32* at, u32 index, const i64* sizes) {
#pragma unroll
    for (int r = R - 1; r > 0; r--) {
        u32 q = index / (u32)sizes[r];
        at[r] = index - q * (u32)sizes[r];
        index = q;
    }
    at[0] = index;
}
template <int R>
DEVICE i64 place(const u32* at, const i64* strides) {
    i64 sum = 0;
#pragma unroll
    for (int r = 0; r < R; r++)
        sum += (i64)at[r] * strides[r];
    return sum;
}
/// Offset of one index in one view.
template <int R>
DEVICE i64 offset_of(u32 index, const i64* sizes, const i64* strides) {
    u32 at[R];
    unravel<R>(at, index, sizes);
    return place<R>(at, strides);
}

/// Offsets of batch, row and column in all stored views.
struct Spot {
    i64 at[NV];
    DEVICE void batch(const Geometry& g, u32 index) {
        u32 i[RB];
        unravel<RB>(i, index, g.batch);
#pragma unroll
        for (int v = 0; v < NV; v++)
            at[v] = place<RB>(i, g.cb[v]);
    }
    DEVICE void add_row(const Geometry& g, u32 index) {
        u32 i[RM];
        unravel<RM>(i, index, g.rows);
#pragma unroll
        for (int v = 0; v < NV; v++)
            at[v] += place<RM>(i, g.cm[v]);
    }
    DEVICE void add_column(const Geometry& g, u32 index) {
        u32 i[RN];
        unravel<RN>(i, index, g.columns);
#pragma unroll
        for (int v = 0; v < NV; v++)
            at[v] += place<RN>(i, g.cn[v]);
    }
};

/// The result row of a row of the tile; -1 for none.
struct RowsFrom {
    i64 m0, m;
    DEVICE i64 operator()(int r) const { return m0 + r < m ? m0 + r : -1; }
};
