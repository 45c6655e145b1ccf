// SPDX-License-Identifier: Apache-2.0
// Shared by the contractions with wgmma: tiles, loads of operands by TMA, the main loop of a
// warpgroup. NC warpgroups multiply, each MB * 64 rows by BN columns at a time, from ST pipeline
// stages of K_BLOCKS slabs; the loading threads come after them. A slab is 128 bytes of the depth:
// SLAB_K elements.
//
// CONV: the rows of a tile are a patch of result positions, whose inputs TMA fetches as boxes, one
// for each kernel position and SLAB_K channels; it fills the padding with zeros. CONV == 2: windows
// are two apart; rows and columns of the input are walked as pairs, the second column of a pair
// behind the channels of the first.
constexpr int consumers = 128 * NC;
constexpr int tile_m = 64 * MB * (PING_PONG ? 1 : NC);
constexpr int slab_a = tile_m * 128, slab_b = BN * 128;
constexpr int stage_bytes = K_BLOCKS * (slab_a + slab_b);
constexpr int depth_step = SLAB_K * K_BLOCKS;

#if CONV
#define CONV_PARAMS , const __grid_constant__ Patch patch
#else
#define CONV_PARAMS
/// A patch where there is none: kernels name their parameter `patch`, or else this enumerator.
enum Patch { patch };
DEVICE void load_slab(u32 to, const TensorMap* map, i64 k, i64 outer, int batch, u32 bar) {
#if BATCHED
    tma_load4(to, map, (int)k, (int)outer, batch, 0, bar);
#else
    tma_load2(to, map, (int)k, (int)outer, bar);
#endif
}
#endif

#if CONV
/// Widths, heights, and images or the depths of one volume; `first` is where the windows of
/// position 0 begin. A batch is a group of channels. Where its last slab reaches into the next
/// group, or from the first column of a pair into the second, the weights are zeros.
struct Patch {
    i64 tiles[3], size[3], out[3], kernel[3], dilation[3], first[3];
    i64 channel_steps;     // of SLAB_K, in a group
    i64 channels, results; // of a group
    i64 column_step;       // elements of x between columns
};
/// Loads of one operand, step after step.
struct Slabs {
    const TensorMap* map;
    const Patch& p;
    int first, last, c, s, r, tap, at[3]; // channels of the group, the current one; position
    DEVICE Slabs(const TensorMap* map_, const Patch& p_, int begin, int first_, int w, int h, int n)
        : map(map_), p(p_), first(first_), last(first_ + (int)p_.channel_steps * SLAB_K) {
        tap = begin / (int)p.channel_steps;
        c = first + (begin - tap * (int)p.channel_steps) * SLAB_K;
        int row = tap / (int)p.kernel[0];
        s = tap - row * (int)p.kernel[0];
        int d = row / (int)p.kernel[1];
        r = row - d * (int)p.kernel[1];
        at[0] = w, at[1] = h, at[2] = n + d * (int)p.dilation[2] + (int)p.first[2];
    }
    DEVICE void advance() {
        c += SLAB_K;
        if (c < last)
            return;
        c = first;
        tap++;
        if (++s < (int)p.kernel[0])
            return;
        s = 0;
        if (++r == (int)p.kernel[1])
            r = 0, at[2] += (int)p.dilation[2];
    }
    DEVICE void load_x(u32 to, u32 bar) {
        int x = s * (int)p.dilation[0] + (int)p.first[0],
            y = r * (int)p.dilation[1] + (int)p.first[1];
#if CONV == 2
        tma_load5(to, map, c + (x & 1) * (int)p.column_step, at[0] + (x >> 1), y & 1,
                  at[1] + (y >> 1), at[2], bar);
#else
        tma_load4(to, map, c, at[0] + x, at[1] + y, at[2], bar);
#endif
        advance();
    }
    DEVICE void load_w(u32 to, u32 bar) {
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

#if CONV
typedef PatchRows Rows;
#else
typedef RowsFrom Rows;
#endif
/// The position of a tile.
struct Place {
    u32 batch;
    i64 n0;
    Rows row_of;
};
DEVICE u32 row_tiles(const Geometry& g, const Patch& p) {
#if CONV
    return (u32)(p.tiles[0] * p.tiles[1] * p.tiles[2]);
#else
    return (u32)((g.m + tile_m - 1) / tile_m);
#endif
}
DEVICE u32 column_tiles(const Geometry& g) {
    return (u32)((g.n + BN - 1) / BN);
}
/// Steps of the whole depth.
DEVICE int all_steps(const Geometry& g, const Patch& p) {
#if CONV
    return (int)(p.kernel[0] * p.kernel[1] * p.kernel[2] * p.channel_steps);
#else
    return (int)((g.k + depth_step - 1) / depth_step);
#endif
}
/// `backwards`: from the last tile to the first one. A kernel so finds in L2 what the one before it
/// has stored last.
DEVICE Place place_of(u32 t, i32 backwards, const Geometry& g, const Patch& p) {
    u32 tm = row_tiles(g, p), tn = column_tiles(g);
    if (backwards)
        t = tm * tn * (u32)g.batches - 1 - t;
    u32 batch = t / (tm * tn);
    t -= batch * tm * tn;
    // Groups of 8 row blocks, column by column, so that a wave shares operands in L2.
    u32 first = t / (8 * tn) * 8, rows = tm - first < 8 ? tm - first : 8, q = t - first * tn;
    i64 n0 = (i64)(q / rows) * BN;
#if CONV
    int patch = (int)(first + q % rows);
    int across = (int)p.tiles[0], down = (int)p.tiles[1];
    return {batch,
            n0,
            {p,
             {patch % across * (int)p.size[0], patch / across % down * (int)p.size[1],
              patch / across / down * (int)p.size[2]}}};
#else
    return {batch, n0, {(i64)(first + q % rows) * tile_m, g.m}};
#endif
}

/// Loads of A and B for a tile: load(to, step, barrier) for every slab, in order.
struct LoadA {
#if CONV
    Slabs slabs;
    DEVICE LoadA(const TensorMap* map, const Place& at, int begin, i32, const Patch& p)
        : slabs(map, p, begin, (int)(at.batch * (u32)p.channels), at.row_of.at[0], at.row_of.at[1],
                at.row_of.at[2]) {}
    DEVICE void operator()(u32 to, int, u32 bar) {
        slabs.load_x(to, bar);
    }
#else
    const TensorMap* map;
    i64 row;
    int batch;
    DEVICE LoadA(const TensorMap* map_, const Place& at, int, i32 batched, const Patch&)
        : map(map_), row(at.row_of.m0), batch(batched * (int)at.batch) {}
    DEVICE void operator()(u32 to, int k, u32 bar) {
        load_slab(to, map, (i64)k * SLAB_K, row, batch, bar);
    }
#endif
};
struct LoadB {
#if CONV
    Slabs slabs;
    DEVICE LoadB(const TensorMap* map, const Place& at, int begin, i32, const Patch& p)
        : slabs(map, p, begin, 0, (int)at.n0 + (int)(at.batch * (u32)p.results), 0, 0) {}
    DEVICE void operator()(u32 to, int, u32 bar) {
        slabs.load_w(to, bar);
    }
#else
    const TensorMap* map;
    i64 column;
    int batch;
    DEVICE LoadB(const TensorMap* map_, const Place& at, int, i32 batched, const Patch&)
        : map(map_), column(at.n0), batch(batched * (int)at.batch) {}
    DEVICE void operator()(u32 to, int k, u32 bar) {
        load_slab(to, map, (i64)k * SLAB_K, column, batch, bar);
    }
#endif
};
/// The number of valid rows of a tile.
DEVICE int tile_rows(const Geometry& g, const Patch& p) {
    (void)g;
#if CONV
    return (int)(p.size[0] * p.size[1] * p.size[2]);
#else
    return tile_m;
#endif
}
/// The rows of a tile up to the last one that is stored.
DEVICE int stored_rows(const Place& at, const Geometry& g, const Patch& p) {
    (void)at;
#if CONV
    return tile_rows(g, p);
#else
    (void)p;
    i64 rest = g.m - at.row_of.m0;
    return rest < tile_m ? (int)rest : tile_m;
#endif
}
/// The bytes of one load of A.
DEVICE int bytes_of_a(const Geometry& g, const Patch& p) {
    return tile_rows(g, p) * 128;
}

/// A pipeline stage, and the parity of its passes.
struct Turn {
    int stage = 0;
    u32 phase = 0;
    DEVICE void advance() {
        if (++stage == ST) {
            stage = 0;
            phase ^= 1;
        }
    }
};

/// One thread loads one operand, stage after stage.
template <int SLAB, class Load>
DEVICE void produce(Load& load, int bytes, u32 pipeline, u32 full, int begin, int end, Turn& turn) {
#pragma unroll 1
    for (int k = begin; k < end; k++) {
        mbar_wait(full + 8 * (ST + turn.stage), turn.phase ^ 1);
        u32 bar = full + 8 * turn.stage;
        mbar_expect(bar, K_BLOCKS * bytes);
#pragma unroll
        for (int d = 0; d < K_BLOCKS; d++)
            load(pipeline + turn.stage * stage_bytes + d * SLAB, k * K_BLOCKS + d, bar);
        turn.advance();
    }
}

struct Unset {};
struct Sums {
    WgmmaSum d[MB][BN / 2];
    DEVICE Sums(Unset) {}
    DEVICE Sums() {
#pragma unroll
        for (int i = 0; i < MB; i++)
#pragma unroll
            for (int j = 0; j < BN / 2; j++)
                d[i][j] = 0;
    }
};

/// Sees no stage.
struct NoStages {
    DEVICE void see(u32, int) {}
};

#ifndef WGMMA_F8 // promoted_sums.cuh
/// The steps [begin, end) of a warpgroup, from a pipeline stage on: the rows of A that begin at
/// byte `rows` of a stage, by all of B. `other`: the barrier on which another warpgroup waits until
/// the last stage of this one has arrived, or 0. ON: the pipeline continues after the last step,
/// and the sums were unset. `stages` sees the rows of each step while they are multiplied.
template <bool ON, class Stages>
DEVICE void accumulate(Sums& sums, u32 pipeline, u32 full, int begin, int end, int rows, int lane,
                       Turn turn, u32 other, Stages& stages) {
    int before = 0;
#pragma unroll 1
    for (int k = begin; k < end; k++) {
        mbar_wait(full + 8 * turn.stage, turn.phase);
        if (other != 0 && k == end - 1 && lane == 0)
            mbar_arrive(other);
        wgmma_fence();
        u32 at = pipeline + turn.stage * stage_bytes;
#pragma unroll
        for (int s = 0; s < K_BLOCKS; s++) {
            u64 a = wgmma_desc(at + s * slab_a + rows),
                b = wgmma_desc(at + K_BLOCKS * slab_a + s * slab_b);
#pragma unroll
            for (int kk = 0; kk < 4; kk++)
#pragma unroll
                for (int i = 0; i < MB; i++)
                    wgmma<BN>(sums.d[i], a + kk * 2 + i * 512, b + kk * 2,
                              !ON || k > begin || s > 0 || kk > 0);
        }
        wgmma_commit();
        stages.see(at + rows - pipeline, k);
        wgmma_wait<1>();
        if (k > begin && lane == 0)
            mbar_arrive(full + 8 * (ST + before));
        before = turn.stage;
        turn.advance();
    }
    wgmma_wait<0>();
    if (ON && lane == 0)
        mbar_arrive(full + 8 * (ST + before));
}
#else
template <bool ON, class Stages>
DEVICE void accumulate(Sums& sums, u32 pipeline, u32 full, int begin, int end, int rows, int lane,
                       Turn turn, u32 other, Stages& stages);
#endif
template <bool ON>
DEVICE void accumulate(Sums& sums, u32 pipeline, u32 full, int begin, int end, int rows, int lane,
                       Turn turn, u32 other) {
    NoStages none;
    accumulate<ON>(sums, pipeline, full, begin, end, rows, lane, turn, other, none);
}
