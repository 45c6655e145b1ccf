// SPDX-License-Identifier: Apache-2.0
// The end of a contraction whose threads store few rows each, in vectors of 8 columns: before the
// main loop a thread finds where its rows go and reads the epilogue's operands into registers, so
// that after the main loop it waits for no memory but the tile of sums.
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
    i64 at[most_rows][NV]; // the result's is no_row where there is none
    Extras extras[most_rows];
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
#pragma unroll
        for (int i = 0; i < most_rows; i++)
            if (at[i][0] != no_row)
                read_extras(extras[i], at[i], g EPI_PASS);
    }
    /// Two rows at a time; the next ones then take their registers, so that the loop stays short.
    DEVICE void operator()(const float* tile, const Geometry& g, OUT* out EPI_PARAMS) {
        FromTile fetch = {tile};
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
                deliver(v, extras[r], at[r][0], g, out EPI_PASS);
            }
#pragma unroll
            for (int r = 0; r < most_rows - 2; r++) {
                at[r][0] = at[r + 2][0];
                extras[r] = extras[r + 2];
            }
        }
    }
    /// Adds the sums of a cluster's blocks, in the order of their ranks, in the thread's rows of
    /// its own block, which the others do not read. TOGETHER rows of MOST blocks are in flight.
    template <int TOGETHER, int MOST>
    DEVICE void sum(float* tile, int splits) const {
#pragma unroll 1
        for (int i = 0; i < rows.count; i += TOGETHER) {
            float* own = tile + (rows.first + i * rows.step) * tile_pitch + rows.column;
            u32 at_own = smem_addr(own);
            float x[TOGETHER][MOST][VEC];
#pragma unroll
            for (int r = 0; r < TOGETHER; r++) {
                u32 from = at_own + r * rows.step * tile_pitch * 4;
#pragma unroll
                for (int s = 0; s < MOST; s++)
                    if (s < splits && i + r < rows.count) {
                        ld_cluster4(x[r][s], from, s);
                        ld_cluster4(x[r][s] + 4, from + 16, s);
                    }
            }
#pragma unroll
            for (int r = 0; r < TOGETHER; r++) {
#pragma unroll
                for (int s = 1; s < MOST; s++)
                    if (s < splits)
#pragma unroll
                        for (int k = 0; k < VEC; k++)
                            x[r][0][k] += x[r][s][k];
                Pack<float, 4>* to = (Pack<float, 4>*)(own + r * rows.step * tile_pitch);
                if (i + r < rows.count) {
                    to[0] = *(const Pack<float, 4>*)x[r][0];
                    to[1] = *(const Pack<float, 4>*)(x[r][0] + 4);
                }
            }
        }
    }
};
