// SPDX-License-Identifier: Apache-2.0
// Persistent contraction by wgmma, whose results of 8, 16 or 32 bits TMA stores: a block per SM
// loops over tiles of 64 * MB x BN with two alternating warpgroups. While one stores its tile, the
// other multiplies. In the third, two threads load continuously across tiles, and one thread per
// other warpgroup stores its finished panels.
//
// Sums go through the epilogue (read_columns and epilogue_pair, generated) in registers, and as
// results into a panel of 128 bytes of a row in shared memory, the last panel of fewer where TAIL.
// A warpgroup has buffers of them in turn. With FULL an operand of the epilogue has the shape of
// the result: TMA loads it into the panel ahead of time, and the result replaces it there. MOMENTS:
// those of the rounded results are stored too. MERGED: sums are multiplied by the factors of their
// rows of A. PAIRED: a result is made of the sums of two columns, one of each half of B.
constexpr int buffers = 2;
constexpr int sums_of_result = PAIRED ? 2 : 1;
constexpr int results = BN / sums_of_result; // columns of a tile
constexpr int panel_columns = 128 / sizeof(OUT);
constexpr int panels = (results + panel_columns - 1) / panel_columns;
constexpr int tail_bytes = results % panel_columns * sizeof(OUT); // of a row
constexpr int wide_results = wide / sums_of_result;
constexpr int panel_bytes = tile_m * 128;
constexpr int panel_at = ST * stage_bytes;
constexpr int bar_at = panel_at + 2 * buffers * panel_bytes;
static_assert(PING_PONG && NC == 2 && results % 32 == 0 && K_BLOCKS == 1 &&
                  TAIL == (tail_bytes != 0) && !(BYTES && PAIRED) && !(WORDS && TAIL),
              "two warpgroups, whole panels but for the last");
static_assert(wide_results >= 16, "a matrix of 16 x 16 is stored at a time");

#if PAIRED
/// Columns of 8 results in the order first half and second half of 0, 2, 4, 6, then of 1, 3, 5, 7:
/// a thread, which has two adjacent columns of each 8, gets the sums of two adjacent results.
struct LoadPairs {
    const TensorMap* map;
    int eighth;
    DEVICE LoadPairs(const TensorMap* map_, const Place& at, int, i32, const Patch&)
        : map(map_), eighth((int)at.n0 / 16) {}
    DEVICE void operator()(u32 to, int k, u32 bar) {
        tma_load5(to, map, k * SLAB_K, 0, 0, 0, eighth, bar);
    }
};
#define LoadB LoadPairs
#endif

/// Maps of a matrix that is read or written by panels; `tail` is the last panel's where TAIL.
struct PanelMaps {
    const TensorMap *whole, *tail;
    DEVICE const TensorMap* of(int panel) const {
        return TAIL && panel == panels - 1 ? tail : whole;
    }
};

// A warpgroup would wait forever for more registers than the block was launched with.
constexpr int load_registers = 40, multiply_registers = 232;
static_assert(load_registers + 2 * multiply_registers <= 3 * 168, "65536 / 384, in steps of 8");

/// The tiles of a warpgroup: first, first + step, ...
struct Tiles {
    u32 first, step, end;
    DEVICE Tiles(int group, const Geometry& g, const Patch& p) {
        first = blockIdx.x + group * gridDim.x;
        step = 2 * gridDim.x;
        end = row_tiles(g, p) * column_tiles(g) * (u32)g.batches;
    }
    DEVICE u32 count() const { return first < end ? (end - first - 1) / step + 1 : 0; }
};

/// Barriers of a panel: `ready` when it may be written, or has received the operand; `done` when it
/// may be stored.
DEVICE u32 ready_of(u32 ends, u32 use) {
    return ends + use % buffers * 16;
}

/// The start of a tile's panel in the result.
struct PanelPlace {
    int panel;
    int at[4];
    DEVICE PanelPlace(u32 use, const Tiles& tiles, i32 backwards, const Geometry& g,
                      const Patch& p) {
        panel = (int)(use % panels);
        Place tile = place_of(tiles.first + use / panels * tiles.step, backwards, g, p);
        at[0] = (int)tile.n0 / sums_of_result + panel * panel_columns;
#if CONV
        at[1] = tile.row_of.at[0], at[2] = tile.row_of.at[1], at[3] = tile.row_of.at[2];
#else
        at[1] = (int)tile.row_of.m0, at[2] = (int)tile.batch, at[3] = 0;
#endif
    }
};

/// One thread for a warpgroup: stores panel after panel, and makes each ready again.
DEVICE void send_panels(u32 memory, u32 ends, int group, PanelMaps out, PanelMaps x, i32 backwards,
                        const Geometry& g, const Patch& p) {
    Tiles tiles(group, g, p);
    u32 uses = tiles.count() * panels;
#pragma unroll 1
    for (u32 use = 0; use < uses + buffers; use++) {
        if (use >= buffers) { // send the one that has its place
            u32 old = use - buffers, bar = ready_of(ends, old) + 8;
            PanelPlace there(old, tiles, backwards, g, p);
            mbar_wait(bar, old / buffers & 1);
            u32 from = memory + old % buffers * panel_bytes;
#if BATCHED || CONV
            tma_store4(out.of(there.panel), there.at[0], there.at[1], there.at[2], there.at[3],
                       from);
#else
            tma_store2(out.of(there.panel), there.at[0], there.at[1], from);
#endif
            bulk_commit();
            bulk_wait_read<0>();
        }
        if (use >= uses)
            continue;
        u32 bar = ready_of(ends, use);
#if FULL
        PanelPlace there(use, tiles, backwards, g, p);
        u32 to = memory + use % buffers * panel_bytes;
        mbar_expect(bar, tile_rows(g, p) * (TAIL && there.panel == panels - 1 ? tail_bytes : 128));
#if BATCHED || CONV
        tma_load4(to, x.of(there.panel), there.at[0], there.at[1], there.at[2], there.at[3], bar);
#else
        tma_load2(to, x.of(there.panel), there.at[0], there.at[1], bar);
#endif
#else
        mbar_arrive(bar);
#endif
    }
    bulk_wait_all();
}

#if MOMENTS
/// Stores the moments of a chunk of a row, of which a thread has four pairs of columns.
DEVICE void send_moments(const u32* pairs, i64 row, int n, u32 batch, int lane,
                         const Geometry& g EPI_PARAMS) {
    float v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        OUT one;
        one.bits = (u16)(pairs[k / 2] >> (k % 2 * 16));
        v[k] = widen(one);
    }
    Moments m = chunk_moments(v);
    if ((lane & 3) == 0 && row >= 0 && n < (int)g.n) {
        i64 at =
            offset_of<RB>(batch, g.batch, g.cb[0]) + offset_of<RM>((u32)row, g.rows, g.cm[0]) + n;
        Pack<float, 2> both = {{m.mean, m.squares}};
        *(Pack<float, 2>*)(moments + at / moment_chunk * 2) = both;
    }
}
#endif

struct ChunkColumns {
    Columns of[wide_results / 8];
    DEVICE void read(int n, const Geometry& g EPI_PARAMS) {
#pragma unroll
        for (int j = 0; j < wide_results / 8; j++)
            if (n + j * 8 < (int)g.n / sums_of_result)
                read_columns(of[j], n + j * 8 EPI_PASS);
    }
};

/// A chunk of columns in a panel.
struct ChunkPlace {
    u32 at;          // this thread's row, of the first block
    int block;       // bytes of 64 rows
    int chunk, turn; // of 16 bytes, as the panel is swizzled
    int column;      // of the result
};

/// Two adjacent results of 16 rows and 16 columns: j & 1 lower rows, j & 2 right columns.
DEVICE Two two_results(const ACC* d, int j, const ChunkColumns& columns, int s,
                       Two other EPI_PARAMS) {
    const Columns& x = columns.of[s * 2 + j / 2];
    d += s * 8 * sums_of_result;
#if PAIRED
    d += j / 2 * 8 + j % 2 * 2;
    return epilogue_pair(d[0], d[1], d[4], d[5], x, other EPI_PASS);
#else
    return epilogue_pair(d[j * 2], d[j * 2 + 1], x, other EPI_PASS);
#endif
}
#if BYTES
/// Stores a warp's 16 rows of 16 columns, which begin at `at` for this thread, the lower 8 rows
/// `lower` bytes behind the others. Two adjacent lanes exchange pairs of columns, so that each has
/// four: even lanes of the left 8 columns, odd ones of the others. Both have read the operand that
/// results replace before either gets the other's.
DEVICE void store_bytes(const ACC* d, const ChunkColumns& columns, int s, u32 at, int lower,
                        int lane EPI_PARAMS) {
    SHARED(memory);
    bool odd = (lane & 1) != 0;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        u32 row = at + h * lower - smem_addr(memory);
        u32 full[2] = {};
        if (FULL)
#pragma unroll
            for (int i = 0; i < 2; i++)
                full[i] = *(const u16*)(memory + row + i * 8 + (lane & 3) * 2);
        u32 left = two_results(d, h, columns, s, full[0] EPI_PASS),
            right = two_results(d, h + 2, columns, s, full[1] EPI_PASS);
        u32 other = shfl_xor(odd ? left : right, 1);
        u32 to = row + (lane & 1) * 8 + (lane & 2) * 2;
        *(u32*)(memory + to) = odd ? other | right << 16 : left | other << 16;
    }
}
#endif
#if WORDS
/// The same of 32 bits: a thread has 8 adjacent bytes of a row, of the left 8 columns and of the
/// others.
DEVICE void store_words(const ACC* d, const ChunkColumns& columns, int s, const ChunkPlace& to,
                        int i, int lane EPI_PARAMS) {
    SHARED(memory);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        u32 at = to.at + i * to.block + (j & 1) * (to.block / 8) +
                 ((to.chunk + s * 4 + (j & 2)) ^ to.turn) * 16 + (lane & 1) * 8;
        Two* there = (Two*)(memory + (at - smem_addr(memory)));
        Two other = {};
        if (FULL)
            other = *there;
        *there = two_results(d, j, columns, s, other EPI_PASS);
    }
}
#endif
/// Stores a warp's 16 rows of block i in a chunk of columns.
DEVICE void store_rows(ACC* d, const ChunkColumns& columns, const ChunkPlace& to, int i,
                       const Place& place, float factor, int warp, int lane,
                       const Geometry& g EPI_PARAMS) {
    (void)place, (void)factor, (void)warp, (void)lane, (void)g;
#ifdef MERGED
    float upper = shfl(factor, i * 16 + (lane >> 2)),
          lower = shfl(factor, i * 16 + 8 + (lane >> 2));
#pragma unroll
    for (int e = 0; e < wide / 2; e++)
        d[e] *= (e & 2) == 0 ? upper : lower;
#endif
#if MOMENTS
    static_assert(wide == moment_chunk, "a chunk at a time");
    u32 rows[2][4]; // of pairs of columns
#endif
#if BYTES
#pragma unroll
    for (int s = 0; s < wide_results / 16; s++)
        store_bytes(d, columns, s, to.at + i * to.block + ((to.chunk + s) ^ to.turn) * 16,
                    to.block / 8, lane EPI_PASS);
#elif WORDS
#pragma unroll
    for (int s = 0; s < wide_results / 16; s++)
        store_words(d, columns, s, to, i, lane EPI_PASS);
#else
#pragma unroll
    for (int s = 0; s < wide_results / 16; s++) {
        u32 at = to.at + i * to.block + ((to.chunk + s * 2) ^ to.turn) * 16;
        u32 other[4] = {}, r[4];
        if (FULL)
            ldmatrix4(other, at);
#pragma unroll
        for (int j = 0; j < 4; j++)
            r[j] = two_results(d, j, columns, s, other[j] EPI_PASS);
        stmatrix4(at, r[0], r[1], r[2], r[3]);
#if MOMENTS
#pragma unroll
        for (int j = 0; j < 4; j++)
            rows[j & 1][s * 2 + j / 2] = r[j];
#endif
    }
#endif
#if MOMENTS
#pragma unroll
    for (int h = 0; h < 2; h++)
        send_moments(rows[h], place.row_of(i * 64 + warp * 16 + h * 8 + (lane >> 2)), to.column,
                     place.batch, lane, g EPI_PASS);
#endif
}

/// Stores a warp's 16 rows of each 64 of a tile. Lane i holds the `factor` of its row i; `use`
/// counts panels.
DEVICE void epilogue_of_tile(const Sums& sums, u32 memory, u32 ends, u32 use, const Place& place,
                             float factor, int warp, int lane, const Geometry& g EPI_PARAMS) {
    int n0 = (int)place.n0 / sums_of_result;
    // Rows 0..7 of 16, then the others, of 8 columns; the same of the next 8: as matrices come.
    constexpr bool matrices = sizeof(OUT) == 2;
    int row = warp * 16 + (matrices ? lane & 15 : lane >> 2), side = lane >> 4,
        turned = matrices ? lane & 7 : lane >> 2;
    if (!matrices)
        side = (lane & 3) * (int)sizeof(OUT) / 8; // where this thread's pair of columns lies
    int n = n0 + (lane & 3) * 2;
    // More would spill.
    constexpr bool early = sizeof(ChunkColumns) <= (wide == 16 ? 8 : MB * BN < 320 ? 64 : 32);
    ChunkColumns ahead;
    if (early)
        ahead.read(n, g EPI_PASS);
    constexpr int chunks_at_once = REPEATED > 1 ? chunks : 1;
#pragma unroll chunks_at_once
    for (int c = 0; c < chunks; c++) {
        int panel = c * wide_results / panel_columns, inside = c * wide_results % panel_columns;
        u32 q = use + (u32)panel, bar = ready_of(ends, q);
        ChunkColumns columns = ahead;
        if (!early)
            columns.read(n + c * wide_results, g EPI_PASS);
        else if (c + 1 < chunks)
            ahead.read(n + (c + 1) * wide_results, g EPI_PASS);
        if (inside == 0)
            mbar_wait(bar, q / buffers & 1);
        bool tail = TAIL && panel == panels - 1;
        int row_bytes = tail ? tail_bytes : 128;
        ChunkPlace to = {memory + q % buffers * panel_bytes + row * row_bytes, 64 * row_bytes,
                         inside * (int)sizeof(OUT) / 16 + side, tail ? 0 : turned,
                         n0 + c * wide_results};
#pragma unroll 1
        for (int first = 0; first < MB; first += rows_at_once) {
            ACC d[rows_at_once][wide / 2];
            pick(d, sums, (c * MB + first) / rows_at_once);
#pragma unroll
            for (int i = 0; i < rows_at_once; i++)
                store_rows(d[i], columns, to, first + i, place, factor, warp, lane, g EPI_PASS);
        }
        if (inside + wide_results == panel_columns || c == chunks - 1) {
            async_fence();
            sync_warp();
            if (lane == 0)
                mbar_arrive(bar + 8);
        }
    }
}

#ifdef MERGED
#define A_MOMENTS , float epsilon, const float *a_moments
#else
#define A_MOMENTS
#endif
#if FULL && TAIL
#define MORE_MAPS                                                                                  \
    , const __grid_constant__ TensorMap map_out_tail, const __grid_constant__ TensorMap map_x,     \
        const __grid_constant__ TensorMap map_x_tail
#elif TAIL
#define MORE_MAPS , const __grid_constant__ TensorMap map_out_tail
#elif FULL
#define MORE_MAPS , const __grid_constant__ TensorMap map_x
#else
#define MORE_MAPS
#endif
KERNEL void __launch_bounds__(consumers + 128, 1)
    gemm_wgmma_persistent(const __grid_constant__ TensorMap map_a,
                          const __grid_constant__ TensorMap map_b,
                          const __grid_constant__ TensorMap map_out MORE_MAPS, i32 b_constant,
                          i32 a_batched, i32 b_batched, i32 backwards A_MOMENTS CONV_PARAMS,
                          const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    u32 pipeline = smem_addr(memory), full = pipeline + bar_at, turns = full + 16 * ST,
        ends = turns + 16;
    int tid = threadIdx.x, group = tid >> 7, lane = tid & 31;
    if (tid == 0) {
        for (int i = 0; i < ST; i++) {
            mbar_init(full + 8 * i, 2);
            mbar_init(full + 8 * (ST + i), 4);
        }
        mbar_init(turns, 4);
        mbar_init(turns + 8, 4);
        for (int i = 0; i < 2 * buffers; i++) {
            mbar_init(ends + 16 * i, 1);
            mbar_init(ends + 16 * i + 8, 4);
        }
        mbar_init_fence();
    }
    sync();
    int all = all_steps(g, patch);
    if (group == 2) {
        regs_dec<load_registers>();
        Turn turn;
        int role = (tid - consumers) >> 5;
        if (lane != 0)
            return;
        if (role == 0) {
            prefetch_map(&map_a);
            grid_wait();
            Tiles tiles(0, g, patch);
            int bytes = bytes_of_a(g, patch);
#pragma unroll 1
            for (u32 t = tiles.first; t < tiles.end; t += gridDim.x) {
                Place at = place_of(t, backwards, g, patch);
                LoadA load(&map_a, at, 0, a_batched, patch);
                produce<slab_a>(load, bytes, pipeline, full, 0, all, turn);
            }
        } else if (role == 1) {
            prefetch_map(&map_b);
            if (!b_constant)
                grid_wait();
            Tiles tiles(0, g, patch);
#pragma unroll 1
            for (u32 t = tiles.first; t < tiles.end; t += gridDim.x) {
                Place at = place_of(t, backwards, g, patch);
                LoadB load(&map_b, at, 0, b_batched, patch);
                produce<slab_b>(load, slab_b, pipeline + slab_a, full, 0, all, turn);
            }
        } else {
            PanelMaps out{&map_out, &map_out}, x{nullptr, nullptr};
#if TAIL
            out.tail = &map_out_tail;
#endif
#if FULL
            x.whole = &map_x;
#endif
#if FULL && TAIL
            x.tail = &map_x_tail;
#endif
            grid_wait();
            int of = role - 2;
            send_panels(pipeline + panel_at + of * buffers * panel_bytes, ends + of * buffers * 16,
                        of, out, x, backwards, g, patch);
        }
        return;
    }
    regs_inc<multiply_registers>();
    int warp = (tid >> 5) & 3;
    u32 memory_of = pipeline + panel_at + group * buffers * panel_bytes,
        mine = ends + group * buffers * 16;
    Tiles tiles(group, g, patch);
    int i = 0; // of this warpgroup's tiles
#ifdef MERGED
    grid_wait();
#endif
#pragma unroll 1
    for (u32 t = tiles.first; t < tiles.end; t += tiles.step, i++) {
        float factor = 1.0f;
#ifdef MERGED
        int r = lane / 16 * 64 + warp * 16 + (lane & 15);
        factor = row_factor(a_moments, r < tile_m ? place_of(t, backwards, g, patch).row_of(r) : -1,
                            (int)g.k, epsilon);
#endif
        int before = (2 * i + group) * all; // steps of the block's tiles so far
        Turn turn;
        turn.stage = before % ST;
        turn.phase = (u32)(before / ST) & 1;
        if (i + group > 0)
            mbar_wait(turns + 8 * group, (u32)(i - 1 + group) & 1);
        Sums sums = Unset();
        accumulate<true>(sums, pipeline, full, 0, all, 0, lane, turn, turns + 8 * (1 - group));
        if (t + tiles.step >= tiles.end)
            end_main_loop();
        if (i == 0)
            grid_wait();
        epilogue_of_tile(sums, memory_of, mine, (u32)i * panels, place_of(t, backwards, g, patch),
                         factor, warp, lane, g EPI_PASS);
    }
}
