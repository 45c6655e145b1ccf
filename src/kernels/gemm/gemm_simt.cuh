// SPDX-License-Identifier: Apache-2.0
// Contraction of any element types and strides on ordinary arithmetic units.
KERNEL void __launch_bounds__(256, 1)
    gemm_simt(const TA* __restrict__ a, const TB* __restrict__ b, OUT* __restrict__ out,
              const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    SimtTile t(g);
    grid_wait();
    u32 at[RB];
    unravel<RB>(at, t.batch, g.batch);
    Strided<TA, RM> rows;
    Strided<TB, RN> columns;
    rows.from = a + place<RB>(at, g.ab);
    columns.from = b + place<RB>(at, g.bb);
    rows.place_rows(A_ROWS, t.m0, g.m, g.rows, g.am);
    columns.place_rows(B_COLUMNS, t.n0, g.n, g.columns, g.bn);
    auto load_a = [&](int i, i64 k) {
        return rows.at[i] == outside
                   ? (ACC)0
                   : (ACC)widen(rows.from[rows.at[i] + offset_of<RK>((u32)k, g.depth, g.ak)]);
    };
    auto load_b = [&](int i, i64 k) {
        return columns.at[i] == outside
                   ? (ACC)0
                   : (ACC)widen(columns.from[columns.at[i] + offset_of<RK>((u32)k, g.depth, g.bk)]);
    };
    ACC acc[4][4];
    simt_multiply(acc, memory, t, g.k, load_a, load_b);
    simt_epilogue(acc, memory, t, g, out EPI_PASS);
}
