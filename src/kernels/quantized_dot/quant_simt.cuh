// SPDX-License-Identifier: Apache-2.0
// Contraction with a quantised B of any strides on ordinary arithmetic units.
KERNEL void __launch_bounds__(256, 1)
    quant_simt(const TA* __restrict__ a, const u8* __restrict__ q, const SCALE* __restrict__ scales,
               const ZERO* __restrict__ zeros, OUT* __restrict__ out,
               const __grid_constant__ Blocks blocks,
               const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    SimtTile t(g);
    grid_wait();
    Strided<TA, RM> rows;
    rows.from = a;
    rows.place_rows(A_ROWS, t.m0, g.m, g.rows, g.am);
    auto load_a = [&](int i, i64 k) {
        return rows.at[i] == outside
                   ? 0.0f
                   : (float)widen(rows.from[rows.at[i] + offset_of<RK>((u32)k, g.depth, g.ak)]);
    };
    auto load_b = [&](int i, i64 k) {
        i64 n = t.n0 + SimtTile::outer(B_COLUMNS, i);
        if (n >= g.n)
            return 0.0f;
        n = column_of_b((u32)n, g);
        Scale s;
        s.read(scales, zeros, blocks, (u32)n, k);
        return q_element(q, n * g.bn[0] + k * g.bk[0], s.origin()) * s.step();
    };
    ACC acc[4][4];
    simt_multiply(acc, memory, t, g.k, load_a, load_b);
    simt_epilogue(acc, memory, t, g, out EPI_PASS);
}
