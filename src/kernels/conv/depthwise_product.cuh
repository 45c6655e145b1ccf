// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution and the pointwise one that reads it, channels innermost: a block makes
// BM positions x BN columns. It computes the first one's channels at its positions, with the map
// behind them (MID_OF, generated), into shared memory, where tensor cores read them (mma.sync).
// Weights and the OPERANDS of that map are loaded before the kernel waits for its input, where they
// are constant. Traffic: the input once a block of columns, the result once.
constexpr int taps = KH * KW;

struct Pair {
    Rows rows; // constant: all weights
    i64 step_n, step_h;
    i32 step_w, tap_step; // of x, between taps
    i32 in_h, in_w, out_h, out_w, stride_h, stride_w, dilation_h, dilation_w, low_h, low_w;
};

/// The window of a row of the tile. Rows behind the last one repeat the first of all.
struct Place {
    i64 image;
    i32 h, w;
};

/// Shared memory.
struct Kept {
    IN* weights;     // [taps][channels]
    float* operands; // [OPERANDS][channels]
    Place* places;   // [BM]
    u8 *a, *b;       // rows of `pitch` elements
    DEVICE Kept(u8* memory, const Pair& d) {
        weights = (IN*)memory;
        operands = (float*)(weights + taps * d.rows.channels);
        places = (Place*)(operands + OPERANDS * d.rows.channels);
        a = (u8*)(places + BM);
        b = a + BM * d.rows.pitch * (int)sizeof(IN);
    }
};

#define LOAD_OPERAND(n, from, step) kept.operands[n * d.rows.channels + c] = widen(from[c * step]);
#define OPERAND(n) e[n * d.rows.channels + i]

DEVICE void load_weights(const Kept& kept, const IN* depthwise, const IN* pointwise, i64 n0,
                         const Geometry& g, const Pair& d MIDDLE_PARAMS) {
    load_columns(kept.b, pointwise, n0, g, d.rows);
#pragma unroll 1
    for (int c = (int)threadIdx.x * 8; c < taps * d.rows.channels; c += threads * 8) {
        int tap = c / d.rows.channels;
        cp_async16(smem_addr(kept.weights + c),
                   depthwise + tap * d.tap_step + (c - tap * d.rows.channels), 16);
    }
    cp_async_commit();
    for (int c = (int)threadIdx.x; c < d.rows.channels; c += threads) {
        LOAD_MIDDLE
    }
}

DEVICE void find_places(Place* places, i64 m0, i64 m, const Pair& d) {
    if (threadIdx.x < BM) {
        i64 row = m0 + threadIdx.x;
        u32 at = row < m ? (u32)row : 0, line = at / (u32)d.out_w, image = line / (u32)d.out_h;
        Place p;
        p.image = image * d.step_n;
        p.h = (i32)(line - image * (u32)d.out_h) * d.stride_h - d.low_h;
        p.w = (i32)(at - line * (u32)d.out_w) * d.stride_w - d.low_w;
        places[threadIdx.x] = p;
    }
}

/// 8 channels of a position.
DEVICE void add_window(float* sums, const IN* x, const Place& p, int c, const Kept& kept,
                       const Pair& d) {
#pragma unroll(taps <= 9 ? KH : 1)
    for (int r = 0; r < KH; r++) {
        i32 h = p.h + r * d.dilation_h;
        uint4 v[KW];
#pragma unroll
        for (int s = 0; s < KW; s++) {
            i32 w = p.w + s * d.dilation_w;
            v[s] = make_uint4(0, 0, 0, 0);
            if ((u32)h < (u32)d.in_h && (u32)w < (u32)d.in_w)
                v[s] = *(const uint4*)(x + p.image + h * d.step_h + (w * d.step_w + c));
        }
#pragma unroll
        for (int s = 0; s < KW; s++) {
            float from[8], weight[8];
            unpack(from, v[s]);
            unpack(weight, *(const uint4*)(kept.weights + (r * KW + s) * d.rows.channels + c));
#pragma unroll
            for (int i = 0; i < 8; i++)
                sums[i] = fmaf(from[i], weight[i], sums[i]);
        }
    }
}

DEVICE void make_rows(const Kept& kept, const IN* x, const Pair& d) {
#pragma unroll 1
    for (int p = (int)threadIdx.x; p < BM * d.rows.eights; p += threads) {
        int r = (int)((u64)(u32)p * d.rows.by_eights >> 32), c = (p - r * d.rows.eights) * 8;
        uint4 out = make_uint4(0, 0, 0, 0);
        if (c < d.rows.channels) {
            float sums[8] = {};
            add_window(sums, x, kept.places[r], c, kept, d);
            const float* e = kept.operands + c;
#pragma unroll
            for (int i = 0; i < 8; i++)
                sums[i] = MID_OF(sums[i]);
            out = packed(sums);
        }
        *(uint4*)(kept.a + (r * d.rows.pitch + c) * (int)sizeof(IN)) = out;
    }
}

KERNEL void __launch_bounds__(threads, 1)
    depthwise_product(const IN* __restrict__ x, const IN* __restrict__ depthwise,
                      const IN* __restrict__ pointwise, OUT* __restrict__ out,
                      const __grid_constant__ Pair d MIDDLE_PARAMS,
                      const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    Kept kept(memory, d);
    Tile tile(d.rows);
    if (!d.rows.constant)
        grid_wait();
    load_weights(kept, depthwise, pointwise, tile.n0, g, d MIDDLE_PASS);
    find_places(kept.places, tile.m0, g.m, d);
    cp_async_wait<0>();
    if (d.rows.constant)
        grid_wait();
    End end; // read before it is used: a bias may lie in DRAM alone
    end.read((int)threadIdx.x, tile, g EPI_PASS);
    sync();
    make_rows(kept, x, d);
    sync();
    multiply_rows(kept.a, kept.b, tile, end, d.rows, g, out EPI_PASS);
}
