// SPDX-License-Identifier: Apache-2.0
// Sums the partial results of split-K in the order of the splits and stores them through the
// epilogue. One thread makes VEC columns of a row.
KERNEL void __launch_bounds__(256)
    split_sum(const ACC* __restrict__ partial, OUT* __restrict__ out, i32 splits,
              const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    grid_wait();
    i64 all = g.batches * g.m * g.n, at = ((i64)blockIdx.x * 256 + threadIdx.x) * VEC;
    if (at >= all)
        return;
    ACC v[VEC];
#pragma unroll
    for (int k = 0; k < VEC; k++)
        v[k] = (ACC)0;
#pragma unroll 1
    for (int s = 0; s < splits; s++) {
        Pack<ACC, VEC> p = *(const Pack<ACC, VEC>*)(partial + s * all + at);
#pragma unroll
        for (int k = 0; k < VEC; k++)
            v[k] += p.v[k];
    }
    end_main_loop();
    i64 row = at / g.n, batch = row / g.m;
    Spot s;
    s.batch(g, (u32)batch);
    s.add_row(g, (u32)(row - batch * g.m));
    s.add_column(g, (u32)(at - row * g.n));
    deliver(v, s.at, g, out EPI_PASS);
}
