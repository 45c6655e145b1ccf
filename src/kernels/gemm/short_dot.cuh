// SPDX-License-Identifier: Apache-2.0
// Products of a short depth: a thread makes a result with its elements in registers, DEPTH of each
// operand at a time, V per load.
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
    Pack<TA, V> x[DEPTH / V];
    Pack<TB, V> y[DEPTH / V];
    if (!b_constant)
        grid_wait();
    Spot spot;
    Extras extras;
#pragma unroll 1
    for (i64 k0 = 0; k0 < g.k; k0 += DEPTH) {
#pragma unroll
        for (int k = 0; k < DEPTH / V; k++)
            if (k0 + k * V < g.k)
                y[k] = *(const Pack<TB, V>*)(b + (k0 + k * V) * g.bk[0]);
        if (k0 == 0) {
            if (b_constant)
                grid_wait();
            spot.batch(g, batch);
            spot.add_row(g, m);
            spot.add_column(g, n);
            read_extras(extras, spot.at, g EPI_PASS);
        }
#pragma unroll
        for (int k = 0; k < DEPTH / V; k++)
            if (k0 + k * V < g.k)
                x[k] = *(const Pack<TA, V>*)(a + (k0 + k * V) * g.ak[0]);
#pragma unroll
        for (int k = 0; k < DEPTH / V; k++)
            if (k0 + k * V < g.k)
#pragma unroll
                for (int e = 0; e < V; e++)
                    sum[0] += (ACC)widen(x[k].v[e]) * (ACC)widen(y[k].v[e]);
    }
    end_main_loop();
    if (inside)
        deliver(sum, extras, spot.at[0], g, out EPI_PASS);
}
