// SPDX-License-Identifier: Apache-2.0
// Products with at most MR rows: every byte of B is read once, in 16-byte pieces, which determines
// the kernel's time. BYTES: both operands are integers of 8 bits.
constexpr int per_load = 16 / sizeof(TB);

union Piece {
    uint4 u;
    u32 words[4];
    Pack<TB, per_load> p;
};

KERNEL void __launch_bounds__(256)
    gemv(const TA* __restrict__ a, const TB* __restrict__ b, OUT* __restrict__ out, i32 share,
         const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    Gemv t(g, share);
    grid_wait();
    u32 at[RB];
    unravel<RB>(at, t.batch, g.batch);
    a += place<RB>(at, g.ab);
    b += place<RB>(at, g.bb);
    const TA* pa[MR];
    const TB* pb[NR];
#pragma unroll
    for (int i = 0; i < MR; i++)
        pa[i] = a + t.row(i, g);
#pragma unroll
    for (int j = 0; j < NR; j++)
        pb[j] = b + offset_of<RN>(t.column(j, g), g.columns, g.bn);
    ACC acc[MR][NR];
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int j = 0; j < NR; j++)
            acc[i][j] = (ACC)0;
#pragma unroll(MR > 2 || (per_load > 8 && !BYTES) ? 1 : 2)
    for (i64 k = (t.part * 32 + t.lane) * per_load; k < g.k; k += share * 32 * per_load) {
        Piece y[NR];
#pragma unroll
        for (int j = 0; j < NR; j++)
            y[j].u = ld_stream(pb[j] + k);
#if BYTES
#pragma unroll
        for (int i = 0; i < MR; i++) {
            uint4 x = *(const uint4*)(pa[i] + k);
            const u32 words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
            for (int j = 0; j < NR; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    acc[i][j] =
                        dot_bytes<(TA)-1 < 0, (TB)-1 < 0>(words[e], y[j].words[e], acc[i][j]);
        }
#else
        ACC ys[NR][per_load];
#pragma unroll
        for (int j = 0; j < NR; j++)
#pragma unroll
            for (int e = 0; e < per_load; e++)
                ys[j][e] = (ACC)widen(y[j].p.v[e]);
#pragma unroll
        for (int i = 0; i < MR; i++) {
            Pack<TA, per_load> x = *(const Pack<TA, per_load>*)(pa[i] + k);
#pragma unroll
            for (int e = 0; e < per_load; e++) {
                ACC v = (ACC)widen(x.v[e]);
#pragma unroll
                for (int j = 0; j < NR; j++)
                    acc[i][j] += v * ys[j][e];
            }
        }
#endif
    }
    t.store_by_epilogue(acc, (ACC*)memory, share, g, out EPI_PASS);
}
