// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of [N,C,spatial...]: V adjacent results per thread along the channels (CL)
// or along the last spatial axis (V is 1 then). Traffic: x about once, thanks to the caches. T
// stored, C compute, AVERAGE or maximum, SR spatial axes, NV views (x, result, operands). TAPS: of
// a window of SIZES, which a thread reads AT_ONCE at a time; 0 where it is too large for the text.
// PACKED: two elements at a time (maxima.cuh); 0: one by one.
struct Pool {
    i64 count;        // of results, in vectors
    i64 stride[8][5]; // of each view over [N,C,spatial...]
    i32 channels, in[3], out[3], size[3], step[3], dilation[3], low[3], high[3], count_padding;
};
DEVICE void next(i64& rest, int& at, int size) { // splits off the innermost axis
    i64 q = (rest >> 32) ? rest / size : (i64)((u32)rest / (u32)size);
    at = (int)(rest - q * size);
    rest = q;
}
KERNEL void __launch_bounds__(256, 4)
    pool(const T* __restrict__ x, OUT* __restrict__ out, Pool p EPI_PARAMS) {
    begin_kernel();
    grid_wait();
    i64 rest = (i64)blockIdx.x * 256 + threadIdx.x;
    if (rest >= p.count)
        return;
    int c = 0, o[3] = {0, 0, 0};
    if (CL)
        next(rest, c, p.channels / V);
#pragma unroll
    for (int d = SR - 1; d >= 0; d--)
        next(rest, o[d], p.out[d]);
    if (!CL)
        next(rest, c, p.channels);
    c *= V;
    C acc[V];
#pragma unroll
    for (int k = 0; k < V; k++)
        acc[k] = IDENTITY;
    const T* from = x + rest * p.stride[0][0] + c * p.stride[0][1];
    int begin[3], count[3] = {1, 1, 1};
    C divisor = (C)1;
#pragma unroll
    for (int d = 0; d < SR; d++) {
        begin[d] = o[d] * p.step[d] - p.low[d];
        count[d] = p.size[d];
        if (AVERAGE) {
            int inside = 0;
            int lowest = p.count_padding ? -p.low[d] : 0,
                end = p.in[d] + (p.count_padding ? p.high[d] : 0);
            for (int k = 0; k < p.size[d]; k++) {
                int at = begin[d] + k * p.dilation[d];
                inside += at >= lowest && at < end;
            }
            divisor *= (C)inside;
        }
    }
#if TAPS
    constexpr int sizes[3] = SIZES;
    i64 beside[3]; // from a tap to the next along an axis
#pragma unroll
    for (int d = 0; d < SR; d++) {
        from += begin[d] * p.stride[0][2 + d];
        beside[d] = p.dilation[d] * p.stride[0][2 + d];
    }
#if PACKED
    using Read = Pack<u32, V * Maxima<PACKED>::bytes / 4>;
    u32 best[V / 2];
#pragma unroll
    for (int k = 0; k < V / 2; k++)
        best[k] = Maxima<PACKED>::none;
#else
    using Read = Pack<T, V>;
#endif
#pragma unroll
    for (int first = 0; first < TAPS; first += AT_ONCE) {
        Read v[AT_ONCE];
        bool in[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            int tap = first + i;
            i64 at = 0;
            in[i] = tap < TAPS;
#pragma unroll
            for (int d = SR - 1; d >= 0; d--) {
                int q = begin[d] + tap % sizes[d] * p.dilation[d];
                in[i] = in[i] && q >= 0 && q < p.in[d];
                at += tap % sizes[d] * beside[d];
                tap /= sizes[d];
            }
            if (in[i])
                v[i] = *(const Read*)(from + at);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
#if PACKED
            if (in[i])
                join_maxima<PACKED, V>(best, v[i]);
#else
#pragma unroll
            for (int k = 0; k < V; k++)
                acc[k] = in[i] ? combine<FN>(acc[k], (C)widen(v[i].v[k])) : acc[k];
#endif
        }
    }
#if PACKED
#pragma unroll
    for (int k = 0; k < V; k++)
        acc[k] = maximum_of<PACKED, C>(best, k);
#endif
#else
    for (int a = 0; a < count[0]; a++) {
        int i0 = begin[0] + a * p.dilation[0];
        if (i0 < 0 || i0 >= p.in[0])
            continue;
        for (int b = 0; b < (SR > 1 ? count[1] : 1); b++) {
            int i1 = SR > 1 ? begin[1] + b * p.dilation[1] : 0;
            if (SR > 1 && (i1 < 0 || i1 >= p.in[1]))
                continue;
            for (int e = 0; e < (SR > 2 ? count[2] : 1); e++) {
                int i2 = SR > 2 ? begin[2] + e * p.dilation[2] : 0;
                if (SR > 2 && (i2 < 0 || i2 >= p.in[2]))
                    continue;
                i64 at = i0 * p.stride[0][2];
                if (SR > 1)
                    at += i1 * p.stride[0][3];
                if (SR > 2)
                    at += i2 * p.stride[0][4];
                Pack<T, V> v = *(const Pack<T, V>*)(from + at);
#pragma unroll
                for (int k = 0; k < V; k++)
                    acc[k] = combine<FN>(acc[k], (C)widen(v.v[k]));
            }
        }
    }
#endif
    i64 at[NV];
#pragma unroll
    for (int v = 1; v < NV; v++) {
        at[v] = rest * p.stride[v][0] + c * p.stride[v][1];
#pragma unroll
        for (int d = 0; d < SR; d++)
            at[v] += o[d] * p.stride[v][2 + d];
    }
    i64 to = at[1];
    Pack<OUT, V> r;
#pragma unroll
    for (int k = 0; k < V; k++) {
        r.v[k] = epilogue((R)(AVERAGE ? acc[k] / divisor : acc[k]), at EPI_PASS);
#pragma unroll
        for (int v = 1; v < NV; v++)
            at[v] += p.stride[v][1];
    }
    *(Pack<OUT, V>*)(out + to) = r;
}
