// SPDX-License-Identifier: Apache-2.0
// The end of every contraction: a tile of sums, staged in shared memory, goes through the epilogue
// (deliver, generated) to the result, VEC columns at a time.
constexpr int tile_pitch = BN + 8;

struct FromTile {
    const ACC* tile;
    DEVICE void operator()(ACC* v, int r, int j) const {
        const ACC* p = tile + r * tile_pitch + j;
        if (VEC == 8) {
            Pack<ACC, 4> lo = *(const Pack<ACC, 4>*)p, hi = *(const Pack<ACC, 4>*)(p + 4);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                v[k] = lo.v[k];
                v[k + VEC / 2] = hi.v[k];
            }
        } else {
            v[0] = p[0];
        }
    }
};

/// Which row of the result a row of the tile is; -1 for none.
struct RowsFrom {
    i64 m0, m;
    DEVICE i64 operator()(int r) const { return m0 + r < m ? m0 + r : -1; }
};

/// Rows [first, first + count) of the tile; its first column is n0.
template <class Fetch, class Rows>
DEVICE void store_tile(Fetch fetch, Rows row_of, int tid, int threads, int first, int count,
                       u32 batch, i64 n0, const Geometry& g, OUT* out EPI_PARAMS) {
    Spot corner;
    corner.batch(g, batch);
#pragma unroll 1
    for (int e = tid; e < count * (BN / VEC); e += threads) {
        int r = first + e / (BN / VEC), j = e % (BN / VEC) * VEC;
        i64 m = row_of(r);
        if (m < 0 || n0 + j >= g.n)
            continue;
        ACC v[VEC];
        fetch(v, r, j);
        Spot s = corner;
        s.add_row(g, (u32)m);
        s.add_column(g, (u32)(n0 + j));
        deliver(v, s.at, g, out EPI_PASS);
    }
}
