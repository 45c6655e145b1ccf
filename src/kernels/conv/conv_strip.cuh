// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution, channels innermost: a block copies the weights and the input under a tile
// of results to shared memory at once; a thread makes VEC channels of WIDE adjacent results along
// the last axis, from rows of KW weights; GAPS: that axis is dilated. Traffic: the input once; L2
// serves the overlap of tiles.
constexpr int piece = 16 / (int)sizeof(IN);              // elements of a copy
constexpr int columns_used = (WIDE - 1) * STRIDE_W + KW; // by a thread

struct Strip {
    u64 by_pieces, by_columns, by_groups, by_runs, by_chunks; // 2^32 / n, rounded up
    i64 step_n;                                               // of x
    i32 step_h, step_w, tap_step;
    i32 pieces, columns, groups, runs, chunks; // of a pixel, the tile's input, a row, the tile, all
    i32 tile_rows, copies, taps;               // results, of the tile's input, KH * KW
    i32 kernel_h, stride_h, dilation_h, dilation_w, low_h, low_w;
    i32 in_h, in_w, out_h, out_w, channels, w_constant;
};

DEVICE int divide(int n, u64 inverse) {
    return (int)((u64)(u32)n * inverse >> 32);
}

DEVICE float low_half(F16, u32 v) {
    return f32_of_f16((u16)v);
}
DEVICE float high_half(F16, u32 v) {
    return f32_of_f16((u16)(v >> 16));
}
DEVICE float low_half(BF16, u32 v) {
    return __uint_as_float(v << 16);
}
DEVICE float high_half(BF16, u32 v) {
    return __uint_as_float(v & 0xffff0000u);
}
template <class T>
DEVICE void unpack(float* to, const T* from) {
    Pack<u32, VEC / 2> v = *(const Pack<u32, VEC / 2>*)from;
#pragma unroll
    for (int i = 0; i < VEC / 2; i++) {
        to[2 * i] = low_half(T{}, v.v[i]);
        to[2 * i + 1] = high_half(T{}, v.v[i]);
    }
}
DEVICE void unpack(float* to, const float* from) {
    Pack<float, VEC> v = *(const Pack<float, VEC>*)from;
#pragma unroll
    for (int i = 0; i < VEC; i++)
        to[i] = v.v[i];
}

DEVICE void copy_weights(u32 to, const IN* weights, int channel, const Strip& d) {
#pragma unroll 1
    for (int p = (int)threadIdx.x; p < d.taps * d.pieces; p += (int)blockDim.x) {
        int tap = divide(p, d.by_pieces), c = channel + (p - tap * d.pieces) * piece;
        bool in = c < d.channels;
        cp_async16(to + p * 16, weights + (in ? c + tap * d.tap_step : 0), in ? 16 : 0);
    }
}

/// `top`, `left`: the origin of the tile's input; outside of x there are zeros.
DEVICE void copy_input(u32 to, const IN* image, int channel, int top, int left, const Strip& d) {
#pragma unroll 4
    for (int p = (int)threadIdx.x; p < d.copies; p += (int)blockDim.x) {
        int pixel = divide(p, d.by_pieces), r = divide(pixel, d.by_columns);
        int h = top + r, w = left + pixel - r * d.columns;
        int c = channel + (p - pixel * d.pieces) * piece;
        bool in = (u32)h < (u32)d.in_h && (u32)w < (u32)d.in_w && c < d.channels;
        int from = in ? h * d.step_h + w * d.step_w + c : 0;
        cp_async16(to + p * 16, image + from, in ? 16 : 0);
    }
}

/// The positions of a thread's results, and the epilogue's operands for them. Positions beyond the
/// count repeat the last one.
struct StripEnd {
    i64 at[WIDE];
    Extras extras[WIDE];
    DEVICE void read(int count, u32 row, int c, const Geometry& g EPI_PARAMS) {
        Spot s;
#pragma unroll
        for (int i = 0; i < WIDE; i++) {
            if (i == 0 || RM > 1) {
                s.batch(g, 0);
                s.add_column(g, (u32)c);
                s.add_row(g, row + (u32)(i < count ? i : count > 0 ? count - 1 : 0));
            } else {
#pragma unroll
                for (int v = 0; v < NV; v++)
                    s.at[v] += i < count ? g.cm[v][RM - 1] : 0;
            }
            at[i] = s.at[0];
            read_extras(extras[i], s.at, g EPI_PASS);
        }
    }
};

DEVICE void add_rows(float (*sums)[VEC], const IN* x, const IN* y, const Strip& d) {
    int pixel = d.pieces * piece, row = d.columns * pixel * d.dilation_h;
#pragma unroll 1
    for (int r = 0; r < d.kernel_h; r++) {
        float used[columns_used][VEC];
#pragma unroll
        for (int i = 0; i < columns_used && !GAPS; i++)
            unpack(used[i], x + i * pixel);
#pragma unroll
        for (int s = 0; s < KW; s++) {
            float weight[VEC];
            unpack(weight, y + s * pixel);
#pragma unroll
            for (int i = 0; i < WIDE; i++) {
                float* from = used[i * STRIDE_W + s];
                if (GAPS)
                    unpack(from, x + (i * STRIDE_W + s * d.dilation_w) * pixel);
#pragma unroll
                for (int v = 0; v < VEC; v++)
                    sums[i][v] = fmaf(from[v], weight[v], sums[i][v]);
            }
        }
        x += row;
        y += KW * pixel;
    }
}

KERNEL void __launch_bounds__(256)
    conv_strip(const IN* __restrict__ x, const IN* __restrict__ weights, OUT* __restrict__ out,
               const __grid_constant__ Strip d, const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    int tile = divide((int)blockIdx.x, d.by_chunks);
    int channel = ((int)blockIdx.x - tile * d.chunks) * d.pieces * piece;
    u32 kept = smem_addr(memory);
    if (!d.w_constant)
        grid_wait();
    copy_weights(kept, weights, channel, d);
    if (d.w_constant)
        grid_wait();
    int top = (int)blockIdx.y * d.tile_rows, left = tile * d.runs * WIDE;
    copy_input(kept + d.taps * d.pieces * 16, x + blockIdx.z * d.step_n, channel,
               top * d.stride_h - d.low_h, left * STRIDE_W - d.low_w, d);
    cp_async_commit();
    int line = divide((int)threadIdx.x, d.by_groups);
    int c = ((int)threadIdx.x - line * d.groups) * VEC, row = divide(line, d.by_runs);
    int first = (line - row * d.runs) * WIDE;
    int count = d.out_w - left - first;
    if (row >= d.tile_rows || top + row >= d.out_h || channel + c >= d.channels)
        count = 0;
    StripEnd end;
    u32 place = (blockIdx.z * (u32)d.out_h + (u32)(top + row)) * (u32)d.out_w + (u32)(left + first);
    end.read(count, count > 0 ? place : 0, count > 0 ? channel + c : 0, g EPI_PASS);
    cp_async_wait<0>();
    sync();
    if (count <= 0)
        return;
    float sums[WIDE][VEC] = {};
    const IN* y = (const IN*)memory + c;
    add_rows(sums,
             y + (d.taps + row * d.stride_h * d.columns + first * STRIDE_W) * d.pieces * piece, y,
             d);
    end_main_loop();
#pragma unroll
    for (int i = 0; i < WIDE; i++)
        if (i < count)
            deliver(sums[i], end.extras[i], end.at[i], g, out EPI_PASS);
}
