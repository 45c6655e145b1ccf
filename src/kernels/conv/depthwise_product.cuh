// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution and the pointwise one that reads it, channels innermost: a block makes
// BM positions x BN columns. It computes the first one's channels at its positions, with the map
// behind them (MID_OF, generated), into shared memory, where tensor cores read them (mma.sync).
// Weights and the OPERANDS of that map are loaded before the kernel waits for its input, where they
// are constant. Traffic: the input once a block of columns, the result once.
// A matrix instruction takes 16 rows: those of fewer positions are repeated.
constexpr int threads = 128, warps_m = BM < 16 ? 1 : BM / 16, warps_n = 4 / warps_m;
constexpr int WN = BN / warps_n;
constexpr int taps = KH * KW, across = BN / VEC; // vectors of a row of the tile
static_assert(WN % 16 == 0, "a warp reads 16 columns at once");

struct Pair {
    u64 by_eights; // 2^32 / eights, rounded up
    i64 step_n, step_h;
    i32 step_w, tap_step, weight_step; // of x, between taps, between columns
    i32 in_h, in_w, out_h, out_w, stride_h, stride_w, dilation_h, dilation_w, low_h, low_w;
    i32 channels, eights, pitch; // eights: vectors of a row, up to whole steps of 16
    i32 blocks_n, constant;
};

/// The window of a row of the tile. Rows behind the last one repeat the first of all.
struct Place {
    i64 image;
    i32 h, w;
};

DEVICE void unpack(float* to, const uint4& v) {
    const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        IN low, high;
        low.bits = (u16)words[i];
        high.bits = (u16)(words[i] >> 16);
        to[2 * i] = widen(low);
        to[2 * i + 1] = widen(high);
    }
}

/// Shared memory.
struct Kept {
    IN* weights;     // [taps][channels]
    float* operands; // [OPERANDS][channels]
    Place* places;   // [BM]
    u8 *a, *b;       // rows of `pitch` elements
    DEVICE Kept(u8* memory, const Pair& d) {
        weights = (IN*)memory;
        operands = (float*)(weights + taps * d.channels);
        places = (Place*)(operands + OPERANDS * d.channels);
        a = (u8*)(places + BM);
        b = a + BM * d.pitch * (int)sizeof(IN);
    }
};

DEVICE void load_weights(const Kept& kept, const IN* depthwise, const IN* pointwise, i64 n0,
                         const Geometry& g, const Pair& d MIDDLE_PARAMS) {
#pragma unroll 1
    for (int p = (int)threadIdx.x; p < BN * d.eights; p += threads) {
        int n = (int)((u64)(u32)p * d.by_eights >> 32), c = (p - n * d.eights) * 8;
        bool in = n0 + n < g.n && c < d.channels;
        cp_async16(smem_addr(kept.b + (n * d.pitch + c) * (int)sizeof(IN)),
                   pointwise + (in ? (n0 + n) * d.weight_step + c : 0), in ? 16 : 0);
    }
#pragma unroll 1
    for (int c = (int)threadIdx.x * 8; c < taps * d.channels; c += threads * 8) {
        int tap = c / d.channels;
        cp_async16(smem_addr(kept.weights + c),
                   depthwise + tap * d.tap_step + (c - tap * d.channels), 16);
    }
    cp_async_commit();
    for (int c = (int)threadIdx.x; c < d.channels; c += threads) {
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
            unpack(weight, *(const uint4*)(kept.weights + (r * KW + s) * d.channels + c));
#pragma unroll
            for (int i = 0; i < 8; i++)
                sums[i] = fmaf(from[i], weight[i], sums[i]);
        }
    }
}

DEVICE void make_rows(const Kept& kept, const IN* x, const Pair& d) {
#pragma unroll 1
    for (int p = (int)threadIdx.x; p < BM * d.eights; p += threads) {
        int r = (int)((u64)(u32)p * d.by_eights >> 32), c = (p - r * d.eights) * 8;
        Pack<IN, 8> out = {};
        if (c < d.channels) {
            float sums[8] = {};
            add_window(sums, x, kept.places[r], c, kept, d);
            const float* e = kept.operands + c;
#pragma unroll
            for (int i = 0; i < 8; i++)
                out.v[i] = narrow<IN>(MID_OF(sums[i]));
        }
        *(Pack<IN, 8>*)(kept.a + (r * d.pitch + c) * (int)sizeof(IN)) = out;
    }
}

struct Sums {
    ACC v[WN / 8][4];
    DEVICE Sums() {
#pragma unroll
        for (int j = 0; j < WN / 8; j++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                v[j][k] = (ACC)0;
    }
    DEVICE void add_step(u32 a, u32 b, const Pair& d) {
        u32 left[4];
        ldmatrix4(left, a);
#pragma unroll
        for (int j = 0; j < WN / 16; j++) {
            u32 right[4];
            ldmatrix4(right, b + j * 16 * d.pitch * (int)sizeof(IN));
            MMA(v[2 * j], left, right[0], right[1]);
            MMA(v[2 * j + 1], left, right[2], right[3]);
        }
    }
};

/// Two sets of sums, of every second step, where registers have room: a step need not wait for the
/// one before.
DEVICE void multiply(Sums& sums, const Kept& kept, int m, int n, const Pair& d) {
    int lane = threadIdx.x & 31, steps = d.eights / 2;
    u32 a = smem_addr(kept.a) +
            ((m * 16 + (lane & 15)) % BM * d.pitch + (lane >> 4) * 8) * (int)sizeof(IN);
    u32 b = smem_addr(kept.b) +
            ((n * WN + (lane & 7) + ((lane >> 4) << 3)) * d.pitch + ((lane >> 3) & 1) * 8) *
                (int)sizeof(IN);
    if constexpr (WN <= 32) {
        Sums odd;
#pragma unroll 2
        for (int k = 0; k + 1 < steps; k += 2) {
            sums.add_step(a + k * 32, b + k * 32, d);
            odd.add_step(a + k * 32 + 32, b + k * 32 + 32, d);
        }
        if (steps & 1)
            sums.add_step(a + steps * 32 - 32, b + steps * 32 - 32, d);
#pragma unroll
        for (int j = 0; j < WN / 8; j++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                sums.v[j][k] += odd.v[j][k];
    } else {
#pragma unroll 2
        for (int k = 0; k < steps; k++)
            sums.add_step(a + k * 32, b + k * 32, d);
    }
}

/// A vector of results, and the epilogue's operands for it.
struct End {
    bool inside;
    i64 at;
    Extras extras;
    DEVICE void read(int p, i64 m0, i64 n0, const Geometry& g EPI_PARAMS) {
        i64 m = m0 + p / across, n = n0 + p % across * VEC;
        inside = p < BM * across && m < g.m && n < g.n;
        if (inside) {
            Spot s;
            s.batch(g, 0);
            s.add_row(g, (u32)m);
            s.add_column(g, (u32)n);
            at = s.at[0];
            read_extras(extras, s.at, g EPI_PASS);
        }
    }
};

KERNEL void __launch_bounds__(threads, 1)
    depthwise_product(const IN* __restrict__ x, const IN* __restrict__ depthwise,
                      const IN* __restrict__ pointwise, OUT* __restrict__ out,
                      const __grid_constant__ Pair d MIDDLE_PARAMS,
                      const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    Kept kept(memory, d);
    i64 tile = blockIdx.x / (u32)d.blocks_n, m0 = tile * BM;
    i64 n0 = (i64)(blockIdx.x - (u32)tile * (u32)d.blocks_n) * BN;
    if (!d.constant)
        grid_wait();
    load_weights(kept, depthwise, pointwise, n0, g, d MIDDLE_PASS);
    find_places(kept.places, m0, g.m, d);
    cp_async_wait<0>();
    if (d.constant)
        grid_wait();
    End end; // read before it is used: a bias may lie in DRAM alone
    end.read((int)threadIdx.x, m0, n0, g EPI_PASS);
    sync();
    make_rows(kept, x, d);
    sync();
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, wm = warp / warps_n, wn = warp % warps_n;
    Sums sums;
    multiply(sums, kept, wm, wn, d);
    end_main_loop();
    sync(); // the operands may be overwritten
    ACC* staged = (ACC*)kept.a;
    ACC* mine = staged + (wm * 16 + (lane >> 2)) * tile_pitch + wn * WN + (lane & 3) * 2;
#pragma unroll
    for (int j = 0; j < WN / 8; j++) {
        Pack<ACC, 2> lo = {{sums.v[j][0], sums.v[j][1]}}, hi = {{sums.v[j][2], sums.v[j][3]}};
        if (BM >= 8 || lane < BM * 4)
            *(Pack<ACC, 2>*)(mine + j * 8) = lo;
        if (BM >= 16)
            *(Pack<ACC, 2>*)(mine + 8 * tile_pitch + j * 8) = hi;
    }
    sync();
    FromTile fetch = {staged};
#pragma unroll 1
    for (int p = (int)threadIdx.x; p < BM * across; p += threads) {
        if (p != (int)threadIdx.x)
            end.read(p, m0, n0, g EPI_PASS);
        if (end.inside) {
            ACC v[VEC];
            fetch(v, p / across, p % across * VEC);
            deliver(v, end.extras, end.at, g, out EPI_PASS);
        }
    }
}
