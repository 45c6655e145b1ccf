// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution, channels innermost: a thread makes VEC channels of WIDE adjacent results
// along the last axis. Memory traffic: input and result once; L1 serves the overlap of windows.
template <class T>
DEVICE void add_product(ACC* acc, const Pack<T, VEC>& x, const Pack<TB, VEC>& y) {
#pragma unroll
    for (int v = 0; v < VEC; v++)
        acc[v] += (ACC)widen(x.v[v]) * (ACC)widen(y.v[v]);
}

KERNEL void __launch_bounds__(128, 1)
    conv_depthwise(const TA* __restrict__ x, const TB* __restrict__ weights, OUT* __restrict__ out,
                   i64 weight_step, const __grid_constant__ Window w,
                   const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    u32 groups = (u32)(g.n / VEC), runs = (u32)((w.out[2] + WIDE - 1) / WIDE);
    i64 index = (i64)blockIdx.x * 128 + threadIdx.x;
    i64 line = index / groups;
    int c = (int)(index - line * groups) * VEC;
    i64 outer = line / runs; // image and all spatial axes but the last
    int first = (int)(line - outer * runs) * WIDE;
    grid_wait();
    if (outer * w.out[2] >= g.m)
        return;
    Origin o(w, (u32)(outer * w.out[2] + first));
    ACC acc[WIDE][VEC];
#pragma unroll
    for (int i = 0; i < WIDE; i++)
#pragma unroll
        for (int v = 0; v < VEC; v++)
            acc[i][v] = (ACC)0;
    const TB* y = weights + c * g.bn[0];
    const TA* from = x + o.image + c * w.step_c;
    // All loads of a batch of taps are in flight before the first product.
    int taps = (int)(w.kernel[0] * w.kernel[1] * w.kernel[2]), q = 0, r = 0, s = 0;
#pragma unroll 1
    for (int tap = 0; tap < taps; tap += BATCH) {
        Pack<TB, VEC> b[BATCH];
        Pack<TA, VEC> a[BATCH][WIDE];
        bool inside[BATCH][WIDE];
#pragma unroll
        for (int t = 0; t < BATCH; t++) {
            i32 d = o.at[0] + q * (i32)w.dilation[0], h = o.at[1] + r * (i32)w.dilation[1];
            bool met = tap + t < taps && d >= 0 && d < (i32)w.in[0] && h >= 0 && h < (i32)w.in[1];
            if (met)
                b[t] = *(const Pack<TB, VEC>*)(y + (i64)(tap + t) * weight_step);
            const TA* row = from + (i64)d * w.step[0] + (i64)h * w.step[1];
#pragma unroll
            for (int i = 0; i < WIDE; i++) {
                i32 p = o.at[2] + i * (i32)w.stride[2] + s * (i32)w.dilation[2];
                inside[t][i] = met && p >= 0 && p < (i32)w.in[2];
                if (inside[t][i])
                    a[t][i] = *(const Pack<TA, VEC>*)(row + (i64)p * w.step[2]);
            }
            if (++s == (int)w.kernel[2]) {
                s = 0;
                if (++r == (int)w.kernel[1])
                    r = 0, q++;
            }
        }
#pragma unroll
        for (int t = 0; t < BATCH; t++)
#pragma unroll
            for (int i = 0; i < WIDE; i++)
                if (inside[t][i])
                    add_product(acc[i], a[t][i], b[t]);
    }
    end_main_loop();
#pragma unroll
    for (int i = 0; i < WIDE; i++) {
        if (first + i >= w.out[2])
            break;
        Spot s;
        s.batch(g, 0);
        s.add_row(g, (u32)(outer * w.out[2] + first + i));
        s.add_column(g, (u32)c);
        deliver(acc[i], s.at, g, out EPI_PASS);
    }
}
