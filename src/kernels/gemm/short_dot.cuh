// SPDX-License-Identifier: Apache-2.0
// Products of a short depth: a thread makes a result with its elements in registers, DEPTH of each
// operand at a time, VA and VB of them per load.
KERNEL void __launch_bounds__(256)
    short_dot(const TA* __restrict__ a, const TB* __restrict__ b, OUT* __restrict__ out,
              i32 b_constant, const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    const i64 index = (i64)blockIdx.x * 256 + threadIdx.x, results = g.batches * g.m * g.n;
    const bool inside = index < results;
    const u32 line = inside ? (u32)(index / g.n) : 0, n = inside ? (u32)(index - line * g.n) : 0;
    const u32 batch = line / (u32)g.m, m = line - batch * (u32)g.m;
    u32 at[RB];
    unravel<RB>(at, batch, g.batch);
    a += place<RB>(at, g.ab) + offset_of<RM>(m, g.rows, g.am);
    b += place<RB>(at, g.bb) + offset_of<RN>(n, g.columns, g.bn);
    ACC sum[1] = {(ACC)0};
    Pack<TA, VA> x[DEPTH / VA];
    Pack<TB, VB> y[DEPTH / VB];
    if (!b_constant)
        grid_wait();
    Spot spot;
    Extras extras;
#pragma unroll 1
    for (i64 k0 = 0; k0 < g.k; k0 += DEPTH) {
#pragma unroll
        for (int k = 0; k < DEPTH / VB; k++)
            if (k0 + k * VB < g.k)
                y[k] = *(const Pack<TB, VB>*)(b + (k0 + k * VB) * g.bk[0]);
        if (k0 == 0) {
            if (b_constant)
                grid_wait();
            spot.batch(g, batch);
            spot.add_row(g, m);
            spot.add_column(g, n);
            read_extras(extras, spot.at, g EPI_PASS);
        }
#pragma unroll
        for (int k = 0; k < DEPTH / VA; k++)
            if (k0 + k * VA < g.k)
                x[k] = *(const Pack<TA, VA>*)(a + (k0 + k * VA) * g.ak[0]);
#pragma unroll
        for (int e = 0; e < DEPTH; e++)
            if (k0 + e < g.k)
                sum[0] += (ACC)widen(x[e / VA].v[e % VA]) * (ACC)widen(y[e / VB].v[e % VB]);
    }
    end_main_loop();
    if (inside)
        deliver(sum, extras, spot.at[0], g, out EPI_PASS);
}
