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
#pragma unroll 1
    for (int q = 0; q < (int)w.kernel[0]; q++) {
        i32 d = o.at[0] + q * (i32)w.dilation[0];
#pragma unroll 1
        for (int r = 0; r < (int)w.kernel[1]; r++) {
            i32 h = o.at[1] + r * (i32)w.dilation[1];
            if (d < 0 || d >= (i32)w.in[0] || h < 0 || h >= (i32)w.in[1])
                continue;
            const TA* row = from + (i64)d * w.step[0] + (i64)h * w.step[1];
            i64 tap = ((i64)q * w.kernel[1] + r) * w.kernel[2];
#pragma unroll 3
            for (int s = 0; s < (int)w.kernel[2]; s++) {
                Pack<TB, VEC> b = *(const Pack<TB, VEC>*)(y + (tap + s) * weight_step);
#pragma unroll
                for (int i = 0; i < WIDE; i++) {
                    i32 p = o.at[2] + i * (i32)w.stride[2] + s * (i32)w.dilation[2];
                    if (p >= 0 && p < (i32)w.in[2])
                        add_product(acc[i], *(const Pack<TA, VEC>*)(row + (i64)p * w.step[2]), b);
                }
            }
        }
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
