// SPDX-License-Identifier: Apache-2.0
// Contraction on ordinary arithmetic units: any element types, any strides. A block makes 64 x 64
// results, 4 x 4 a thread; 16 of the depth at a time pass through shared memory. A_ROWS and
// B_COLUMNS: neighbouring threads load neighbouring rows (columns) instead of neighbouring depths.
constexpr int simt_pitch = 65;
constexpr i64 outside = (i64)1 << 62; // no offset: strides may be negative

KERNEL void __launch_bounds__(256) gemm_simt(const TA* __restrict__ a, const TB* __restrict__ b, OUT* __restrict__ out,
                                             const __grid_constant__ Geometry g EPI_PARAMS) {
    SHARED(memory);
    ACC* sa = (ACC*)memory;
    ACC* sb = sa + 16 * simt_pitch;
    int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
    u32 tm = (u32)((g.m + 63) / 64), tn = (u32)((g.n + 63) / 64), t = blockIdx.x;
    u32 batch = t / (tm * tn);
    t -= batch * tm * tn;
    i64 m0 = (i64)(t % tm) * 64, n0 = (i64)(t / tm) * 64;
    grid_wait();
    u32 at[RB];
    unravel<RB>(at, batch, g.batch);
    a += place<RB>(at, g.ab);
    b += place<RB>(at, g.bb);
    i64 ra[4], rb[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        i64 m = m0 + (A_ROWS ? tid % 64 : ty + 16 * i), n = n0 + (B_COLUMNS ? tid % 64 : ty + 16 * i);
        ra[i] = m < g.m ? offset_of<RM>((u32)m, g.rows, g.am) : outside;
        rb[i] = n < g.n ? offset_of<RN>((u32)n, g.columns, g.bn) : outside;
    }
    ACC acc[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] = (ACC)0;
#pragma unroll 1
    for (i64 k0 = 0; k0 < g.k; k0 += 16) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int ka = A_ROWS ? tid / 64 + 4 * i : tx, kb = B_COLUMNS ? tid / 64 + 4 * i : tx;
            ACC va = (ACC)0, vb = (ACC)0;
            if (k0 + ka < g.k && ra[i] != outside) va = (ACC)widen(a[ra[i] + offset_of<RK>((u32)(k0 + ka), g.depth, g.ak)]);
            if (k0 + kb < g.k && rb[i] != outside) vb = (ACC)widen(b[rb[i] + offset_of<RK>((u32)(k0 + kb), g.depth, g.bk)]);
            sa[ka * simt_pitch + (A_ROWS ? tid % 64 : ty + 16 * i)] = va;
            sb[kb * simt_pitch + (B_COLUMNS ? tid % 64 : ty + 16 * i)] = vb;
        }
        sync();
#pragma unroll 4
        for (int k = 0; k < 16; k++) {
            ACC x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                x[i] = sa[k * simt_pitch + ty + 16 * i];
                y[i] = sb[k * simt_pitch + tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) acc[i][j] += x[i] * y[j];
        }
        sync();
    }
    grid_release();
    ACC* tile = (ACC*)memory;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) tile[(ty + 16 * i) * tile_pitch + tx + 16 * j] = acc[i][j];
    sync();
    FromTile fetch = {tile};
    store_tile(fetch, tid, 256, 0, 64, batch, m0, n0, g, out EPI_PASS);
}
