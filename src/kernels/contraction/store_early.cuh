// SPDX-License-Identifier: Apache-2.0
// The end of a contraction whose threads store few rows each, in vectors of 8 columns: before the
// main loop a thread finds where its rows go and reads the epilogue's operands into registers, so
// that after the main loop it waits for no memory but the tile of sums.
//
// The blocks of a cluster that share a tile divide its rows. A block sends its sums of each row to
// the row's owner, which has a slot of `share` rows for each of them; the bytes count at an
// mbarrier of the owner.
constexpr int across = BN / VEC;
constexpr int rows_per_warp = 16; // of the 64 rows of a warpgroup
constexpr i64 no_row = (i64)1 << 62;

/// The rows first + i * step, i < count, of the tile, and the first of a thread's columns.
struct ThreadRows {
    int first, step, count, column;
    /// A warp's own rows: it alone writes and reads their sums.
    static DEVICE ThreadRows of_warp(int warp, int lane) {
        constexpr int step = 32 / across;
        int r = lane / across;
        return {warp * rows_per_warp + r, step,
                r < step ? (rows_per_warp - r + step - 1) / step : 0, lane % across * VEC};
    }
    /// A thread's part of the rows [first, first + count), which a block stores.
    static DEVICE ThreadRows of_block(int tid, int first, int count) {
        constexpr int step = consumers / across;
        int r = tid / across;
        return {first + r, step, r < step && r < count ? (count - r + step - 1) / step : 0,
                tid % across * VEC};
    }
};
constexpr int rows_of_warp = (rows_per_warp + 32 / across - 1) / (32 / across);
constexpr int rows_of_block = (tile_m + consumers / across - 1) / (consumers / across);
constexpr int rows_here = rows_of_warp > rows_of_block ? rows_of_warp : rows_of_block;
constexpr int most_rows = (rows_here + 1) / 2 * 2;

/// The rows of a thread and their operands, which are read after grid_wait.
struct EarlyStore {
    ThreadRows rows;
    i64 at[most_rows][NV];              // the result's is no_row where there is none
    Extras extras[most_rows], standing; // operands that differ by row; those of all rows
#ifdef RESIDUAL
    const RowStatistics* norms; // of the tile's rows
#endif

    template <class RowOf>
    DEVICE EarlyStore(ThreadRows rows_, RowOf row_of, u32 batch, i64 n0, const Geometry& g)
        : rows(rows_) {
        Spot column;
        column.batch(g, batch);
        column.add_column(g, (u32)(n0 + rows.column));
        if (n0 + rows.column >= g.n)
            rows.count = 0;
#pragma unroll
        for (int i = 0; i < most_rows; i++) {
            i64 m = i < rows.count ? row_of(rows.first + i * rows.step) : -1;
            Spot s = column;
            s.add_row(g, m >= 0 ? (u32)m : 0);
#pragma unroll
            for (int v = 0; v < NV; v++)
                at[i][v] = s.at[v];
            if (m < 0)
                at[i][0] = no_row;
        }
    }
    DEVICE void read(const Geometry& g EPI_PARAMS) {
        if (rows.count > 0)
            read_once(standing, at[0], g EPI_PASS);
#pragma unroll
        for (int i = 0; i < most_rows; i++)
            if (at[i][0] != no_row)
                read_by_row(extras[i], at[i], g EPI_PASS);
    }
    /// Two rows at a time; the next ones then take their registers, so that the loop stays short.
    template <class Fetch>
    DEVICE void operator()(Fetch fetch, const Geometry& g, OUT* out EPI_PARAMS) {
#pragma unroll 1
        for (int i = 0; i < rows.count; i += 2) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                if (at[r][0] == no_row)
                    continue;
                ACC v[VEC];
                fetch(v, rows.first + (i + r) * rows.step, rows.column);
#ifdef RESIDUAL
                RowStatistics row = norms[rows.first + (i + r) * rows.step];
                norm_extras(extras[r], row.mean, row.factor);
#endif
                add_standing(extras[r], standing);
                deliver(v, extras[r], at[r][0], g, out EPI_PASS);
            }
#pragma unroll
            for (int r = 0; r < most_rows - 2; r++) {
                at[r][0] = at[r + 2][0];
                extras[r] = extras[r + 2];
            }
        }
    }
};

/// The rows of a tile that a block of a cluster owns.
struct Share {
    int rows, share, first, count; // of the tile; of each block, but the last ones; of this block
    DEVICE Share(int rows_, int blocks, int rank)
        : rows(rows_), share((rows_ + blocks - 1) / blocks), first(share * rank) {
        int rest = rows - first;
        count = rest < share ? rest : share;
        if (count < 0)
            count = 0;
    }
};

/// The sums of a row in each block's slot, in the order of their ranks.
struct FromSlots {
    const ACC* slots; // of the row `first`
    int first, blocks, slot;
    static DEVICE void read(ACC* v, const ACC* p) {
        Pack<ACC, 4> lo = *(const Pack<ACC, 4>*)p, hi = *(const Pack<ACC, 4>*)(p + 4);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            v[k] = lo.v[k];
            v[k + 4] = hi.v[k];
        }
    }
    DEVICE void operator()(ACC* v, int r, int j) const {
        constexpr int together = 2;
        const ACC* p = slots + (r - first) * tile_pitch + j;
        read(v, p);
#pragma unroll 1
        for (int s = 1; s < blocks; s += together) {
            ACC x[together][VEC];
#pragma unroll
            for (int i = 0; i < together; i++)
                if (s + i < blocks)
                    read(x[i], p + (s + i) * slot);
#pragma unroll
            for (int i = 0; i < together; i++)
                if (s + i < blocks)
#pragma unroll
                    for (int k = 0; k < VEC; k++)
                        v[k] += x[i][k];
        }
    }
};

DEVICE float as_float(float sum) {
    return sum;
}
DEVICE float as_float(u32 sum) {
    return __uint_as_float(sum);
}
/// Sends a warp's sums, as bits, to the owners of its rows. Neighbouring lanes exchange pairs of
/// columns, so that each has four of one row: even lanes of row lane / 4, odd ones of the row 8
/// below.
struct Sender {
    u32 to, bar; // at the owner, in the address space of the cluster; bar is 0 outside of the tile
    /// From row `row` of the tile on; to slot `rank` at `slots`.
    DEVICE Sender(const Share& s, u32 slots, u32 sent, int rank, int row, int lane) {
        int r = row + (lane >> 2) + (lane & 1) * 8;
        bool inside = r < s.rows;
        int owner = inside ? (int)((u32)r / (u32)s.share) : 0;
        to = cluster_address(slots, owner) +
             (((rank - owner) * s.share + r) * tile_pitch + (lane & 2) * 2) * 4;
        bar = inside ? cluster_address(sent, owner) : 0;
    }
    DEVICE void operator()(Sums& sums, int lane) const {
        bool odd = (lane & 1) != 0;
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            ACC* d = sums.d[0] + j * 4;
#pragma unroll
            for (int k = 0; k < 4; k++)
                opaque(d[k]); // else these are chosen in the main loop, which then waits for wgmma
            ACC x = shfl_xor(odd ? d[0] : d[2], 1), y = shfl_xor(odd ? d[1] : d[3], 1);
            d[0] = odd ? x : d[0], d[1] = odd ? y : d[1];
            d[2] = odd ? d[2] : x, d[3] = odd ? d[3] : y;
        }
        if (bar == 0)
            return;
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            const ACC* d = sums.d[0] + j * 4;
            float v[4] = {as_float(d[0]), as_float(d[1]), as_float(d[2]), as_float(d[3])};
            st_async4(to + j * 32, v, bar);
        }
    }
};
