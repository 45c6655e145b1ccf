// SPDX-License-Identifier: Apache-2.0
// Convolution as a product on ordinary arithmetic units: any element types, strides, groups.
KERNEL void __launch_bounds__(256, 1)
    conv_simt(const TA* __restrict__ x, const TB* __restrict__ weights, OUT* __restrict__ out,
              const __grid_constant__ Window w, const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    SimtTile t(g);
    grid_wait();
    const TA* from = x + (i64)t.batch * g.ab[0];
    Strided<TB, RN> columns;
    columns.from = weights + (i64)t.batch * g.bb[0];
    columns.place_rows(B_COLUMNS, t.n0, g.n, g.columns, g.bn);
    i64 image[4];
    i32 at[4][3];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        i64 m = t.m0 + SimtTile::outer(A_ROWS, i);
        Origin o(w, (u32)(m < g.m ? m : 0));
        image[i] = m < g.m ? o.image : outside;
#pragma unroll
        for (int s = 0; s < 3; s++)
            at[i][s] = o.at[s];
    }
    auto load_x = [&](int i, i64 k) {
        Tap tap(w, (u32)k);
        i64 from_image = image[i] + tap.c * w.step_c;
        bool inside = image[i] != outside;
#pragma unroll
        for (int s = 0; s < 3; s++) {
            i32 p = at[i][s] + tap.at[s] * (i32)w.dilation[s];
            inside = inside && p >= 0 && p < (i32)w.in[s];
            from_image += (i64)p * w.step[s];
        }
        return inside ? (ACC)widen(from[from_image]) : (ACC)0;
    };
    auto load_w = [&](int i, i64 k) {
        return columns.at[i] == outside ? (ACC)0
                                        : (ACC)widen(columns.from[columns.at[i] + k * g.bk[0]]);
    };
    ACC acc[4][4];
    simt_multiply(acc, memory, t, g.k, load_x, load_w);
    simt_epilogue(acc, memory, t, g, out EPI_PASS);
}
