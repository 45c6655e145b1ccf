// SPDX-License-Identifier: Apache-2.0
// store_tile for an epilogue with STAGED operands, all in vectors of 16 bytes: its operands are
// copied to shared memory for DEPTH rows of a thread at a time (fetch_extras and take_extras,
// generated), so that a thread waits once for several rows.
constexpr int slot_bytes = STAGED * 16 + 8; // of a thread and row

template <int WIDE, int DEPTH, class Fetch, class RowOf>
DEVICE void store_staged(Fetch fetch, RowOf row_of, u8* room, int tid, int threads, int first,
                         int count, u32 batch, i64 n0, const Geometry& g, OUT* out EPI_PARAMS) {
    constexpr int across = WIDE / VEC;
    int step = threads / across, r = tid / across, j = tid % across * VEC;
    if (r >= step || n0 + j >= g.n)
        return;
    Spot column;
    column.batch(g, batch);
    column.add_column(g, (u32)(n0 + j));
    Extras standing;
    read_standing(standing, column.at EPI_PASS);
    // By row in flight: the vectors of all threads, operand by operand; then where the row goes.
    u8* vectors = room + tid * 16;
    i64* places = (i64*)(room + DEPTH * STAGED * 16 * threads) + tid;
    int slot = 0;
#pragma unroll 1
    for (r -= (DEPTH - 1) * step; r < count; r += step) {
        int next = r + (DEPTH - 1) * step;
        i64 m = next < count ? row_of(first + next) : -1;
        i64 place = nowhere;
        if (m >= 0) {
            Spot s = column;
            s.add_row(g, (u32)m);
            place = s.at[0];
            fetch_extras(smem_addr(vectors + slot * STAGED * 16 * threads), 16 * threads, s.at,
                         out EPI_PASS);
        }
        places[slot * threads] = place;
        cp_async_commit();
        slot = slot + 1 == DEPTH ? 0 : slot + 1;
        if (r < 0)
            continue;
        place = places[slot * threads];
        if (place != nowhere) {
            cp_async_wait<DEPTH - 1>();
            Extras x = standing;
            take_extras(x, vectors + slot * STAGED * 16 * threads, 16 * threads);
            ACC v[VEC];
            fetch(v, first + r, j);
            deliver(v, x, place, g, out EPI_PASS);
        }
    }
    cp_async_wait<0>();
}
