// SPDX-License-Identifier: Apache-2.0
// Products of ROWS rows by many adjoining columns, where the depth is short: a thread makes 8
// adjacent columns of all rows, so that each column is read once, BATCH positions of the depth at a
// time. The rows wait in shared memory, the elements of a position together.
constexpr int LOADED = sizeof(TB) == 4 ? 4 : 8; // elements of a load

struct Columns {
    Pack<TB, LOADED> part[8 / LOADED];
    DEVICE void load(const TB* from) {
#pragma unroll
        for (int i = 0; i < 8 / LOADED; i++)
            part[i] = *(const Pack<TB, LOADED>*)(from + i * LOADED);
    }
    DEVICE ACC operator[](int v) const {
        return (ACC)widen(part[v / LOADED].v[v % LOADED]);
    }
};

KERNEL void __launch_bounds__(128)
    few_rows(const TA* __restrict__ a, const TB* __restrict__ b, OUT* __restrict__ out,
             const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    ACC* rows = (ACC*)memory;
    const int depth = (int)g.k;
    const u32 chunks = (u32)(g.n / 8), tiles = (chunks + 127) / 128, batch = blockIdx.x / tiles;
    const u32 chunk = (blockIdx.x - batch * tiles) * 128 + threadIdx.x;
    const bool inside = chunk < chunks;
    u32 at[RB];
    unravel<RB>(at, batch, g.batch);
    a += place<RB>(at, g.ab);
    b += place<RB>(at, g.bb) + offset_of<RN>(inside ? chunk * 8 : 0, g.columns, g.bn);
    grid_wait();
#pragma unroll 1
    for (int i = threadIdx.x; i < ROWS * depth; i += 128) {
        int k = i / ROWS;
        u32 m = (u32)(i - k * ROWS);
        rows[i] = (ACC)widen(a[offset_of<RM>(m, g.rows, g.am) + k * g.ak[0]]);
    }
    sync();
    ACC sums[ROWS][8];
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int v = 0; v < 8; v++)
            sums[m][v] = (ACC)0;
#pragma unroll 1
    for (int k = 0; k < depth; k += BATCH) {
        Columns y[BATCH];
#pragma unroll
        for (int t = 0; t < BATCH; t++)
            if (k + t < depth)
                y[t].load(b + (k + t) * g.bk[0]);
#pragma unroll
        for (int t = 0; t < BATCH; t++)
            if (k + t < depth)
#pragma unroll
                for (int m = 0; m < ROWS; m++)
#pragma unroll
                    for (int v = 0; v < 8; v++)
                        sums[m][v] += rows[(k + t) * ROWS + m] * y[t][v];
    }
    end_main_loop();
    // Sums wait in shared memory too, so that there is one text of the epilogue for all rows.
    sync();
    ACC* own = rows + threadIdx.x * 8;
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int v = 0; v < 8; v += 4)
            *(Pack<ACC, 4>*)(own + m * 1024 + v) = *(const Pack<ACC, 4>*)(sums[m] + v);
    if (!inside)
        return;
#pragma unroll 1
    for (int m = 0; m < ROWS; m++) {
        ACC sum[8];
#pragma unroll
        for (int v = 0; v < 8; v += 4)
            *(Pack<ACC, 4>*)(sum + v) = *(const Pack<ACC, 4>*)(own + m * 1024 + v);
        Spot s;
        s.batch(g, batch);
        s.add_row(g, (u32)m);
        s.add_column(g, chunk * 8);
        deliver(sum, s.at, g, out EPI_PASS);
    }
}
