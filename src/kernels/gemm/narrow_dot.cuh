// SPDX-License-Identifier: Apache-2.0
// Products of many rows by COLUMNS columns: LANES adjacent threads share a row, which they read
// once, V elements of 16 bytes at a time, ROWS rows beside each other. The columns wait in shared
// memory, and the finished sums go through it, so that adjacent threads store adjacent results:
// COLUMNS_ADJOIN says which are. Traffic: the rows once; each block reads the columns.
constexpr int V = 16 / sizeof(TA), lines = 256 / LANES, block_rows = lines * ROWS;

/// Sums of this thread's share of the depth.
DEVICE void multiply(ACC (&sums)[ROWS][COLUMNS], const TA* const (&rows)[ROWS], const ACC* columns,
                     int lane, int depth) {
#pragma unroll 1
    for (int k = lane * V; k < depth; k += LANES * V) {
        Pack<TA, V> x[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            x[r] = *(const Pack<TA, V>*)(rows[r] + k);
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            const ACC* column = columns + n * depth + k;
#pragma unroll
            for (int e = 0; e < V; e += 4) {
                Pack<ACC, 4> y = *(const Pack<ACC, 4>*)(column + e);
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        sums[r][n] += (ACC)widen(x[r].v[e + i]) * y.v[i];
            }
        }
    }
}

KERNEL void __launch_bounds__(256)
    narrow_dot(const TA* __restrict__ a, const TB* __restrict__ b, OUT* __restrict__ out,
               i32 b_constant, const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    const int tid = threadIdx.x, lane = tid % LANES, line = tid / LANES, depth = (int)g.k;
    ACC *columns = (ACC*)memory, *finished = columns + COLUMNS * depth;
    const u32 tiles = (u32)((g.m + block_rows - 1) / block_rows), batch = blockIdx.x / tiles;
    const i64 first = (i64)(blockIdx.x - batch * tiles) * block_rows;
    u32 at[RB];
    unravel<RB>(at, batch, g.batch);
    a += place<RB>(at, g.ab);
    b += place<RB>(at, g.bb);
    if (!b_constant)
        grid_wait();
#pragma unroll 1
    for (int i = tid; i < COLUMNS * depth; i += 256) {
        int n = i / depth;
        columns[i] =
            (ACC)widen(b[offset_of<RN>((u32)n, g.columns, g.bn) + (i - n * depth) * g.bk[0]]);
    }
    if (b_constant)
        grid_wait();
    sync();
    const TA* rows[ROWS];
    ACC sums[ROWS][COLUMNS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        i64 m = first + r * lines + line; // past the end: the last row again
        rows[r] = a + offset_of<RM>((u32)(m < g.m ? m : g.m - 1), g.rows, g.am);
#pragma unroll
        for (int n = 0; n < COLUMNS; n++)
            sums[r][n] = (ACC)0;
    }
    multiply(sums, rows, columns, lane, depth);
    end_main_loop();
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            ACC v = sums[r][n];
#pragma unroll
            for (int across = LANES / 2; across > 0; across >>= 1)
                v += shfl_xor(v, across);
            if (lane == 0)
                finished[(r * lines + line) * COLUMNS + n] = v;
        }
    sync();
#pragma unroll 1
    for (int i = tid; i < block_rows * COLUMNS; i += 256) {
        int row = COLUMNS_ADJOIN ? i / COLUMNS : i % block_rows;
        int n = COLUMNS_ADJOIN ? i % COLUMNS : i / block_rows;
        if (first + row >= g.m)
            continue;
        ACC v[1] = {finished[row * COLUMNS + n]};
        Spot s;
        s.batch(g, batch);
        s.add_row(g, (u32)(first + row));
        s.add_column(g, (u32)n);
        deliver(v, s.at, g, out EPI_PASS);
    }
}
