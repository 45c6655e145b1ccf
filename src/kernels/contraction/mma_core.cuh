// SPDX-License-Identifier: Apache-2.0
// The tensor-core loop over ST pipeline stages in shared memory (mma.sync and cp.async), followed
// by split-K and the store. A block makes BM x BN results, a warp WM x WN. In shared memory both
// operands have BK elements of the depth innermost, rows of row_bytes with their 16-byte chunks
// swizzled; B_COLUMNS (16-bit types only): B's rows are depths, with BN columns innermost.
//
// Split-K is an argument: `splits` blocks share a tile. CLUSTER: they form a cluster and sum
// through each other's shared memory; else they leave partial sums in scratch memory for split_sum.
constexpr int element = sizeof(IN);
constexpr int row_bytes = BK * element;
constexpr int chunks = row_bytes / 16;
constexpr int per_chunk = 16 / element;
constexpr int warps_n = BN / WN;
constexpr int threads = BM / WM * warps_n * 32;
constexpr int a_bytes = BM * row_bytes;
constexpr int stage_bytes = a_bytes + BN * row_bytes;
constexpr int steps = row_bytes / 32; // of one matrix instruction

/// Chunk c of a row, permuted so that neither copies nor ldmatrix have bank conflicts.
template <int BYTES>
DEVICE u32 swizzled(int row, int c) {
    return row * BYTES + ((c ^ (BYTES == 64 ? (row >> 1) & 3 : row & 7)) << 4);
}

/// cp.async of BYTES (4, 8 or 16), of which `count` elements are valid; the rest becomes zero.
template <int BYTES>
DEVICE void cp_async(u32 to, const IN* from, int count) {
    int bytes = count <= 0 ? 0 : count >= BYTES / element ? BYTES : count * element;
    if (BYTES == 16)
        cp_async16(to, from, bytes);
    else if (BYTES == 8)
        cp_async8(to, from, bytes);
    else
        cp_async4(to, from, bytes);
}

/// 16 bytes to shared memory: by cp.async of ALIGNED bytes, for 0 element by element, `step`
/// elements apart. `count`: valid elements; the rest becomes zero. `from` must be readable even
/// when count is 0.
template <int ALIGNED>
DEVICE void copy_chunk(u8* base, u32 to, const IN* from, i64 step, int count) {
    if constexpr (ALIGNED > 0) {
        constexpr int piece = ALIGNED / element;
#pragma unroll
        for (int p = 0; p < 16 / ALIGNED; p++)
            cp_async<ALIGNED>(smem_addr(base) + to + p * ALIGNED,
                              count > p * piece ? from + p * piece : from, count - p * piece);
    } else {
        Pack<IN, per_chunk> v;
#pragma unroll
        for (int k = 0; k < per_chunk; k++)
            v.v[k] = k < count ? from[k * step] : IN{};
        *(Pack<IN, per_chunk>*)(base + to) = v;
    }
}

struct Fragments {
    u32 a[WM / 16][4], b[WN / 8][2];
};
struct Warp {
    int m, n, lane;
    DEVICE Warp() {
        int w = threadIdx.x >> 5;
        m = w / warps_n, n = w % warps_n, lane = threadIdx.x & 31;
    }
    /// Fragments of step kk of the stage at `base`.
    DEVICE void read(Fragments& f, u32 base, int kk) const {
        u32 fa = swizzled<row_bytes>(m * WM + (lane & 15), lane >> 4) ^ (kk * 32);
#pragma unroll
        for (int i = 0; i < WM / 16; i++)
            ldmatrix4(f.a[i], base + fa + i * 16 * row_bytes);
        base += a_bytes;
#pragma unroll
        for (int j = 0; j < WN / 16; j++) {
            u32 r[4];
#if B_COLUMNS
            int k = kk * 16 + (lane & 15);
            ldmatrix4_trans(r,
                            base + swizzled<BN * element>(k, (n * WN + j * 16) / 8 + (lane >> 4)));
#else
            u32 fb =
                swizzled<row_bytes>(n * WN + (lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1) ^
                (kk * 32);
            ldmatrix4(r, base + fb + j * 16 * row_bytes);
#endif
            f.b[2 * j][0] = r[0], f.b[2 * j][1] = r[1];
            f.b[2 * j + 1][0] = r[2], f.b[2 * j + 1][1] = r[3];
        }
#if TF32
#pragma unroll
        for (int i = 0; i < WM / 16; i++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                f.a[i][k] = cvt_tf32(__uint_as_float(f.a[i][k]));
#pragma unroll
        for (int j = 0; j < WN / 8; j++)
#pragma unroll
            for (int k = 0; k < 2; k++)
                f.b[j][k] = cvt_tf32(__uint_as_float(f.b[j][k]));
#endif
    }
};

struct Sums {
    ACC v[WM / 16][WN / 8][4];
    DEVICE Sums() {
#pragma unroll
        for (int i = 0; i < WM / 16; i++)
#pragma unroll
            for (int j = 0; j < WN / 8; j++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    v[i][j][k] = (ACC)0;
    }
    DEVICE void add(const Fragments& f) {
#pragma unroll
        for (int i = 0; i < WM / 16; i++)
#pragma unroll
            for (int j = 0; j < WN / 8; j++)
                MMA(v[i][j], f.a[i], f.b[j][0], f.b[j][1]);
    }
};

/// Steps [begin, end) of the depth, at least one, BK each; load(stage, step) starts the copies of a
/// step.
template <class Load>
DEVICE void multiply(Sums& sums, u32 base, int begin, int end, Load& load) {
    Warp warp;
    Fragments f[2];
#pragma unroll 1
    for (int i = 0; i < ST - 1; i++) {
        if (begin + i < end)
            load(i, begin + i);
        cp_async_commit();
    }
    int read = 0, write = ST - 1;
    cp_async_wait<ST - 2>();
    sync();
    warp.read(f[0], base, 0);
    int k = begin;
#pragma unroll 1
    do {
#pragma unroll
        for (int kk = 0; kk < steps; kk++) {
            if (kk == steps - 1) { // the next stage is complete before its first fragments are read
                read = read + 1 == ST ? 0 : read + 1;
                cp_async_wait<ST - 2>();
                sync();
            }
            if (kk < steps - 1 || k + 1 < end)
                warp.read(f[(kk + 1) & 1], base + read * stage_bytes, (kk + 1) % steps);
            if (kk == 0) {
                if (k + ST - 1 < end)
                    load(write, k + ST - 1);
                cp_async_commit();
                write = write + 1 == ST ? 0 : write + 1;
            }
            sums.add(f[kk & 1]);
        }
    } while (++k < end);
    end_main_loop();
    cp_async_wait<0>();
    sync();
}

/// The tile of a block.
struct Tile {
    u32 batch;
    i64 m, n;
    int split, begin, end; // its part of the depth, in steps
    DEVICE Tile(const Geometry& g, int splits) {
        u32 t = blockIdx.x / splits;
        split = blockIdx.x - t * splits;
        u32 tm = (u32)((g.m + BM - 1) / BM), tn = (u32)((g.n + BN - 1) / BN);
        batch = t / (tm * tn);
        t -= batch * tm * tn;
        // Groups of 8 row blocks, column by column, so that a wave shares operands in L2.
        u32 first = t / (8 * tn) * 8, rows = tm - first < 8 ? tm - first : 8, q = t - first * tn;
        m = (i64)(first + q % rows) * BM;
        n = (i64)(q / rows) * BN;
        int all = (int)((g.k + BK - 1) / BK);
        begin = (int)((i64)all * split / splits);
        end = (int)((i64)all * (split + 1) / splits);
    }
};

DEVICE void store_by_epilogue(const Sums& sums, u8* memory, const Tile& t, int splits, ACC* partial,
                              const Geometry& g, OUT* out EPI_PARAMS) {
    Warp warp;
    ACC* tile = (ACC*)memory;
    RowsFrom rows = {t.m, g.m};
    ACC* mine =
        tile + (warp.m * WM + (warp.lane >> 2)) * tile_pitch + warp.n * WN + (warp.lane & 3) * 2;
#pragma unroll
    for (int i = 0; i < WM / 16; i++)
#pragma unroll
        for (int j = 0; j < WN / 8; j++) {
            const ACC* v = sums.v[i][j];
            Pack<ACC, 2> lo = {{v[0], v[1]}}, hi = {{v[2], v[3]}};
            *(Pack<ACC, 2>*)(mine + i * 16 * tile_pitch + j * 8) = lo;
            *(Pack<ACC, 2>*)(mine + (i * 16 + 8) * tile_pitch + j * 8) = hi;
        }
    int first = 0, count = BM;
#if CLUSTER
    if (splits > 1) {
        // Each block of the cluster sums and stores some of the rows.
        first = BM * t.split / splits;
        count = BM * (t.split + 1) / splits - first;
        cluster_sync();
        cluster_sum<1>(memory, splits, first, count, threadIdx.x, threads);
        cluster_sync();
    }
#else
    if (splits > 1) {
        sync();
        ACC* to = partial + ((i64)t.split * g.batches + t.batch) * g.m * g.n;
#pragma unroll 1
        for (int e = threadIdx.x; e < BM * BN; e += threads) {
            i64 m = t.m + e / BN, n = t.n + e % BN;
            if (m < g.m && n < g.n)
                to[m * g.n + n] = tile[e / BN * tile_pitch + e % BN];
        }
        return;
    }
#endif
    sync();
    FromTile fetch = {tile};
    store_tile(fetch, rows, threadIdx.x, threads, first, count, t.batch, t.n, g, out EPI_PASS);
}
