// SPDX-License-Identifier: Apache-2.0
// Products of at most MR rows with quantised columns: every packed byte is read once, which
// determines the kernel's time. A lane takes 16 elements of the depth of NR columns at a time.
constexpr int x_pack = 16 / sizeof(TA);

/// 16 elements of a row.
struct Row {
    Pack<TA, x_pack> v[16 / x_pack];
    DEVICE void read(const TA* from) {
#pragma unroll
        for (int e = 0; e < 16 / x_pack; e++)
            v[e] = *(const Pack<TA, x_pack>*)(from + e * x_pack);
    }
    DEVICE float operator[](int e) const {
        return (float)widen(v[e / x_pack].v[e % x_pack]);
    }
};

KERNEL void __launch_bounds__(256, MR == 1 ? 3 : 2)
    quant_gemv(const TA* __restrict__ a, const u8* __restrict__ q, const SCALE* __restrict__ scales,
               const ZERO* __restrict__ zeros, OUT* __restrict__ out, i32 share,
               const __grid_constant__ Blocks blocks,
               const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    Gemv t(g, share);
    grid_wait();
    const TA* pa[MR];
    const u8* pq[NR];
#pragma unroll
    for (int i = 0; i < MR; i++)
        pa[i] = a + t.row(i, g);
#pragma unroll
    for (int j = 0; j < NR; j++)
        pq[j] = q_bytes(q, column_of_b(t.column(j, g), g) * g.bn[0]);
    ACC acc[MR][NR];
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int j = 0; j < NR; j++)
            acc[i][j] = (ACC)0;
#pragma unroll 1
    for (i64 k = (t.part * 32 + t.lane) * 16; k < g.k; k += share * 512) {
        u32 words[NR][q_words];
        Scale scale[NR];
#pragma unroll
        for (int j = 0; j < NR; j++) {
            q_read(words[j], q_bytes(pq[j], k));
            scale[j].read(scales, zeros, blocks, column_of_b(t.column(j, g), g), k);
        }
#if MR > 2
        float y[NR][16]; // each row is widened once for all columns
#pragma unroll
        for (int j = 0; j < NR; j++)
            q_widen(y[j], words[j], scale[j].origin());
#pragma unroll
        for (int i = 0; i < MR; i++) {
            Row x;
            x.read(pa[i] + k);
            float sum[NR];
#pragma unroll
            for (int j = 0; j < NR; j++)
                sum[j] = 0.0f;
#pragma unroll
            for (int e = 0; e < 16; e++) {
                float v = x[e];
#pragma unroll
                for (int j = 0; j < NR; j++)
                    sum[j] += v * y[j][e];
            }
#pragma unroll
            for (int j = 0; j < NR; j++)
                acc[i][j] += sum[j] * scale[j].step();
        }
#else
        Row x[MR];
#pragma unroll
        for (int i = 0; i < MR; i++)
            x[i].read(pa[i] + k);
#pragma unroll
        for (int j = 0; j < NR; j++) { // one column at a time is widened
            float y[16];
            q_widen(y, words[j], scale[j].origin());
#pragma unroll
            for (int i = 0; i < MR; i++) {
                float sum = 0.0f;
#pragma unroll
                for (int e = 0; e < 16; e++)
                    sum += x[i][e] * y[e];
                acc[i][j] += sum * scale[j].step();
            }
        }
#endif
    }
    t.store_by_epilogue(acc, (ACC*)memory, share, g, out EPI_PASS);
}
