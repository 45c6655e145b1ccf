// SPDX-License-Identifier: Apache-2.0
// The end of every contraction: a tile of sums, staged in shared memory, goes through the epilogue
// (read_extras and deliver, generated) to the result, VEC columns at a time.
constexpr int tile_pitch = BN + 8;

template <int PITCH>
struct FromPitch {
    const ACC* tile;
    DEVICE void operator()(ACC* v, int r, int j) const {
        const ACC* p = tile + r * PITCH + j;
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

typedef FromPitch<tile_pitch> FromTile;

/// Rows [first, first + count) of a tile of WIDE columns, which starts at column n0. At least WIDE
/// / VEC threads, each with fixed columns. The epilogue's operands are fetched one row ahead of
/// their use, so the loop starts a row early.
template <int WIDE = BN, class Fetch, class RowOf>
DEVICE void store_tile(Fetch fetch, RowOf row_of, int tid, int threads, int first, int count,
                       u32 batch, i64 n0, const Geometry& g, OUT* out EPI_PARAMS) {
    constexpr int across = WIDE / VEC;
    int step = threads / across, r = tid / across, j = tid % across * VEC;
    if (r >= step || n0 + j >= g.n)
        return;
    Spot column;
    column.batch(g, batch);
    column.add_column(g, (u32)(n0 + j));
    Spot ahead = column;
    Extras extras;
    bool inside = false;
#pragma unroll 1
    for (r -= step; r < count; r += step) {
        Spot s = ahead;
        Extras x = extras;
        bool stored = inside;
        i64 m = r + step < count ? row_of(first + r + step) : -1;
        inside = m >= 0;
        if (inside) {
            ahead = column;
            ahead.add_row(g, (u32)m);
            read_extras(extras, ahead.at, g EPI_PASS);
        }
        if (stored) {
            ACC v[VEC];
            fetch(v, first + r, j);
            deliver(v, x, s.at[0], g, out EPI_PASS);
        }
    }
}
