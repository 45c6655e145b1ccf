// SPDX-License-Identifier: Apache-2.0
// Persistent convolution by wgmma for windows without steps between them: a block keeps the weights
// of BN results in shared memory, and TMA fetches the inputs under a tile of 64 results once, its
// halo included, into one of SLOTS. A pixel of a slab of 64 channels is a line of 128 bytes, so a
// kernel position is the same memory from another line on. The swizzle goes by address, as TMA
// wrote it. STEPS products of 16 channels read a line; TMA fills those that are not full with
// zeros.
//
// A tile is a square of 8 x 8 results: 8 results of a row are 8 adjacent lines, and their rows are
// `width` lines apart. Or, with STRIP, it is whole rows of results, whose lines are adjacent
// together with those of their padding: the products of these are not stored.
//
// NC warpgroups have tiles in turn: one multiplies while others store, through panels of 64
// columns, of which some stay empty where the convolution has no more (BN 16 or 32). A panel is a
// warp's, two rows of a square, or with STRIP a warpgroup's. With FULL an operand of the epilogue
// has the shape of the result: TMA loads it into the panel beside the multiplication. Traffic: the
// input once and its halos from L2, the weights once for each block, the result once.
struct Halo {
    i32 across, down, tiles, columns;                     // tiles; of BN results
    i32 kernel_w, kernel_h, dilation_w, dilation_h;       // of windows
    i32 low_w, low_h;                                     // padding
    i32 rows, width, lines;                               // of a tile; of a slab
    i32 slabs, slab_bytes, panel_lines, results;          // of channels; ...; of all tiles
    i32 slot_at, panel_at, bar_at, w_constant, backwards; // in shared memory; ...
};
constexpr int panels = (BN + 63) / 64, panel_bytes = STRIP ? 64 * 128 : 16 * 128;

/// Where a tile begins.
struct Corner {
    int x, y, image;
    DEVICE Corner(int t, const Halo& h) {
        if (h.backwards)
            t = h.tiles - 1 - t;
        int row = t / h.across;
        x = (t - row * h.across) * 8;
        image = row / h.down;
        y = (row - image * h.down) * h.rows;
    }
};

struct Barriers {
    u32 weights;
    DEVICE u32 full(int slot) const { return weights + 8 + slot * 8; }
    DEVICE u32 empty(int slot) const { return full(SLOTS + slot); }
    DEVICE u32 turn(int group) const { return empty(SLOTS + group); }
    DEVICE u32 ready(int warp) const { return turn(NC + warp); }
    DEVICE void init() const {
        mbar_init(weights, 1);
        for (int i = 0; i < SLOTS; i++) {
            mbar_init(full(i), 1);
            mbar_init(empty(i), 4);
        }
        for (int i = 0; i < NC; i++)
            mbar_init(turn(i), 4);
        for (int i = 0; i < 4 * NC; i++)
            mbar_init(ready(i), 1);
        mbar_init_fence();
    }
};

/// A block makes BN results from `column` on of the tiles first, first + step, ...
struct Walk {
    int column, first, step;
    DEVICE Walk(const Halo& h) {
        int c = (int)blockIdx.x % h.columns;
        column = c * BN;
        first = (int)blockIdx.x / h.columns;
        step = (int)gridDim.x / h.columns;
    }
};

/// One thread loads the weights, then slot after slot.
DEVICE void load(u32 memory, Barriers bars, const Walk& walk, const TensorMap* map_x,
                 const TensorMap* map_w, const Halo& h) {
    prefetch_map(map_w);
    prefetch_map(map_x);
    if (!h.w_constant)
        grid_wait();
    int taps = h.kernel_w * h.kernel_h;
    mbar_expect(bars.weights, taps * h.slabs * BN * 128);
    u32 to = memory;
#pragma unroll 1
    for (int tap = 0; tap < taps; tap++)
#pragma unroll 1
        for (int s = 0; s < h.slabs; s++, to += BN * 128)
            tma_load4(to, map_w, s * 64, tap, walk.column, 0, bars.weights);
    grid_wait();
    int slot = 0, each = h.slab_bytes;
    u32 phase = 1; // all slots are empty
#pragma unroll 1
    for (int t = walk.first; t < h.tiles; t += walk.step) {
        Corner at(t, h);
        mbar_wait(bars.empty(slot), phase);
        mbar_expect(bars.full(slot), h.slabs * h.lines * 128);
        to = memory + h.slot_at + slot * h.slabs * each;
#pragma unroll 1
        for (int s = 0; s < h.slabs; s++, to += each)
            tma_load4(to, map_x, s * 64, at.x - h.low_w, at.y - h.low_h, at.image, bars.full(slot));
        if (++slot == SLOTS) {
            slot = 0;
            phase ^= 1;
        }
    }
}

/// The sums of a tile, from the weights at `weights` and the lines at `lines`.
DEVICE void multiply(float* sums, u32 weights, u32 lines, const Halo& h) {
    u64 a = wgmma_desc(lines);
    if (!STRIP) // lines between groups of 8 rows
        a += (u64)((h.width - 8) * 8) << 32;
    u64 b = wgmma_desc(weights);
    int each = h.slab_bytes / 16, right = h.dilation_w * 8, steps = h.kernel_w * h.slabs;
#pragma unroll 1
    for (int y = 0, started = 0; y < h.kernel_h; y++, a += h.dilation_h * h.width * 8) {
        u64 column = a, at = a;
#pragma unroll 1
        for (int i = 0, s = 0; i < steps; i++) {
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < STEPS; k++)
                wgmma<BN>(sums, at + k * 2, b + k * 2, started | k);
            wgmma_commit();
            started = 1;
            b += BN * 8;
            at += each;
            if (++s == h.slabs) { // the next kernel position
                s = 0;
                column += right;
                at = column;
            }
        }
    }
}

/// All threads that share panels.
DEVICE void join(int group) {
    if (STRIP)
        sync_some(1 + group, 128);
    else
        sync_warp();
}
#if FULL
#define FULL_MAP , const __grid_constant__ TensorMap map_full
#else
#define FULL_MAP
#endif
KERNEL void __launch_bounds__(NC * 128 + 32, 1)
    conv_halo(const __grid_constant__ TensorMap map_x, const __grid_constant__ TensorMap map_w,
              const __grid_constant__ TensorMap map_out FULL_MAP,
              const __grid_constant__ Halo h EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    u32 base = smem_addr(memory);
    Barriers bars = {base + (u32)h.bar_at};
    int tid = threadIdx.x, group = tid >> 7, lane = tid & 31;
    if (tid == 0)
        bars.init();
    sync();
    Walk walk(h);
    if (group == NC) {
        if (lane == 0)
            load(base, bars, walk, &map_x, &map_w, h);
        return;
    }
    int warp = tid >> 5, y = STRIP ? 0 : (warp & 3) * 2;
    int owner = STRIP ? group : warp; // of panels
    bool leads = STRIP ? (tid & 127) == 0 : lane == 0;
    u32 panel = base + h.panel_at + owner * panels * panel_bytes;
    grid_wait();
    Columns columns[BN / 8];
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
        int n = walk.column + j * 8 + (lane & 3) * 2;
        if (n < h.results)
            read_columns(columns[j], n EPI_PASS);
    }
    mbar_wait(bars.weights, 0);
    u32 round = 0; // of this warpgroup's tiles
#pragma unroll 1
    for (int t = walk.first + group * walk.step; t < h.tiles; t += NC * walk.step, round++) {
        int i = (int)round * NC + group, slot = i % SLOTS; // of the block's tiles
        Corner at(t, h);
        if (leads) {
            bulk_wait_read<0>(); // the panels are free
#if FULL
            mbar_expect(bars.ready(owner), panels * h.panel_lines * 128);
#pragma unroll 1
            for (int p = 0; p < panels; p++)
                tma_load4(panel + p * panel_bytes, &map_full, walk.column + p * 64, at.x, at.y + y,
                          at.image, bars.ready(owner));
#endif
        }
        // The tile before has been issued; so its slot, and all that came before, were full.
        if (i > 0)
            mbar_wait(bars.turn(group), (round - (group == 0 ? 1 : 0)) & 1);
        mbar_wait(bars.full(slot), (u32)(i / SLOTS) & 1);
        float sums[BN / 2];
        multiply(sums, base, base + h.slot_at + slot * h.slabs * h.slab_bytes, h);
        if (lane == 0)
            mbar_arrive(bars.turn(group + 1 == NC ? 0 : group + 1));
        if (t + NC * walk.step >= h.tiles)
            end_main_loop();
        wgmma_wait<0>();
        if (lane == 0)
            mbar_arrive(bars.empty(slot));
        if (FULL)
            mbar_wait(bars.ready(owner), round & 1);
        else
            join(group);
        store_rows<panel_bytes>(sums, panel + (STRIP ? (warp & 3) * 16 * 128 : 0), columns,
                                lane EPI_PASS);
        async_fence();
        join(group);
        if (leads) {
#pragma unroll 1
            for (int p = 0; p < panels; p++)
                tma_store4(&map_out, walk.column + p * 64, at.x, at.y + y, at.image,
                           panel + p * panel_bytes);
            bulk_commit();
        }
    }
    if (leads)
        bulk_wait_all();
}
