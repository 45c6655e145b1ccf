// SPDX-License-Identifier: Apache-2.0
// Group normalisation with channels innermost. A thread keeps V channels and walks the pixels of
// its part of an image (blockIdx.y), with `rows` threads along the pixels. PHASE 0: mean and sum of
// squared distances of each group in each part; FOLDED: a thread's channels are of one group. PHASE
// 1: merges the parts in order and applies. Traffic: x twice, mostly from L2 the second time, and
// the result once. Pixels lie along AXES axes. T x, S scale, B bias, OUT result, C compute; NE
// operands of the map behind.
struct Channels {
    i64 scale_step, bias_step;
    i64 image[5], channel[5], pixel[5][3]; // steps in x, the result, the operands
    i32 inner[2];                          // sizes of the axes behind the first
    i32 channels, groups, pixels, part, vectors, rows;
};
/// Where pixel p is: its index along each axis.
struct Pixel {
    int at[AXES];
};
DEVICE Pixel pixel_of(int p, const Channels& s) {
    Pixel r;
#pragma unroll
    for (int axis = AXES - 1; axis > 0; axis--) {
        const int rest = p / s.inner[axis - 1];
        r.at[axis] = p - rest * s.inner[axis - 1];
        p = rest;
    }
    r.at[0] = p;
    return r;
}
DEVICE i64 offset_of(const Pixel& p, int view, const Channels& s) {
    i64 sum = 0;
#pragma unroll
    for (int axis = 0; axis < AXES; axis++)
        sum += p.at[axis] * s.pixel[view][axis];
    return sum;
}
DEVICE C warp_sum(C v) {
#pragma unroll
    for (int m = 16; m > 0; m >>= 1)
        v += exchange(v, m);
    return v;
}
/// 1 / n by Newton's steps: divisions are calls, around which registers are spilled.
DEVICE C inverse_of(i32 n) {
    C r = (C)__fdividef(1.0f, (float)n);
#pragma unroll
    for (int i = 0; i < (sizeof(C) == 8 ? 2 : 1); i++)
        r += r * ((C)1 - (C)n * r);
    return r;
}
DEVICE i32 least(i32 a, i32 b) {
    return a < b ? a : b;
}

#if PHASE == 0
KERNEL void __launch_bounds__(512)
    group_stats(const T* __restrict__ x, C* __restrict__ stats, Channels s) {
    begin_kernel();
    SHARED(memory);
    C* means = (C*)memory; // [rows][channels]
    C* squares = means + s.rows * s.channels;
    grid_wait();
    const int column = threadIdx.x % s.vectors, row = threadIdx.x / s.vectors;
    const int begin = blockIdx.x * s.part, end = least(begin + s.part, s.pixels);
    const int left = end - begin - row, count = left > 0 ? (left + s.rows - 1) / s.rows : 0;
    const int size = s.channels / s.groups;
    const C each = inverse_of(count ? count : 1), share = inverse_of((end - begin) * size);
    const T* from = x + blockIdx.y * s.image[0] + column * V;
    C shift[V], sum[V], square[V];
#pragma unroll
    for (int k = 0; k < V; k++)
        shift[k] = sum[k] = square[k] = (C)0;
    int p = begin + row;
    // Distances from the first pixel keep precision where the mean is far from zero.
    if (p < end) {
        Pack<T, V> v = *(const Pack<T, V>*)(from + offset_of(pixel_of(p, s), 0, s));
#pragma unroll
        for (int k = 0; k < V; k++)
            shift[k] = (C)widen(v.v[k]);
        p += s.rows;
    }
#pragma unroll 2
    for (; p < end; p += s.rows) {
        Pack<T, V> v = *(const Pack<T, V>*)(from + offset_of(pixel_of(p, s), 0, s));
#pragma unroll
        for (int k = 0; k < V; k++) {
            C d = (C)widen(v.v[k]) - shift[k];
            sum[k] += d;
            square[k] += d * d;
        }
    }
#if FOLDED
    C first = (C)0, all = (C)0;
#pragma unroll
    for (int k = 0; k < V; k++)
        first += (shift[k] + sum[k] * each) * (C)(1.0f / V);
#pragma unroll
    for (int k = 0; k < V; k++) {
        C mean = sum[k] * each, d = shift[k] + mean - first;
        all += square[k] - sum[k] * mean + (C)count * d * d;
    }
    means[row * s.vectors + column] = first;
    squares[row * s.vectors + column] = all;
#else
    const int at = row * s.channels + column * V;
#pragma unroll
    for (int k = 0; k < V; k++) {
        C mean = sum[k] * each;
        means[at + k] = shift[k] + mean;
        squares[at + k] = square[k] - sum[k] * mean;
    }
#endif
    sync();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    if (warp >= warps)
        return;
    constexpr int together = FOLDED ? V : 1; // channels of a column
    const int columns = size / together, pitch = s.channels / together;
    for (int g = warp; g < s.groups; g += warps) {
        C mean = (C)0, total = (C)0;
        for (int j = lane; j < s.rows * columns; j += 32) {
            int r = j / columns, rest = end - begin - r;
            C weight = (C)(rest > 0 ? (rest + s.rows - 1) / s.rows * together : 0);
            mean += weight * means[r * pitch + g * columns + j - r * columns];
        }
        mean = warp_sum(mean) * share;
        for (int j = lane; j < s.rows * columns; j += 32) {
            int r = j / columns, rest = end - begin - r;
            int c = r * pitch + g * columns + j - r * columns;
            C weight = (C)(rest > 0 ? (rest + s.rows - 1) / s.rows * together : 0);
            C d = means[c] - mean;
            total += squares[c] + weight * d * d;
        }
        total = warp_sum(total);
        if (lane == 0) {
            C* to = stats + (((i64)blockIdx.y * s.groups + g) * gridDim.x + blockIdx.x) * 2;
            to[0] = mean;
            to[1] = total;
        }
    }
}
#else
KERNEL void __launch_bounds__(512)
    group_apply(const T* __restrict__ x, OUT* __restrict__ out, const S* __restrict__ scale,
                const B* __restrict__ bias, const C* __restrict__ stats, Channels s,
                C epsilon EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    C* means = (C*)memory; // [groups]
    C* inverses = means + s.groups;
    grid_wait();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int size = s.channels / s.groups, parts = gridDim.x;
    for (int g = warp; g < s.groups && warp < warps; g += warps) {
        const C* own = stats + ((i64)blockIdx.y * s.groups + g) * parts * 2;
        C mean = (C)0, total = (C)0;
        for (int j = lane; j < parts; j += 32)
            mean += (C)least(s.part, s.pixels - j * s.part) * own[2 * j];
        mean = warp_sum(mean) / (C)s.pixels;
        for (int j = lane; j < parts; j += 32) {
            C d = own[2 * j] - mean;
            total += own[2 * j + 1] + (C)least(s.part, s.pixels - j * s.part) * (C)size * d * d;
        }
        total = warp_sum(total);
        if (lane == 0) {
            means[g] = mean;
            inverses[g] = (C)1 / ingot_sqrt(total / ((C)s.pixels * (C)size) + epsilon);
        }
    }
    sync();
    const int column = threadIdx.x % s.vectors, row = threadIdx.x / s.vectors;
    const int begin = blockIdx.x * s.part, end = least(begin + s.part, s.pixels);
    C mean[V], factor[V], offset[V];
#pragma unroll
    for (int k = 0; k < V; k++) {
        int c = column * V + k;
        mean[k] = means[c / size];
        factor[k] = inverses[c / size] * (C)widen(scale[c * s.scale_step]);
        offset[k] = bias ? (C)widen(bias[c * s.bias_step]) : (C)0;
    }
    const T* from = x + blockIdx.y * s.image[0] + column * V;
    OUT* to = out + blockIdx.y * s.image[1] + column * V;
#pragma unroll 2
    for (int p = begin + row; p < end; p += s.rows) {
        const Pixel pixel = pixel_of(p, s);
        Pack<T, V> v = *(const Pack<T, V>*)(from + offset_of(pixel, 0, s));
        Pack<OUT, V> o;
        i64 at[NE + 1];
#pragma unroll
        for (int e = 0; e < NE; e++)
            at[e] = blockIdx.y * s.image[e + 2] + offset_of(pixel, e + 2, s) +
                    (i64)column * V * s.channel[e + 2];
#pragma unroll
        for (int k = 0; k < V; k++) {
            o.v[k] =
                epilogue((R)(((C)widen(v.v[k]) - mean[k]) * factor[k] + offset[k]), at EPI_PASS);
#pragma unroll
            for (int e = 0; e < NE; e++)
                at[e] += s.channel[e + 2];
        }
        *(Pack<OUT, V>*)(to + offset_of(pixel, 1, s)) = o;
    }
    end_main_loop();
}
#endif
