// SPDX-License-Identifier: Apache-2.0
// softmax(q k^T * scale + mask) v for f16 and bf16 with online softmax in f32: mma.sync and
// cp.async. Every block reads its rows of q once and all keys and values that they see.
// DH head size (a multiple of 8), padded to D in shared memory only; MI * 16 rows a warp, NW warps,
// BN keys a step; MASK 0 none, 1 bool, 2 of type M added; CAP: 1 softcap, 2 a scale that is not
// positive; QREG: q stays in registers; SPLIT: sums go to scratch.
#define D ((DH + 15) / 16 * 16)
#define BM (16 * MI * NW)
#define NT (32 * NW)
#define PLAIN (MASK == 0 && CAP == 0)
/// Rows of D halves, swizzled so that ldmatrix meets no bank twice.
DEVICE u32 swz(int r, int c) {
    return (u32)(r * (D * 2) + ((c ^ (D % 64 == 0   ? r & 7
                                      : D % 32 == 0 ? (r >> 1) & 3
                                                    : (r >> 2) & 1))
                                << 4));
}
DEVICE void fill_tile(u32 to, const u16* from, i64 stride, int row, int rows, int count) {
#pragma unroll 4
    for (int i = threadIdx.x; i < count * (D / 8); i += NT) {
        int r = i / (D / 8), c = i % (D / 8);
        bool ok = row + r < rows && c * 8 < DH;
        cp_async16(to + swz(r, c), from + (ok ? (i64)(row + r) * stride + c * 8 : 0), ok ? 16 : 0);
    }
}

KERNEL void __launch_bounds__(NT)
    attention_mma(const u16* __restrict__ Q, const u16* __restrict__ K, const u16* __restrict__ V,
                  const M* __restrict__ mask, u16* __restrict__ O, float* __restrict__ sums,
                  Attn a) {
    SHARED(sm);
    u32 q_s = smem_addr(sm), k_s = q_s + BM * D * 2, v_s = k_s + 2 * BN * D * 2;
    int tid = threadIdx.x, lane = tid & 31, w = tid >> 5;
    int g = blockIdx.y % a.groups, split = blockIdx.y / a.groups, m0 = blockIdx.x * BM;
    int rows = a.share * a.queries, first, last;
    key_range(a, split, m0, BM, first, last);
    const u16* q = Q + blockIdx.z * a.q[0] + (i64)g * a.share * a.q[1];
    const u16* k = K + blockIdx.z * a.k[0] + (i64)g * a.k[1];
    const u16* v = V + blockIdx.z * a.v[0] + (i64)g * a.v[1];
    float scale = (float)a.scale, unit = PLAIN ? scale * 1.44269504f : 1.44269504f;
    grid_wait();
#pragma unroll 4
    for (int i = tid; i < BM * (D / 8); i += NT) {
        int r = i / (D / 8), c = i % (D / 8), row = m0 + r;
        bool ok = row < rows && c * 8 < DH;
        int head = row / a.queries, s = row - head * a.queries;
        cp_async16(q_s + swz(r, c), q + (ok ? head * a.q[1] + s * a.q[2] + c * 8 : 0), ok ? 16 : 0);
    }
    int least = m0 % a.queries; // the first query of the tile
    if (least + BM > a.queries)
        least = 0;
    int steps = (last - first + BN - 1) / BN;
    if (steps > 0) {
        fill_tile(k_s, k, a.k[2], first, a.keys, BN);
        fill_tile(v_s, v, a.v[2], first, a.keys, BN);
    }
    cp_async_commit();
    float acc[MI][D / 8][4], top[MI][2], l[MI][2];
#if QREG
    u32 qf[MI][D / 16][4];
#endif
    int pos[MI][2]; // query of the rows of this thread
#if MASK
    const M* mrow[MI][2];
#endif
#pragma unroll
    for (int i = 0; i < MI; i++) {
#pragma unroll
        for (int j = 0; j < D / 8; j++)
            acc[i][j][0] = acc[i][j][1] = acc[i][j][2] = acc[i][j][3] = 0.f;
#pragma unroll
        for (int t = 0; t < 2; t++) {
            top[i][t] = __uint_as_float(0xff800000u);
            l[i][t] = 0.f;
            int row = m0 + (w * MI + i) * 16 + (lane >> 2) + t * 8;
            row = row < rows ? row : rows - 1;
            int head = row / a.queries;
            pos[i][t] = row - head * a.queries;
#if MASK
            mrow[i][t] = mask + blockIdx.z * a.m[0] + ((i64)g * a.share + head) * a.m[1] +
                         pos[i][t] * a.m[2];
#endif
        }
    }
#pragma unroll 1
    for (int n = 0; n < steps; n++) {
        int key = first + n * BN;
        if (n + 1 < steps) {
            fill_tile(k_s + ((n + 1) & 1) * BN * D * 2, k, a.k[2], key + BN, a.keys, BN);
            fill_tile(v_s + ((n + 1) & 1) * BN * D * 2, v, a.v[2], key + BN, a.keys, BN);
        }
        cp_async_commit();
        cp_async_wait<1>();
        sync();
#if QREG
        if (n == 0) {
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int j = 0; j < D / 16; j++)
                    ldmatrix4(qf[i][j],
                              q_s + swz((w * MI + i) * 16 + (lane & 15), j * 2 + (lane >> 4)));
        }
#endif
        u32 kb = k_s + (n & 1) * BN * D * 2, vb = v_s + (n & 1) * BN * D * 2;
        float s[MI][BN / 8][4];
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < BN / 8; j++)
                s[i][j][0] = s[i][j][1] = s[i][j][2] = s[i][j][3] = 0.f;
#pragma unroll
        for (int d = 0; d < D / 16; d++) {
#if !QREG
            u32 qf[MI][1][4];
#pragma unroll
            for (int i = 0; i < MI; i++)
                ldmatrix4(qf[i][0],
                          q_s + swz((w * MI + i) * 16 + (lane & 15), d * 2 + (lane >> 4)));
#endif
#pragma unroll
            for (int j = 0; j < BN / 16; j++) {
                u32 b[4];
                ldmatrix4(b, kb + swz(j * 16 + (lane & 7) + ((lane >> 4) << 3),
                                      d * 2 + ((lane >> 3) & 1)));
#pragma unroll
                for (int i = 0; i < MI; i++) {
                    MMA(s[i][2 * j], qf[i][QREG ? d : 0], b[0], b[1]);
                    MMA(s[i][2 * j + 1], qf[i][QREG ? d : 0], b[2], b[3]);
                }
            }
        }
        bool edge = key + BN > last || (a.causal && key + BN - 1 > least + a.offset);
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < BN / 8; j++)
#pragma unroll
                for (int t = 0; t < 4; t++) {
                    int c = key + j * 8 + (lane & 3) * 2 + (t & 1);
                    float x = s[i][j][t];
                    if (!PLAIN)
                        x *= scale;
#if CAP == 1
                    x = (float)a.softcap * tanhf(x / (float)a.softcap);
#endif
#if MASK
                    if (c < a.keys) {
                        M y = mrow[i][t >> 1][c * a.m[3]];
                        if (MASK == 1)
                            x = widen(y) ? x : __uint_as_float(0xff800000u);
                        else
                            x += (float)widen(y);
                    }
#endif
                    if (edge && (c >= last || (a.causal && c > pos[i][t >> 1] + a.offset)))
                        x = __uint_as_float(0xff800000u);
                    s[i][j][t] = x;
                }
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int t = 0; t < 2; t++) {
                float m = top[i][t];
#pragma unroll
                for (int j = 0; j < BN / 8; j++)
                    m = fmaxf(m, fmaxf(s[i][j][2 * t], s[i][j][2 * t + 1]));
                m = fmaxf(m, shfl_xor(m, 1));
                m = fmaxf(m, shfl_xor(m, 2));
                float base = m == __uint_as_float(0xff800000u) ? 0.f : m;
                float f = ex2((top[i][t] - base) * unit), sum = 0.f, shift = -base * unit;
                top[i][t] = m;
#pragma unroll
                for (int j = 0; j < BN / 8; j++) {
                    float x = s[i][j][2 * t], y = s[i][j][2 * t + 1];
                    x = PLAIN ? ex2(fmaf(x, unit, shift)) : ex2((x - base) * unit);
                    y = PLAIN ? ex2(fmaf(y, unit, shift)) : ex2((y - base) * unit);
                    s[i][j][2 * t] = x;
                    s[i][j][2 * t + 1] = y;
                    sum += x + y;
                }
                l[i][t] = l[i][t] * f + sum;
#pragma unroll
                for (int j = 0; j < D / 8; j++) {
                    acc[i][j][2 * t] *= f;
                    acc[i][j][2 * t + 1] *= f;
                }
            }
#pragma unroll
        for (int j = 0; j < BN / 16; j++) {
            u32 p[MI][4];
#pragma unroll
            for (int i = 0; i < MI; i++) {
                p[i][0] = PACK(s[i][2 * j][0], s[i][2 * j][1]);
                p[i][1] = PACK(s[i][2 * j][2], s[i][2 * j][3]);
                p[i][2] = PACK(s[i][2 * j + 1][0], s[i][2 * j + 1][1]);
                p[i][3] = PACK(s[i][2 * j + 1][2], s[i][2 * j + 1][3]);
            }
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                u32 b[4];
                ldmatrix4_trans(b, vb + swz(j * 16 + (lane & 15), d * 2 + (lane >> 4)));
#pragma unroll
                for (int i = 0; i < MI; i++) {
                    MMA(acc[i][2 * d], p[i], b[0], b[1]);
                    MMA(acc[i][2 * d + 1], p[i], b[2], b[3]);
                }
            }
        }
        sync();
    }
    cp_async_wait<0>();
    grid_release();
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
        for (int t = 0; t < 2; t++) {
            float sum = l[i][t];
            sum += shfl_xor(sum, 1);
            sum += shfl_xor(sum, 2);
            int row = m0 + (w * MI + i) * 16 + (lane >> 2) + t * 8;
            if (row >= rows)
                continue;
#if SPLIT
            i64 at = ((i64)(blockIdx.z * a.groups + g) * a.splits + split) * rows + row;
            float* to = sums + at * (DH + 2);
#pragma unroll
            for (int j = 0; j < DH / 8; j++) {
                to[j * 8 + (lane & 3) * 2] = acc[i][j][2 * t];
                to[j * 8 + (lane & 3) * 2 + 1] = acc[i][j][2 * t + 1];
            }
            if ((lane & 3) == 0) {
                to[DH] = PLAIN ? top[i][t] * scale : top[i][t];
                to[DH + 1] = sum;
            }
#else
            float r = sum > 0.f ? 1.f / sum : 0.f;
            int head = row / a.queries;
            u16* to = O + blockIdx.z * a.o[0] + ((i64)g * a.share + head) * a.o[1] +
                      (row - head * a.queries) * a.o[2];
#pragma unroll
            for (int j = 0; j < DH / 8; j++)
                *(u32*)(to + j * 8 + (lane & 3) * 2) =
                    PACK(acc[i][j][2 * t] * r, acc[i][j][2 * t + 1] * r);
#endif
        }
}
