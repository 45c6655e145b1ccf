// SPDX-License-Identifier: Apache-2.0
// Contraction by wgmma, fed by the copy engine (9.0). Of the first warpgroup, one thread loads A
// and one loads B into a ring of ST stages of DEEP * 64 of the depth; each of the NC others makes
// 64 rows of the 64 * NC x BN tile. A B that is constant is fetched before the kernels before this
// one have finished. `splits` blocks of a cluster share a tile and sum in a fixed order. The
// finished tile takes the ring's place in shared memory.
//
// CONV: the rows of a tile are a patch of result positions, whose inputs the copy engine fetches as
// boxes, one for each kernel position and 64 channels; it fills the padding with zeros.
constexpr int tile_m = 64 * NC;
constexpr int slab_a = tile_m * 128, slab_b = BN * 128; // 64 of the depth
constexpr int stage_bytes = DEEP * (slab_a + slab_b);
constexpr int tile_bytes = tile_m * (BN + 8) * 4;
constexpr int bar_at = ST * stage_bytes > tile_bytes ? ST* stage_bytes : tile_bytes;
constexpr int depth_step = 64 * DEEP;

struct FromCluster {
    u32 at;
    int splits;
    DEVICE void operator()(ACC* v, int r, int j) const {
        u32 p = at + (r * tile_pitch + j / 4 * 4) * 4;
#pragma unroll
        for (int k = 0; k < VEC; k++)
            v[k] = 0.0f;
#pragma unroll 1
        for (int s = 0; s < splits; s++) {
            float x[8];
            ld_cluster4(x, p, s);
            if (VEC == 8)
                ld_cluster4(x + 4, p + 16, s);
            int e = j & 3;
            if (VEC == 1)
                x[0] = e == 0 ? x[0] : e == 1 ? x[1] : e == 2 ? x[2] : x[3];
#pragma unroll
            for (int k = 0; k < VEC; k++)
                v[k] += x[k];
        }
    }
};

#if CONV
#define CONV_PARAMS , const __grid_constant__ Patch p
#else
#define CONV_PARAMS
DEVICE void load_slab(u32 to, const TensorMap* map, i64 k, i64 outer, int batch, u32 bar) {
#if BATCHED
    tma_load4(to, map, (int)k, (int)outer, batch, 0, bar);
#else
    tma_load2(to, map, (int)k, (int)outer, bar);
#endif
}
#endif

#if CONV
/// Widths, heights and images; `first` is where the windows of position 0 begin.
struct Patch {
    i64 tiles[3], size[3], out[3], kernel[2], dilation[2], first[2];
    i64 channel_steps; // of 64
};
/// Loads of one operand, step after step.
struct Slabs {
    const TensorMap* map;
    const Patch& p;
    int c, s, r, tap, at[3];
    DEVICE Slabs(const TensorMap* map_, const Patch& p_, int begin, int w, int h, int n)
        : map(map_), p(p_) {
        tap = begin / (int)p.channel_steps;
        c = (begin - tap * (int)p.channel_steps) * 64;
        r = tap / (int)p.kernel[0];
        s = tap - r * (int)p.kernel[0];
        at[0] = w, at[1] = h, at[2] = n;
    }
    DEVICE void advance() {
        c += 64;
        if (c < (int)p.channel_steps * 64)
            return;
        c = 0;
        tap++;
        if (++s == (int)p.kernel[0])
            s = 0, r++;
    }
    DEVICE void load_x(u32 to, int, u32 bar) {
        tma_load4(to, map, c, at[0] + s * (int)p.dilation[0] + (int)p.first[0],
                  at[1] + r * (int)p.dilation[1] + (int)p.first[1], at[2], bar);
        advance();
    }
    DEVICE void load_w(u32 to, int, u32 bar) {
        tma_load4(to, map, c, tap, at[0], 0, bar);
        advance();
    }
};
struct PatchRows {
    const Patch& p;
    int at[3];
    DEVICE i64 operator()(int r) const {
        int w = r % (int)p.size[0], q = r / (int)p.size[0];
        int h = q % (int)p.size[1], n = q / (int)p.size[1];
        bool in =
            n < p.size[2] && at[0] + w < p.out[0] && at[1] + h < p.out[1] && at[2] + n < p.out[2];
        return in ? ((i64)(at[2] + n) * p.out[1] + at[1] + h) * p.out[0] + at[0] + w : -1;
    }
};
#endif

/// One thread loads one operand, stage after stage: load(to, step, barrier) for every 64 of the
/// depth.
template <int SLAB, class Load>
DEVICE void produce(Load load, int bytes, u32 ring, u32 full, int begin, int end) {
    int stage = 0;
    u32 phase = 1;
#pragma unroll 1
    for (int k = begin; k < end; k++) {
        mbar_wait(full + 8 * (ST + stage), phase);
        u32 bar = full + 8 * stage;
        mbar_expect(bar, DEEP * bytes);
#pragma unroll
        for (int d = 0; d < DEEP; d++)
            load(ring + stage * stage_bytes + d * SLAB, k * DEEP + d, bar);
        if (++stage == ST) {
            stage = 0;
            phase ^= 1;
        }
    }
}

/// A consumer's share of the depth: 64 rows of A by all of B.
DEVICE void accumulate(float (&d)[BN / 2], u32 ring, u32 full, int begin, int end, int w,
                       int lane) {
    int stage = 0, before = 0;
    u32 phase = 0;
#pragma unroll 1
    for (int k = begin; k < end; k++) {
        mbar_wait(full + 8 * stage, phase);
        wgmma_fence();
        u32 at = ring + stage * stage_bytes;
#pragma unroll
        for (int s = 0; s < DEEP; s++) {
            u64 a = wgmma_desc(at + s * slab_a + w * 8192),
                b = wgmma_desc(at + DEEP * slab_a + s * slab_b);
#pragma unroll
            for (int kk = 0; kk < 4; kk++)
                wgmma<BN>(d, a + kk * 2, b + kk * 2, 1);
        }
        wgmma_commit();
        wgmma_wait<1>();
        if (k > begin && lane == 0)
            mbar_arrive(full + 8 * (ST + before));
        before = stage;
        if (++stage == ST) {
            stage = 0;
            phase ^= 1;
        }
    }
    wgmma_wait<0>();
}

DEVICE void stage_tile(float* tile, const float (&d)[BN / 2], int row, int lane) {
    float* mine = tile + (row + (lane >> 2)) * tile_pitch + (lane & 3) * 2;
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
        Pack<float, 2> lo = {{d[j * 4], d[j * 4 + 1]}}, hi = {{d[j * 4 + 2], d[j * 4 + 3]}};
        *(Pack<float, 2>*)(mine + j * 8) = lo;
        *(Pack<float, 2>*)(mine + 8 * tile_pitch + j * 8) = hi;
    }
}

KERNEL void __launch_bounds__(128 * (NC + 1), 1)
    gemm_wgmma(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
               OUT* __restrict__ out, i32 splits, i32 b_constant, i32 a_batched,
               i32 b_batched CONV_PARAMS, const __grid_constant__ Geometry g EPI_PARAMS) {
    SHARED(memory);
    u32 ring = smem_addr(memory), full = ring + bar_at;
    int tid = threadIdx.x, group = tid >> 7;
    if (tid == 0) {
        for (int i = 0; i < ST; i++) {
            mbar_init(full + 8 * i, 2);
            mbar_init(full + 8 * (ST + i), NC * 4);
        }
        mbar_init_fence();
    }
    sync();
    u32 t = blockIdx.x / splits;
    int split = blockIdx.x - t * splits;
#if CONV
    u32 tm = (u32)(p.tiles[0] * p.tiles[1] * p.tiles[2]);
    int all = (int)(p.kernel[0] * p.kernel[1] * p.channel_steps);
#else
    u32 tm = (u32)((g.m + tile_m - 1) / tile_m);
    int all = (int)((g.k + depth_step - 1) / depth_step);
#endif
    u32 tn = (u32)((g.n + BN - 1) / BN), batch = t / (tm * tn);
    t -= batch * tm * tn;
    // Groups of 8 row blocks, column by column, so that a wave shares operands in L2.
    u32 first = t / (8 * tn) * 8, rows = tm - first < 8 ? tm - first : 8, q = t - first * tn;
    i64 n0 = (i64)(q / rows) * BN;
#if CONV
    int patch = (int)(first + q % rows);
    int across = (int)p.tiles[0], down = (int)p.tiles[1];
    PatchRows row_of = {p,
                        {patch % across * (int)p.size[0], patch / across % down * (int)p.size[1],
                         patch / across / down * (int)p.size[2]}};
#else
    RowsFrom row_of = {(i64)(first + q % rows) * tile_m, g.m};
#endif
    int begin = (int)((i64)all * split / splits), end = (int)((i64)all * (split + 1) / splits);
    if (group == 0) {
        if (NC == 2)
            regs_dec<40>();
        if (tid == 0) {
            prefetch_map(&map_a);
            grid_wait();
#if CONV
            Slabs slabs(&map_a, p, begin, row_of.at[0], row_of.at[1], row_of.at[2]);
            auto load = [&](u32 to, int k, u32 bar) { slabs.load_x(to, k, bar); };
            produce<slab_a>(load, (int)(p.size[0] * p.size[1] * p.size[2]) * 128, ring, full, begin,
                            end);
#else
            auto load = [&](u32 to, int k, u32 bar) {
                load_slab(to, &map_a, (i64)k * 64, row_of.m0, a_batched * (int)batch, bar);
            };
            produce<slab_a>(load, slab_a, ring, full, begin, end);
#endif
        } else if (tid == 32) {
            prefetch_map(&map_b);
            if (!b_constant)
                grid_wait();
#if CONV
            Slabs slabs(&map_b, p, begin, (int)n0, 0, 0);
            auto load = [&](u32 to, int k, u32 bar) { slabs.load_w(to, k, bar); };
#else
            auto load = [&](u32 to, int k, u32 bar) {
                load_slab(to, &map_b, (i64)k * 64, n0, b_batched * (int)batch, bar);
            };
#endif
            produce<slab_b>(load, slab_b, ring + DEEP * slab_a, full, begin, end);
        }
        sync_warp();
        if (splits > 1) {
            cluster_sync();
            cluster_sync();
        }
        return;
    }
    if (NC == 2)
        regs_inc<232>();
    int w = group - 1, lane = tid & 31, warp = (tid >> 5) & 3;
    float d[BN / 2];
#pragma unroll
    for (int i = 0; i < BN / 2; i++)
        d[i] = 0.0f;
    accumulate(d, ring, full, begin, end, w, lane);
    grid_release();
    grid_wait();
    sync_some(1, 128 * NC); // the ring is free
    stage_tile((float*)memory, d, w * 64 + warp * 16, lane);
    if (splits > 1) {
        cluster_sync();
        FromCluster fetch = {smem_addr(memory), splits};
        int from = tile_m * split / splits, to = tile_m * (split + 1) / splits;
        store_tile(fetch, row_of, tid - 128, 128 * NC, from, to - from, batch, n0, g, out EPI_PASS);
        cluster_sync();
    } else {
        sync_some(1, 128 * NC);
        FromTile fetch = {(const float*)memory};
        store_tile(fetch, row_of, tid - 128, 128 * NC, 0, tile_m, batch, n0, g, out EPI_PASS);
    }
}
