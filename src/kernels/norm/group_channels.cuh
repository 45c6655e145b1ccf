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
    i64 advance[5], carry[5][2]; // by `rows` pixels; where an axis behind the first has ended
    i32 inner[2], step[2];       // sizes of the axes behind the first; `rows` pixels along these
    i32 channels, groups, pixels, part, vectors, rows;
    i32 lanes; // that merge the statistics of a group: a power of two
};
/// Where a thread's pixel is, in x and VIEWS - 1 further views: by additions, since an index along
/// each axis is a division.
template <int VIEWS>
struct Walk {
    i64 offset[VIEWS];
    int at[AXES];
    DEVICE Walk(int p, const Channels& s) {
#pragma unroll
        for (int axis = AXES - 1; axis > 0; axis--) {
            const int rest = p / s.inner[axis - 1];
            at[axis] = p - rest * s.inner[axis - 1];
            p = rest;
        }
        at[0] = p;
#pragma unroll
        for (int v = 0; v < VIEWS; v++) {
            offset[v] = 0;
#pragma unroll
            for (int axis = 0; axis < AXES; axis++)
                offset[v] += at[axis] * s.pixel[v][axis];
        }
    }
    DEVICE void advance(const Channels& s) {
#pragma unroll
        for (int v = 0; v < VIEWS; v++)
            offset[v] += s.advance[v];
#pragma unroll
        for (int axis = AXES - 1; axis > 0; axis--) {
            at[axis] += s.step[axis - 1];
            const bool ends = at[axis] >= s.inner[axis - 1];
            at[axis] -= ends ? s.inner[axis - 1] : 0;
            at[axis - 1] += ends ? 1 : 0;
#pragma unroll
            for (int v = 0; v < VIEWS; v++)
                offset[v] += ends ? s.carry[v][axis - 1] : 0;
        }
    }
};
/// The sum of the lanes that merge a group.
DEVICE C sum_of_lanes(C v, int lanes) {
#pragma unroll 1
    for (int m = lanes >> 1; m > 0; m >>= 1)
        v += exchange(v, m);
    return v;
}
/// Whole warps merge statistics; each of their threads has a part of the groups first, first +
/// step,
/// ... up to `end`, which lets all lanes of a warp take part in each sum.
struct Mergers {
    int lane, first, step, end;
    DEVICE explicit Mergers(const Channels& s) {
        const int threads = blockDim.x & ~31;
        lane = threadIdx.x % s.lanes;
        step = threads / s.lanes;
        first = (int)threadIdx.x < threads ? threadIdx.x / s.lanes : 1 << 30;
        end = (s.groups + step - 1) / step * step;
    }
};
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
    constexpr int together = FOLDED ? V : 1;     // channels of a column
    const int pitch = s.channels / together | 1; // odd: rows lie in different banks
    C* means = (C*)memory;                       // [rows][channels / together]
    C* squares = means + s.rows * pitch;
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
    Walk<1> walk(begin + row, s);
    // Distances from the first pixel keep precision where the mean is far from zero.
    if (count > 0) {
        Pack<T, V> v = *(const Pack<T, V>*)(from + walk.offset[0]);
#pragma unroll
        for (int k = 0; k < V; k++)
            shift[k] = (C)widen(v.v[k]);
    }
#pragma unroll 4
    for (int i = 1; i < count; i++) {
        walk.advance(s);
        Pack<T, V> v = *(const Pack<T, V>*)(from + walk.offset[0]);
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
    means[row * pitch + column] = first;
    squares[row * pitch + column] = all;
#else
    const int at = row * pitch + column * V;
#pragma unroll
    for (int k = 0; k < V; k++) {
        C mean = sum[k] * each;
        means[at + k] = shift[k] + mean;
        squares[at + k] = square[k] - sum[k] * mean;
    }
#endif
    sync();
    const int columns = size / together;
    const Mergers merge(s);
    for (int g = merge.first; g < merge.end; g += merge.step) {
        const int all = g < s.groups ? s.rows * columns : 0;
        C mean = (C)0, total = (C)0;
        for (int j = merge.lane; j < all; j += s.lanes) {
            int r = j / columns, rest = end - begin - r;
            C weight = (C)(rest > 0 ? (rest + s.rows - 1) / s.rows * together : 0);
            mean += weight * means[r * pitch + g * columns + j - r * columns];
        }
        mean = sum_of_lanes(mean, s.lanes) * share;
        for (int j = merge.lane; j < all; j += s.lanes) {
            int r = j / columns, rest = end - begin - r;
            int c = r * pitch + g * columns + j - r * columns;
            C weight = (C)(rest > 0 ? (rest + s.rows - 1) / s.rows * together : 0);
            C d = means[c] - mean;
            total += squares[c] + weight * d * d;
        }
        total = sum_of_lanes(total, s.lanes);
        if (merge.lane == 0 && g < s.groups) {
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
    const int size = s.channels / s.groups, parts = gridDim.x;
    const C share = inverse_of(s.pixels);
    const Mergers merge(s);
    for (int g = merge.first; g < merge.end; g += merge.step) {
        const C* own = stats + ((i64)blockIdx.y * s.groups + g) * parts * 2;
        const int all = g < s.groups ? parts : 0;
        C mean = (C)0, total = (C)0;
        for (int j = merge.lane; j < all; j += s.lanes)
            mean += (C)least(s.part, s.pixels - j * s.part) * own[2 * j];
        mean = sum_of_lanes(mean, s.lanes) * share;
        for (int j = merge.lane; j < all; j += s.lanes) {
            C d = own[2 * j] - mean;
            total += own[2 * j + 1] + (C)least(s.part, s.pixels - j * s.part) * (C)size * d * d;
        }
        total = sum_of_lanes(total, s.lanes);
        if (merge.lane == 0 && g < s.groups) {
            means[g] = mean;
            inverses[g] = (C)1 / ingot_sqrt(total * (share * inverse_of(size)) + epsilon);
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
    Walk<NE + 2> walk(begin + row, s);
#pragma unroll 2
    for (int p = begin + row; p < end; p += s.rows, walk.advance(s)) {
        Pack<T, V> v = *(const Pack<T, V>*)(from + walk.offset[0]);
        Pack<OUT, V> o;
        i64 at[NE + 1];
#pragma unroll
        for (int e = 0; e < NE; e++)
            at[e] = blockIdx.y * s.image[e + 2] + walk.offset[e + 2] +
                    (i64)column * V * s.channel[e + 2];
#pragma unroll
        for (int k = 0; k < V; k++) {
            o.v[k] =
                epilogue((R)(((C)widen(v.v[k]) - mean[k]) * factor[k] + offset[k]), at EPI_PASS);
#pragma unroll
            for (int e = 0; e < NE; e++)
                at[e] += s.channel[e + 2];
        }
        *(Pack<OUT, V>*)(to + walk.offset[1]) = o;
    }
    end_main_loop();
}
#endif
