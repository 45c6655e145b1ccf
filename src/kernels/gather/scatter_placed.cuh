// SPDX-License-Identifier: Apache-2.0
// scatter: m rows of y come from `updates`, the last one that names a row, all others from x: all
// in one launch. Rows have `vectors` vectors of 16 bytes, those of updates at a distance of u_row.
// Where the caller gave x and y the same memory, as caches that are updated in place, only the m
// rows move. From the generated text: Index.
constexpr int most_rows = 128;

KERNEL void __launch_bounds__(256)
    scatter_placed(const uint4* x, uint4* y, const uint4* updates, const Index* indices, u32* error,
                   i32 m, u32 rows, u32 vectors, i64 u_row, i64 step) {
    begin_kernel();
    __shared__ u32 to[most_rows]; // no row for an index outside
    grid_wait();
    for (int j = threadIdx.x; j < m; j += 256) {
        const i64 row = (i64)indices[j * step];
        const bool in = row >= 0 && row < (i64)rows;
        to[j] = in ? (u32)row : ~0u;
        if (!in)
            *error = 1;
    }
    sync();
    const u32 first = blockIdx.x * 256 + threadIdx.x, threads = gridDim.x * 256;
    if (x == y) {
        for (u32 i = first; i < (u32)m * vectors; i += threads) {
            const u32 j = i / vectors, v = i % vectors;
            bool last = to[j] != ~0u;
            for (int k = (int)j + 1; k < m; k++)
                last = last && to[k] != to[j];
            if (last)
                y[to[j] * vectors + v] = updates[j * u_row + v];
        }
        return;
    }
    for (u32 i = first; i < rows * vectors; i += threads) {
        const u32 row = i / vectors, v = i % vectors;
        int from = -1;
        for (int j = 0; j < m; j++)
            from = to[j] == row ? j : from;
        y[i] = from < 0 ? x[i] : updates[from * u_row + v];
    }
}
