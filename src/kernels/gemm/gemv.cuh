// SPDX-License-Identifier: Apache-2.0
// Products with at most MR rows: every byte of B is read once, in 16-byte pieces, and that is what
// the kernel's time is. A warp makes MR x NR results; `share` warps of a block split the depth.
constexpr int per_load = 16 / sizeof(TB);

DEVICE Pack<TB, per_load> read_once(const TB* from) {
    union {
        uint4 u;
        Pack<TB, per_load> p;
    } v;
    v.u = ld_stream(from);
    return v.p;
}

KERNEL void __launch_bounds__(256)
    gemv(const TA* __restrict__ a, const TB* __restrict__ b, OUT* __restrict__ out, i32 share,
         const __grid_constant__ Geometry g EPI_PARAMS) {
    SHARED(memory);
    ACC* sums = (ACC*)memory; // [8 warps][MR * NR]
    int lane = threadIdx.x & 31, w = threadIdx.x >> 5, groups = 8 / share, part = w % share;
    u32 tn = (u32)((g.n + groups * NR - 1) / (groups * NR)), batch = blockIdx.x / tn;
    i64 n0 = ((i64)(blockIdx.x - batch * tn) * groups + w / share) * NR;
    grid_wait();
    u32 at[RB];
    unravel<RB>(at, batch, g.batch);
    a += place<RB>(at, g.ab);
    b += place<RB>(at, g.bb);
    const TA* pa[MR];
    const TB* pb[NR];
#pragma unroll
    for (int i = 0; i < MR; i++)
        pa[i] = a + offset_of<RM>((u32)(i < g.m ? i : g.m - 1), g.rows, g.am);
#pragma unroll
    for (int j = 0; j < NR; j++)
        pb[j] = b + offset_of<RN>((u32)(n0 + j < g.n ? n0 + j : g.n - 1), g.columns, g.bn);
    ACC acc[MR][NR];
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int j = 0; j < NR; j++)
            acc[i][j] = (ACC)0;
#pragma unroll(MR > 2 ? 1 : 2)
    for (i64 k = (part * 32 + lane) * per_load; k < g.k; k += share * 32 * per_load) {
        Pack<TB, per_load> y[NR];
#pragma unroll
        for (int j = 0; j < NR; j++)
            y[j] = read_once(pb[j] + k);
#pragma unroll
        for (int i = 0; i < MR; i++) {
            Pack<TA, per_load> x = *(const Pack<TA, per_load>*)(pa[i] + k);
#pragma unroll
            for (int j = 0; j < NR; j++)
#pragma unroll
                for (int e = 0; e < per_load; e++)
                    acc[i][j] += (ACC)widen(x.v[e]) * (ACC)widen(y[j].v[e]);
        }
    }
    grid_release();
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int j = 0; j < NR; j++) {
            ACC v = acc[i][j];
#pragma unroll
            for (int m = 16; m > 0; m >>= 1)
                v += shfl_xor(v, m);
            if (lane == 0)
                sums[w * MR * NR + i * NR + j] = v;
        }
    sync();
    int m = lane / NR;
    i64 n = n0 + lane % NR;
    if (part != 0 || lane >= MR * NR || m >= g.m || n >= g.n)
        return;
    ACC v[1] = {(ACC)0};
#pragma unroll 1
    for (int s = 0; s < share; s++)
        v[0] += sums[(w + s) * MR * NR + lane];
    Spot s;
    s.batch(g, batch);
    s.add_row(g, (u32)m);
    s.add_column(g, (u32)n);
    deliver(v, s.at, g, out EPI_PASS);
}
