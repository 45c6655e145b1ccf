// SPDX-License-Identifier: Apache-2.0
// Squeeze-and-excite with channels innermost. The blocks of an image split its columns (V channels,
// 16 bytes) by slices, and its pixels. The first layer is linear: each block applies it to the sums
// of its own pixels and channels, and blocks exchange only these parts. PHASE 0: one launch, the
// blocks of an image are a cluster (CLUSTER) or one block; they keep x in shared memory. Traffic: x
// and the result once. PHASE 1 stores the parts in memory, PHASE 2 adds them up and scales.
// Traffic: x twice, the result once. Weights are kept in shared memory where they fit; constant
// ones are loaded before the preceding kernels end. T x and weights, OUT result. act1 and act2 are
// the functions behind the layers, NE the operands of the map.
struct Excite {
    i64 image;            // elements
    i32 channels, hidden; // the second: results of the first layer
    i32 vectors, columns; // of a pixel; of a slice
    i32 pixels, part;     // of an image; of a block
    i32 slices, blocks;   // of an image
    i32 given;            // PHASE 2: blocks of an image that left parts
    i32 w1_at, w2_at;     // bytes into shared memory; 0: not there
    i32 data_at;          // the block's piece of x, likewise
    i32 early;            // weights are constant
    float share;          // 1 / pixels
    i32 kinds[4];         // the map's operands: 0 one element, 1 one a channel, 2 as the result
};
/// The work of a block.
struct Piece {
    int image, block;
    int first, columns; // of a pixel
    int begin, pixels;  // of the image
};
DEVICE int within(int v, int most) {
    return v < 0 ? 0 : v < most ? v : most;
}
DEVICE int fours(int n) {
    return (n + 3) & ~3;
}
DEVICE Piece piece_of(const Excite& s) {
    Piece p;
    p.image = blockIdx.x / s.blocks;
    p.block = blockIdx.x % s.blocks;
    p.first = p.block % s.slices * s.columns;
    p.columns = within(s.vectors - p.first, s.columns);
    p.begin = p.block / s.slices * s.part;
    p.pixels = within(s.pixels - p.begin, s.part);
    return p;
}
/// The lines of a thread: `columns` adjacent vectors, from `line`, `lines` apart.
struct Walk {
    int column, line, lines;
};
DEVICE Walk walk_of(int columns, int most) {
    Walk w;
    w.column = threadIdx.x % columns;
    w.line = threadIdx.x / columns;
    w.lines = within(blockDim.x / columns, most);
    if (w.line >= w.lines)
        w.line = 1 << 30; // no lines
    return w;
}
/// v[0] + v[step] + ..., of `count` numbers, at most 8.
DEVICE float sum_of(const float* v, int step, int count) {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; j++)
        sum += j < count ? v[j * step] : 0.0f;
    return sum;
}
/// `lines` lines of vectors, `step` elements apart, to shared memory, `pitch` vectors apart.
DEVICE void fetch(u8* to, const T* from, int columns, int lines, i64 step, int pitch) {
    const Walk w = walk_of(columns, 1 << 30);
#pragma unroll 1
    for (int i = w.line; i < lines; i += w.lines) {
        const int at = i * pitch + w.column;
        const T* source = from + i * step + w.column * V;
        if (sizeof(Pack<T, V>) == 16)
            cp_async16(smem_addr(to) + at * 16, source, 16);
        else
            ((Pack<T, V>*)to)[at] = *(const Pack<T, V>*)source;
    }
}
#if PHASE < 2
/// Means over the image's pixels of this block's part of each channel, times the part.
DEVICE void channel_means(const u8* data, float* work, float* means, const Excite& s,
                          const Piece& p) {
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const int width = s.columns * V;
    const int shares = p.columns < warps ? within(warps / p.columns, 8) : 1;
#pragma unroll 1
    for (int unit = threadIdx.x / 32; unit < p.columns * shares; unit += warps) {
        const int column = unit % p.columns, turn = unit / p.columns;
        const Pack<T, V>* from = (const Pack<T, V>*)data + column;
        float v[V];
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] = 0.0f;
#pragma unroll 2
        for (int i = turn * 32 + lane; i < p.pixels; i += shares * 32) {
            Pack<T, V> x = from[i * (s.columns | 1)];
#pragma unroll
            for (int k = 0; k < V; k++)
                v[k] += widen(x.v[k]);
        }
        int m = 16;
#pragma unroll
        for (int n = V / 2; n > 0; n /= 2, m /= 2) {
            const bool upper = (lane & m) != 0;
#pragma unroll
            for (int k = 0; k < n; k++) {
                float gone = shfl_xor(upper ? v[k] : v[k + n], m);
                v[k] = (upper ? v[k + n] : v[k]) + gone;
            }
        }
        for (; m > 0; m /= 2)
            v[0] += shfl_xor(v[0], m);
        if (lane % (32 / V) == 0)
            work[turn * width + column * V + lane / (32 / V)] = v[0];
    }
    sync();
#pragma unroll 1
    for (int c = threadIdx.x; c < p.columns * V; c += blockDim.x)
        means[c] = sum_of(work + c, width, shares) * s.share;
    sync();
}
/// This block's part of the first layer: part[i * step] for each of its results.
DEVICE void first_layer(const T* w1, i64 pitch, const float* means, float* part, i64 step,
                        const Excite& s, const Piece& p) {
    const int lane = threadIdx.x % 32, each = blockDim.x / 8;
#pragma unroll 1
    for (int base = threadIdx.x / 32 * 4; base < s.hidden; base += each) {
        const int i = base + lane / 8;
        float sum = 0.0f;
        if (i < s.hidden) {
#pragma unroll 2 // loads in flight, where weights are not in shared memory
            for (int c = lane % 8; c < p.columns; c += 8) {
                Pack<T, V> w = *(const Pack<T, V>*)(w1 + i * pitch + c * V);
#pragma unroll
                for (int k = 0; k < V; k++)
                    sum += widen(w.v[k]) * means[c * V + k];
            }
        }
#pragma unroll
        for (int m = 4; m > 0; m /= 2)
            sum += shfl_xor(sum, m);
        if (lane % 8 == 0 && i < s.hidden)
            part[i * step] = sum;
    }
}
#endif
#if PHASE != 1
/// The factors of this block's channels.
DEVICE void second_layer(const T* w2, i64 pitch, const float* hidden, const float* bias,
                         float* work, float* factors, const Excite& s, const Piece& p) {
    const Walk w = walk_of(p.columns, 8);
    const int width = s.columns * V;
    if (w.line < w.lines) {
        float v[V];
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] = 0.0f;
#pragma unroll 4
        for (int i = w.line; i < s.hidden; i += w.lines) {
            Pack<T, V> x = *(const Pack<T, V>*)(w2 + i * pitch + w.column * V);
#pragma unroll
            for (int k = 0; k < V; k++)
                v[k] += widen(x.v[k]) * hidden[i];
        }
#pragma unroll
        for (int k = 0; k < V; k++)
            work[w.line * width + w.column * V + k] = v[k];
    }
    sync();
#pragma unroll 1
    for (int c = threadIdx.x; c < p.columns * V; c += blockDim.x)
        factors[c] = act2(bias[c] + sum_of(work + c, width, w.lines));
    sync();
}
/// Scales this block's piece.
DEVICE void scale(const u8* data, OUT* out, const float* factors, const Excite& s,
                  const Piece& p EPI_PARAMS) {
    const Walk w = walk_of(p.columns, 1 << 30);
    const int channel = (p.first + w.column) * V;
    float factor[V];
#pragma unroll
    for (int k = 0; k < V; k++)
        factor[k] = factors[w.column * V + k];
#pragma unroll 2
    for (int i = w.line; i < p.pixels; i += w.lines) {
        const i64 at = p.image * s.image + (i64)(p.begin + i) * s.channels + channel;
        Pack<T, V> v = ((const Pack<T, V>*)data)[i * (s.columns | 1) + w.column];
        Pack<OUT, V> o;
#pragma unroll
        for (int k = 0; k < V; k++) {
            i64 operands[NE + 1];
#pragma unroll
            for (int e = 0; e < NE; e++)
                operands[e] = s.kinds[e] == 2 ? at + k : s.kinds[e] == 1 ? channel + k : 0;
            o.v[k] = epilogue(widen(v.v[k]) * factor[k], operands EPI_PASS);
        }
        *(Pack<OUT, V>*)(out + at) = o;
    }
}
#endif

#if PHASE == 1
KERNEL void __launch_bounds__(512, 2)
    excite_parts(const T* __restrict__ x, const T* __restrict__ w1, float* __restrict__ parts,
                 Excite s) {
    begin_kernel();
#else
KERNEL void __launch_bounds__(512, 2)
    squeeze_excite(const T* __restrict__ x, OUT* __restrict__ out, const T* __restrict__ w1,
                   const T* __restrict__ b1, const T* __restrict__ w2, const T* __restrict__ b2,
                   const float* __restrict__ parts, Excite s EPI_PARAMS) {
    begin_kernel();
#endif
    SHARED(memory);
    const Piece p = piece_of(s);
    const int most = fours(s.hidden), width = fours(s.columns * V);
    float* hidden = (float*)memory; // [most]
    float* means = hidden + most;   // [width], then factors
    float* work = means + width;    // [8][width]
#if PHASE != 1
    float* bias1 = work + 8 * width; // [most]
    float* bias2 = bias1 + most;     // [width]
    float* inbox = bias2 + width;    // PHASE 0: [blocks][most]
#endif
    // The start of both layers' weights, and the distance of their lines.
    i64 pitch = s.channels;
    const T *near1 = w1 + p.first * V, *near2 = near1;
#if PHASE != 1
    near2 = w2 + p.first * V;
#endif
#if PHASE == 0 && CLUSTER
    if (s.blocks > 1)
        cluster_arrive(); // that all have begun is known when they exchange
#endif
    if (!s.early)
        grid_wait();
    if (s.w1_at | s.w2_at) {
        pitch = s.columns * V;
#if PHASE < 2
        fetch(memory + s.w1_at, near1, p.columns, s.hidden, s.channels, s.columns);
        near1 = (const T*)(memory + s.w1_at);
#endif
#if PHASE != 1
        fetch(memory + s.w2_at, near2, p.columns, s.hidden, s.channels, s.columns);
        near2 = (const T*)(memory + s.w2_at);
#endif
    }
#if PHASE != 1
#pragma unroll 1
    for (int i = threadIdx.x; i < s.hidden; i += blockDim.x)
        bias1[i] = widen(b1[i]);
#pragma unroll 1
    for (int i = threadIdx.x; i < p.columns * V; i += blockDim.x)
        bias2[i] = widen(b2[p.first * V + i]);
#endif
    if (s.early)
        grid_wait();
    u8* data = memory + s.data_at;
    const T* source = x + p.image * s.image + (i64)p.begin * s.channels + p.first * V;
    cp_async_commit();
    fetch(data, source, p.columns, p.pixels, s.channels, s.columns | 1);
    cp_async_commit();
    cp_async_wait<PHASE == 2 ? 1 : 0>();
    sync();
#if PHASE == 1
    channel_means(data, work, means, s, p);
    end_main_loop();
    first_layer(near1, pitch, means, parts + (i64)p.image * s.hidden * s.blocks + p.block, s.blocks,
                s, p);
#else
#if PHASE == 0
    channel_means(data, work, means, s, p);
    first_layer(near1, pitch, means, hidden, 1, s, p);
    sync();
#if CLUSTER
    if (s.blocks > 1) {
        cluster_wait();
#pragma unroll 1
        for (int i = threadIdx.x; i < most / 4 * s.blocks; i += blockDim.x) {
            const int rank = i % s.blocks, at = i / s.blocks * 4;
            st_cluster4(smem_addr(inbox + p.block * most + at), rank, hidden + at);
        }
        cluster_sync();
    }
#endif
    const float* from = s.blocks > 1 ? inbox : hidden;
#pragma unroll 1
    for (int i = threadIdx.x; i < s.hidden; i += blockDim.x)
        hidden[i] = act1(bias1[i] + sum_of(from + i, most, s.blocks));
    sync();
    end_main_loop();
#else
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int base = threadIdx.x / 32 * 4; base < s.hidden; base += blockDim.x / 8) {
        const int i = base + lane / 8;
        const float* own = parts + ((i64)p.image * s.hidden + i) * s.given;
        float sum = 0.0f;
        if (i < s.hidden) {
#pragma unroll 4
            for (int j = lane % 8; j < s.given; j += 8)
                sum += own[j];
        }
#pragma unroll
        for (int m = 4; m > 0; m /= 2)
            sum += shfl_xor(sum, m);
        if (lane % 8 == 0 && i < s.hidden)
            hidden[i] = act1(sum + bias1[i]);
    }
    cp_async_wait<0>(); // what all have fetched is there behind the barriers of the layer
    sync();
#endif
    second_layer(near2, pitch, hidden, bias2, work, means, s, p);
    scale(data, out, means, s, p EPI_PASS);
#if PHASE == 2
    end_main_loop();
#endif
#endif
}
