// SPDX-License-Identifier: Apache-2.0
// Rows of channels behind a map, in shared memory, times columns of weights there: what
// depthwise_product.cuh and mapped_conv.cuh share. A block makes BM positions x BN columns by
// mma.sync. MID_OF (generated) is the map; it reads OPERAND(n), LOAD_MIDDLE calls LOAD_OPERAND,
// and both are the kernel's own.
// A matrix instruction takes 16 rows: those of fewer positions are repeated. Warps that rows and
// columns leave over share the depth; their sums are added up in a fixed order at the end.
constexpr int threads = THREADS, warps = threads / 32;
constexpr int warps_m = BM < 16 ? 1 : BM / 16;
constexpr int warps_n = BN / 16 < warps / warps_m ? BN / 16 : warps / warps_m;
constexpr int warps_k = warps / (warps_m * warps_n), WN = BN / warps_n;
constexpr int across = BN / VEC; // vectors of a row of the tile
static_assert(WN % 16 == 0, "a warp reads 16 columns at once");

struct Rows {
    u64 by_eights;                            // 2^32 / eights, rounded up
    i32 weight_step, channels, eights, pitch; // eights: vectors of a row, up to whole steps of 16
    i32 blocks_n, constant;                   // constant: weights and OPERANDS
};

/// The first position and the first column of a block.
struct Tile {
    i64 m0, n0;
    DEVICE explicit Tile(const Rows& d) {
        u32 row = blockIdx.x / (u32)d.blocks_n;
        m0 = (i64)row * BM;
        n0 = (i64)(blockIdx.x - row * (u32)d.blocks_n) * BN;
    }
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

DEVICE uint4 packed(const float* v) {
    return make_uint4(PACK(v[0], v[1]), PACK(v[2], v[3]), PACK(v[4], v[5]), PACK(v[6], v[7]));
}

/// Starts the copies of the block's columns, with zeros behind the last column and channel.
DEVICE void load_columns(u8* to, const IN* weights, i64 n0, const Geometry& g, const Rows& d) {
#pragma unroll 1
    for (int p = (int)threadIdx.x; p < BN * d.eights; p += threads) {
        int n = (int)((u64)(u32)p * d.by_eights >> 32), c = (p - n * d.eights) * 8;
        bool in = n0 + n < g.n && c < d.channels;
        cp_async16(smem_addr(to + (n * d.pitch + c) * (int)sizeof(IN)),
                   weights + (in ? (n0 + n) * d.weight_step + c : 0), in ? 16 : 0);
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
    DEVICE void add_step(u32 a, u32 b, const Rows& d) {
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
    DEVICE void add(const Sums& other) {
#pragma unroll
        for (int j = 0; j < WN / 8; j++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                v[j][k] += other.v[j][k];
    }
};

/// The part of a warp: 16 rows, WN columns, and every warps_k-th pair of steps from `part` on.
struct Warp {
    int lane, m, n, part;
    DEVICE Warp() {
        int warp = threadIdx.x >> 5, place = warp / warps_k;
        lane = threadIdx.x & 31;
        part = warp % warps_k;
        m = place / warps_n;
        n = place % warps_n;
    }
};

/// Two sets of sums, of every second step, where registers have room: a step need not wait for the
/// one before.
DEVICE void multiply(Sums& sums, const u8* rows, const u8* columns, const Warp& w, const Rows& d) {
    int lane = w.lane, steps = d.eights / 2;
    u32 a = smem_addr(rows) +
            ((w.m * 16 + (lane & 15)) % BM * d.pitch + (lane >> 4) * 8) * (int)sizeof(IN);
    u32 b = smem_addr(columns) +
            ((w.n * WN + (lane & 7) + ((lane >> 4) << 3)) * d.pitch + ((lane >> 3) & 1) * 8) *
                (int)sizeof(IN);
    if constexpr (WN <= 32) {
        Sums odd;
#pragma unroll 2
        for (int k = 2 * w.part; k + 1 < steps; k += 2 * warps_k) {
            sums.add_step(a + k * 32, b + k * 32, d);
            odd.add_step(a + k * 32 + 32, b + k * 32 + 32, d);
        }
        if ((steps & 1) && (steps >> 1) % warps_k == w.part)
            sums.add_step(a + steps * 32 - 32, b + steps * 32 - 32, d);
        sums.add(odd);
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
    DEVICE void read(int p, const Tile& t, const Geometry& g EPI_PARAMS) {
        i64 m = t.m0 + p / across, n = t.n0 + p % across * VEC;
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

/// Sums that several warps share, a tile behind the other.
struct FromParts {
    const ACC* staged;
    DEVICE void operator()(ACC* v, int r, int j) const {
        FromTile{staged}(v, r, j);
#pragma unroll
        for (int part = 1; part < warps_k; part++) {
            ACC more[VEC];
            FromTile{staged + part * BM * tile_pitch}(more, r, j);
#pragma unroll
            for (int k = 0; k < VEC; k++)
                v[k] += more[k];
        }
    }
};

DEVICE void stage(ACC* staged, const Sums& sums, const Warp& w) {
    ACC* mine = staged + (w.part * BM + w.m * 16 + (w.lane >> 2)) * tile_pitch + w.n * WN +
                (w.lane & 3) * 2;
#pragma unroll
    for (int j = 0; j < WN / 8; j++) {
        Pack<ACC, 2> lo = {{sums.v[j][0], sums.v[j][1]}}, hi = {{sums.v[j][2], sums.v[j][3]}};
        if (BM >= 8 || w.lane < BM * 4)
            *(Pack<ACC, 2>*)(mine + j * 8) = lo;
        if (BM >= 16)
            *(Pack<ACC, 2>*)(mine + 8 * tile_pitch + j * 8) = hi;
    }
}

/// Rows times columns, both in shared memory, to the result. `end` is the thread's first vector.
DEVICE void multiply_rows(u8* rows, const u8* columns, const Tile& t, End& end, const Rows& d,
                          const Geometry& g, OUT* out EPI_PARAMS) {
    Warp warp;
    Sums sums;
    multiply(sums, rows, columns, warp, d);
    end_main_loop();
    sync(); // the operands may be overwritten
    stage((ACC*)rows, sums, warp);
    sync();
    FromParts fetch = {(const ACC*)rows};
#pragma unroll 1
    for (int p = (int)threadIdx.x; p < BM * across; p += threads) {
        if (p != (int)threadIdx.x)
            end.read(p, t, g EPI_PASS);
        if (end.inside) {
            ACC v[VEC];
            fetch(v, p / across, p % across * VEC);
            deliver(v, end.extras, end.at, g, out EPI_PASS);
        }
    }
}
