// SPDX-License-Identifier: Apache-2.0
// Group normalisation with channels innermost. Blocks (blockIdx.x) split the pixels of a slice of
// an image's channels, which holds whole groups. PHASE 0: one launch of clusters that keep their
// slice in registers (at most PACKS vectors a thread) or, where PACKS is 0, in shared memory.
// Traffic: x once, the result once. For larger slices, PHASE 1 makes the statistics of each part,
// and PHASE 2 merges and applies them. Traffic: x twice, the result once.
// A column is V channels, 16 bytes; it contains parts of at most two groups. For statistics a warp
// walks the pixels of one column; elsewhere, and with PACKS, threads are ordered along columns
// first. CLUSTER: PHASE 0 may have more than one block. SV: scale and bias are read as vectors. T
// x, S scale, B bias, OUT result.
struct Slices {
    i64 x_image, x_pixel, y_image, y_pixel, scale_step, bias_step;
    i32 size;           // channels of a group
    i32 groups;         // of a slice
    i32 vectors, pitch; // of a pixel in global and in shared memory; pitch is odd
    i32 pixels, part;   // of an image, of a block
    i32 parts, share;   // PHASE 2: how many parts have statistics, their pixels
};
/// The first `split` channels of a column belong to group `first` of the slice, the others to the
/// next group.
struct Halves {
    int first, split;
};
DEVICE Halves halves_of(int column, int size) {
    Halves h;
    h.first = column * V / size;
    h.split = (h.first + 1) * size - column * V;
    return h;
}
DEVICE float warp_sum(float v) {
#pragma unroll
    for (int m = 16; m > 0; m >>= 1)
        v += exchange(v, m);
    return v;
}
DEVICE float inverse_of(float n) {
    float r = rcp(n);
    return r + r * (1.0f - n * r);
}
DEVICE int within(int v, int most) {
    return v < 0 ? 0 : v < most ? v : most;
}
#if PACKS == 0
/// Sums of group `first` and the next one, from all warps' sums in `parts` for the two groups of
/// their columns; `theirs`: the first group in the column of warp `lane`.
DEVICE void group_sums(const float* parts, int theirs, int first, float& a, float& b) {
    const int lane = threadIdx.x % 32;
    float low = 0.0f, high = 0.0f;
    if (lane < blockDim.x / 32) {
        low = parts[2 * lane];
        high = parts[2 * lane + 1];
    }
    a = warp_sum((theirs == first ? low : 0.0f) + (theirs + 1 == first ? high : 0.0f));
    b = warp_sum((theirs == first + 1 ? low : 0.0f) + (theirs == first ? high : 0.0f));
}
/// Stores this warp's sums for its two groups.
DEVICE void put_sums(float* parts, const float* v, int split) {
    float a = 0.0f, b = 0.0f;
#pragma unroll
    for (int k = 0; k < V; k++) {
        a += k < split ? v[k] : 0.0f;
        b += k < split ? 0.0f : v[k];
    }
    a = warp_sum(a);
    b = warp_sum(b);
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32 * 2] = a;
        parts[threadIdx.x / 32 * 2 + 1] = b;
    }
}
DEVICE void all_sync() {
#if CLUSTER
    if (gridDim.x > 1) {
        cluster_sync();
        return;
    }
#endif
    sync();
}
/// Means and sums of squared distances of this block's groups, into own[group][4].
DEVICE void block_statistics(const u8* data, float* parts, float* own, const Slices& s, int count) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = warp % s.vectors;
    const int begin = warp / s.vectors * 32 + lane, step = blockDim.x / s.vectors;
    const int theirs = halves_of(lane % s.vectors, s.size).first;
    const Halves h = halves_of(column, s.size);
    const Pack<T, V>* from = (const Pack<T, V>*)data + column;
    float v[V], a, b;
#pragma unroll
    for (int k = 0; k < V; k++)
        v[k] = 0.0f;
#pragma unroll 2
    for (int p = begin; p < count; p += step) {
        Pack<T, V> x = from[p * s.pitch];
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] += widen(x.v[k]);
    }
    put_sums(parts, v, h.split);
    sync();
    group_sums(parts, theirs, h.first, a, b);
    const float share = inverse_of((float)(count > 0 ? count * s.size : 1));
    a *= share;
    b *= share;
    float mean[V];
#pragma unroll
    for (int k = 0; k < V; k++) {
        v[k] = 0.0f;
        mean[k] = k < h.split ? a : b;
    }
#pragma unroll 2
    for (int p = begin; p < count; p += step) {
        Pack<T, V> x = from[p * s.pitch];
#pragma unroll
        for (int k = 0; k < V; k++) {
            float d = widen(x.v[k]) - mean[k];
            v[k] += d * d;
        }
    }
    parts += 32;
    put_sums(parts, v, h.split);
    sync();
    float qa, qb;
    group_sums(parts, theirs, h.first, qa, qb);
    // The column where a group begins has its result.
    if (warp < s.vectors && lane == 0) {
        if (h.first * s.size == column * V) {
            own[h.first * 4] = a;
            own[h.first * 4 + 1] = qa;
        }
        if (h.split < V) {
            own[h.first * 4 + 4] = b;
            own[h.first * 4 + 5] = qb;
        }
    }
}
#if PHASE == 0
/// Means and inverse deviations over the cluster, into merged[group][2].
DEVICE void merge_statistics(const float* own, float* merged, const Slices& s, float epsilon) {
    const int lane = threadIdx.x % 32;
    const float share = inverse_of((float)s.pixels * (float)s.size);
    for (int g = threadIdx.x / 32; g < s.groups; g += blockDim.x / 32) {
        float v[4] = {0.0f, 0.0f, 0.0f, 0.0f}, weight = 0.0f;
        if (lane < gridDim.x) {
            weight = (float)(within(s.pixels - lane * s.part, s.part) * s.size);
#if CLUSTER
            if (gridDim.x > 1)
                ld_cluster4(v, smem_addr(own + g * 4), lane);
            else
#endif
            {
                v[0] = own[g * 4];
                v[1] = own[g * 4 + 1];
            }
        }
        float mean = warp_sum(weight * v[0]) * share, d = v[0] - mean;
        float total = warp_sum(v[1] + weight * d * d);
        if (lane == 0) {
            merged[2 * g] = mean;
            merged[2 * g + 1] = 1.0f / ingot_sqrt(total * share + epsilon);
        }
    }
}
#elif PHASE == 2
/// Means and inverse deviations over all parts, stats[group][part][2], into merged[group][2].
DEVICE void merge_statistics(const float* stats, float* merged, const Slices& s, float epsilon) {
    const int lane = threadIdx.x % 32;
    const float share = inverse_of((float)s.pixels * (float)s.size);
    for (int g = threadIdx.x / 32; g < s.groups; g += blockDim.x / 32) {
        const Pack<float, 2>* own = (const Pack<float, 2>*)stats + (i64)g * s.parts;
        float mean = 0.0f, total = 0.0f;
#pragma unroll 4
        for (int j = lane; j < s.parts; j += 32)
            mean += (float)(within(s.pixels - j * s.share, s.share) * s.size) * own[j].v[0];
        mean = warp_sum(mean) * share;
#pragma unroll 4
        for (int j = lane; j < s.parts; j += 32) {
            Pack<float, 2> v = own[j];
            float d = v.v[0] - mean;
            total += v.v[1] + (float)(within(s.pixels - j * s.share, s.share) * s.size) * d * d;
        }
        total = warp_sum(total);
        if (lane == 0) {
            merged[2 * g] = mean;
            merged[2 * g + 1] = 1.0f / ingot_sqrt(total * share + epsilon);
        }
    }
}
#endif

#endif

#if PHASE != 1
/// Scale and bias of a column's channels.
DEVICE void load_affine(float* factor, float* offset, const S* scale, const B* bias, int channel,
                        const Slices& s) {
#if SV
    Pack<S, V> f = *(const Pack<S, V>*)(scale + channel);
    Pack<B, V> o = {};
    if (bias)
        o = *(const Pack<B, V>*)(bias + channel);
#pragma unroll
    for (int k = 0; k < V; k++) {
        factor[k] = (float)widen(f.v[k]);
        offset[k] = (float)widen(o.v[k]);
    }
#else
#pragma unroll
    for (int k = 0; k < V; k++) {
        factor[k] = (float)widen(scale[(channel + k) * s.scale_step]);
        offset[k] = bias ? (float)widen(bias[(channel + k) * s.bias_step]) : 0.0f;
    }
#endif
}
#endif
#if PACKS > 0
DEVICE float sum_of_8(float v) {
#pragma unroll
    for (int m = 4; m > 0; m >>= 1)
        v += exchange(v, m);
    return v;
}
/// This thread's means and sums of squared distances for the two groups of its column, whose first
/// `split` channels belong to the first one. `have` of the packs are pixels.
DEVICE Pack<float, 4> thread_statistics(const Pack<T, V>* x, int have, int split) {
    float v[V], mean[V], a = 0.0f, b = 0.0f;
#pragma unroll
    for (int k = 0; k < V; k++)
        v[k] = 0.0f;
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] += widen(x[i].v[k]); // zero where there is no pixel
    }
#pragma unroll
    for (int k = 0; k < V; k++) {
        a += k < split ? v[k] : 0.0f;
        b += k < split ? 0.0f : v[k];
    }
    const int low = have * within(split, V), high = have * V - low;
    a *= inverse_of((float)(low > 0 ? low : 1));
    b *= inverse_of((float)(high > 0 ? high : 1));
#pragma unroll
    for (int k = 0; k < V; k++) {
        v[k] = 0.0f;
        mean[k] = k < split ? a : b;
    }
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        if (i < have) {
#pragma unroll
            for (int k = 0; k < V; k++) {
                float d = widen(x[i].v[k]) - mean[k];
                v[k] += d * d;
            }
        }
    }
    Pack<float, 4> r;
    r.v[0] = a;
    r.v[2] = b;
    r.v[1] = r.v[3] = 0.0f;
#pragma unroll
    for (int k = 0; k < V; k++) {
        r.v[1] += k < split ? v[k] : 0.0f;
        r.v[3] += k < split ? 0.0f : v[k];
    }
    return r;
}
/// A warp merges the threads' statistics of a group. The first `more` rows of threads have `have`
/// + 1 pixels, the others `have`; whole warps of rows. Means and sums are equal in all lanes.
DEVICE void merge_threads(const float* sums, int g, int have, int more, float share,
                          const Slices& s, float& mean, float& total) {
    const int lane = threadIdx.x % 32, rows = blockDim.x / s.vectors, begin = g * s.size;
    const int first = begin / V, columns = (begin + s.size - 1) / V - first + 1;
    mean = total = 0.0f;
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        int row = lane;
        int from = begin - first * V; // where the group begins in the column
        const float* of = sums + (lane * s.vectors + first) * 4;
        float v = 0.0f;
#pragma unroll 2
        for (int i = columns * (rows / 32); i > 0; i--) {
            const int channels = within(from + s.size, V) - within(from, V);
            const float weight = (float)(channels * (have + (row < more ? 1 : 0)));
            const Pack<float, 2> x = *(const Pack<float, 2>*)(of + (from > 0 ? 2 : 0));
            const float d = x.v[0] - mean;
            v += pass == 0 ? weight * d : x.v[1] + weight * d * d;
            row += 32;
            of += 32 * 4 * s.vectors;
            if (row >= rows) { // the next column
                row -= rows;
                of -= (rows * s.vectors - 1) * 4;
                from -= V;
            }
        }
        v = warp_sum(v);
        mean = pass == 0 ? v * share : mean;
        total = v;
    }
}
/// Means and inverse deviations over the cluster, whose statistics are in all[group][8 blocks][4],
/// into merged[group][2]. Eight lanes merge a group.
DEVICE void merge_blocks(const float* all, float* merged, const Slices& s, float epsilon) {
    const int lane = threadIdx.x % 32, block = lane % 8;
    const float share = inverse_of((float)s.pixels * (float)s.size);
    for (int first = threadIdx.x / 32 * 4; first < s.groups; first += blockDim.x / 8) {
        const int g = first + lane / 8;
        const bool real = g < s.groups && block < gridDim.x;
        float m = 0.0f, q = 0.0f, weight = 0.0f;
        if (real) {
            m = all[(g * 8 + block) * 4];
            q = all[(g * 8 + block) * 4 + 1];
            weight = (float)(within(s.pixels - block * s.part, s.part) * s.size);
        }
        float mean = sum_of_8(weight * m) * share, d = m - mean;
        float total = sum_of_8(q + weight * d * d);
        if (real && block == 0) {
            merged[2 * g] = mean;
            merged[2 * g + 1] = 1.0f / ingot_sqrt(total * share + epsilon);
        }
    }
}
// One block an SM: for two, the compiler spills registers.
KERNEL void __launch_bounds__(512, 1)
    group_slices(const T* __restrict__ x, OUT* __restrict__ out, const S* __restrict__ scale,
                 const B* __restrict__ bias, const float* __restrict__ stats, Slices s,
                 float epsilon EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    float* merged = (float*)memory; // [32 groups][2]
    float* all = merged + 64;       // [32 groups][8 blocks][4]
    float* sums = all + 1024;       // [512 threads][4]
#if CLUSTER
    if (gridDim.x > 1)
        cluster_arrive();
#endif
    const int row = threadIdx.x / s.vectors, column = threadIdx.x - row * s.vectors;
    const int rows = blockDim.x / s.vectors; // without a rest
    const i64 begin = (i64)blockIdx.x * s.part;
    const int count = within(s.pixels - blockIdx.x * s.part, s.part);
    const int each = count / rows, more = count - each * rows;
    const int have = each + (row < more ? 1 : 0);
    const int channel = (blockIdx.y * s.vectors + column) * V;
    const float share = inverse_of((float)(count > 0 ? count * s.size : 1));
    const Halves h = halves_of(column, s.size);
    grid_wait();
    const T* from = x + blockIdx.z * s.x_image + (begin + row) * s.x_pixel + channel;
    Pack<T, V> held[PACKS];
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        held[i] = {};
        if (i < have)
            held[i] = *(const Pack<T, V>*)(from + i * rows * s.x_pixel);
    }
    float factor[V], offset[V];
    load_affine(factor, offset, scale, bias, channel, s);
    *(Pack<float, 4>*)(sums + threadIdx.x * 4) = thread_statistics(held, have, h.split);
#if CLUSTER
    if (gridDim.x > 1)
        cluster_wait(); // all blocks have started
#endif
    sync();
    for (int g = threadIdx.x / 32; g < s.groups; g += blockDim.x / 32) {
        float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        merge_threads(sums, g, each, more, share, s, v[0], v[1]);
        float* to = all + (g * 8 + blockIdx.x) * 4;
        const int lane = threadIdx.x % 32;
        if (lane < gridDim.x) {
#if CLUSTER
            if (gridDim.x > 1)
                st_cluster4(smem_addr(to), lane, v);
            else
#endif
                *(Pack<float, 4>*)to = {v[0], v[1], v[2], v[3]};
        }
    }
#if CLUSTER
    if (gridDim.x > 1)
        cluster_sync();
    else
#endif
        sync();
    merge_blocks(all, merged, s, epsilon);
    sync();
    end_main_loop();
    const float* low = merged + 2 * h.first;
    const float* high = h.split < V ? low + 2 : low;
    float mean[V];
#pragma unroll
    for (int k = 0; k < V; k++) {
        mean[k] = k < h.split ? low[0] : high[0];
        factor[k] *= k < h.split ? low[1] : high[1];
    }
    OUT* y = out + blockIdx.z * s.y_image + (begin + row) * s.y_pixel + channel;
    const i64 at[1] = {0};
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        if (i < have) {
            Pack<OUT, V> o;
#pragma unroll
            for (int k = 0; k < V; k++)
                o.v[k] = epilogue((R)((widen(held[i].v[k]) - mean[k]) * factor[k] + offset[k]),
                                  at EPI_PASS);
            *(Pack<OUT, V>*)(y + i * rows * s.y_pixel) = o;
        }
    }
}
#else
#if PHASE == 1
KERNEL void __launch_bounds__(512)
    group_slice_stats(const T* __restrict__ x, float* __restrict__ stats, Slices s) {
    begin_kernel();
#else
KERNEL void __launch_bounds__(512)
    group_slices(const T* __restrict__ x, OUT* __restrict__ out, const S* __restrict__ scale,
                 const B* __restrict__ bias, const float* __restrict__ stats, Slices s,
                 float epsilon EPI_PARAMS) {
    begin_kernel();
#endif
    SHARED(memory);
    float* parts = (float*)memory; // [2][16 warps][2]
    float* own = parts + 64;       // [32 groups][4]
    float* merged = own + 128;     // [32 groups][2]
    u8* data = memory + 1024;      // [part][pitch] vectors
    const int column = threadIdx.x % s.vectors, row = threadIdx.x / s.vectors;
    const int rows = blockDim.x / s.vectors;
    const i64 begin = (i64)blockIdx.x * s.part;
    const int count = within(s.pixels - blockIdx.x * s.part, s.part);
    const int channel = (blockIdx.y * s.vectors + column) * V;
    grid_wait();
    const T* from = x + blockIdx.z * s.x_image + begin * s.x_pixel + channel;
#if PHASE < 2
    const u32 to = smem_addr(data) + column * 16;
    for (int p = row; p < count; p += rows)
        cp_async16(to + p * s.pitch * 16, from + p * s.x_pixel, 16);
    cp_async_commit();
#endif
#if PHASE != 1
    float factor[V], offset[V];
    load_affine(factor, offset, scale, bias, channel, s);
#endif
#if PHASE < 2
    cp_async_wait<0>();
    sync();
    block_statistics(data, parts, own, s, count);
#endif
#if PHASE == 1
    sync();
    end_main_loop();
    for (int g = threadIdx.x; g < s.groups; g += blockDim.x) {
        const i64 group = ((i64)blockIdx.z * gridDim.y + blockIdx.y) * s.groups + g;
        float* to_stats = stats + (group * gridDim.x + blockIdx.x) * 2;
        to_stats[0] = own[g * 4];
        to_stats[1] = own[g * 4 + 1];
    }
#else
#if PHASE == 0
    all_sync();
    merge_statistics(own, merged, s, epsilon);
    all_sync(); // nobody leaves while others read its statistics
    end_main_loop();
#else
    const i64 group = ((i64)blockIdx.z * gridDim.y + blockIdx.y) * s.groups;
    merge_statistics(stats + group * s.parts * 2, merged, s, epsilon);
    sync();
#endif
    const Halves h = halves_of(column, s.size);
    const float* low = merged + 2 * h.first;
    const float* high = h.split < V ? low + 2 : low;
    float mean[V];
#pragma unroll
    for (int k = 0; k < V; k++) {
        mean[k] = k < h.split ? low[0] : high[0];
        factor[k] *= k < h.split ? low[1] : high[1];
    }
    OUT* y = out + blockIdx.z * s.y_image + begin * s.y_pixel + channel;
    const i64 at[1] = {0};
#pragma unroll(PHASE == 0 ? 2 : 4)
    for (int p = row; p < count; p += rows) {
#if PHASE == 0
        Pack<T, V> v = ((const Pack<T, V>*)data)[p * s.pitch + column];
#else
        Pack<T, V> v = *(const Pack<T, V>*)(from + p * s.x_pixel);
#endif
        Pack<OUT, V> o;
#pragma unroll
        for (int k = 0; k < V; k++)
            o.v[k] = epilogue((R)((widen(v.v[k]) - mean[k]) * factor[k] + offset[k]), at EPI_PASS);
        *(Pack<OUT, V>*)(y + p * s.y_pixel) = o;
    }
#if PHASE == 2
    end_main_loop();
#endif
#endif
}
#endif
