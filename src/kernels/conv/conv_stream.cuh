// SPDX-License-Identifier: Apache-2.0
// Persistent convolution by wgmma for windows without steps between them, over two axes of images
// or three of one volume. As in conv_halo, TMA fetches the inputs under a tile once for all kernel
// positions of a plane, their halo included, a pixel of a slab of 64 channels is a line of 128
// bytes, and a kernel position is the same memory from another line on. But all weights of a window
// over three axes do not fit into shared memory: they come through a ring of W_SLOTS, each with
// those of BN results at one position. So tiles are large: two warpgroups, side by side, make PARTS
// squares of 8 x 8 results each, one below the other, and share what is loaded.
//
// A step is a plane of the window and a slab; its inputs lie in one of SLOTS. Those of the next
// step are on their way meanwhile, also from tile to tile. Panels are as in conv_halo's squares.
// Traffic: the input once for each plane of the window, from L2 but for the first, with halos; the
// weights once for each tile, from L2; the result once.
struct Stream {
    i32 across, down, tiles, columns; // tiles; of BN results
    i32 kernel_w, kernel_h, kernel_d; // of windows
    i32 dilation_w, dilation_h, dilation_d;
    i32 low_w, low_h, low_d;                           // padding
    i32 width, lines, slabs, slot_bytes, results;      // of a tile; ...; of all tiles
    i32 w_at, panel_at, bar_at, w_constant, backwards; // in shared memory; ...
};
constexpr int panels = (BN + 63) / 64, panel_bytes = 16 * 128, w_bytes = BN * 128;

/// Where a tile begins; a plane is an image or a position along the first of three axes.
struct Corner {
    int x, y, plane;
    DEVICE Corner(int t, const Stream& s) {
        if (s.backwards)
            t = s.tiles - 1 - t;
        int row = t / s.across;
        x = (t - row * s.across) * 16;
        plane = row / s.down;
        y = (row - plane * s.down) * (8 * PARTS);
    }
};

struct Barriers {
    u32 first;
    DEVICE u32 full(int slot) const { return first + slot * 8; }
    DEVICE u32 empty(int slot) const { return full(SLOTS + slot); }
    DEVICE u32 w_full(int slot) const { return empty(SLOTS + slot); }
    DEVICE u32 w_empty(int slot) const { return w_full(W_SLOTS + slot); }
    DEVICE u32 ready(int warp) const { return w_empty(W_SLOTS + warp); }
    DEVICE void init() const {
        for (int i = 0; i < SLOTS; i++) {
            mbar_init(full(i), 1);
            mbar_init(empty(i), 8);
        }
        for (int i = 0; i < W_SLOTS; i++) {
            mbar_init(w_full(i), 1);
            mbar_init(w_empty(i), 8);
        }
        for (int i = 0; i < 8; i++)
            mbar_init(ready(i), 1);
        mbar_init_fence();
    }
};

/// A ring of slots: the next one, and the parity of its round.
template <int COUNT>
struct Ring {
    int slot = 0;
    u32 parity;
    DEVICE explicit Ring(u32 first) : parity(first) {}
    DEVICE void next() {
        if (++slot == COUNT) {
            slot = 0;
            parity ^= 1;
        }
    }
};

/// A block makes BN results from `column` on of the tiles first, first + step, ...
struct Walk {
    int column, first, step;
    DEVICE Walk(const Stream& s) {
        int c = (int)blockIdx.x % s.columns;
        column = c * BN;
        first = (int)blockIdx.x / s.columns;
        step = (int)gridDim.x / s.columns;
    }
    DEVICE int count(const Stream& s) const {
        return first < s.tiles ? (s.tiles - 1 - first) / step + 1 : 0;
    }
};

/// One thread loads inputs, a step ahead, and weights, W_SLOTS positions ahead.
struct Loader {
    u32 memory;
    Barriers bars;
    const Walk& walk;
    const Stream& s;
    const TensorMap *map_x, *map_w;
    Ring<SLOTS> inputs{1}; // all slots are empty
    Ring<W_SLOTS> weights{1};
    int tile, plane = 0, slab = 0;          // of the next inputs
    int w_plane = 0, w_slab = 0, w_tap = 0; // of the next weights
    i64 w_left;
    DEVICE void load_inputs() {
        if (tile >= s.tiles)
            return;
        const Corner at(tile, s);
        mbar_wait(bars.empty(inputs.slot), inputs.parity);
        mbar_expect(bars.full(inputs.slot), s.lines * 128);
        tma_load4(memory + inputs.slot * s.slot_bytes, map_x, slab * 64, at.x - s.low_w,
                  at.y - s.low_h, at.plane - s.low_d + plane * s.dilation_d,
                  bars.full(inputs.slot));
        inputs.next();
        if (++slab == s.slabs) {
            slab = 0;
            if (++plane == s.kernel_d) {
                plane = 0;
                tile += walk.step;
            }
        }
    }
    DEVICE void load_weights(int taps) {
        if (w_left == 0)
            return;
        w_left--;
        mbar_wait(bars.w_empty(weights.slot), weights.parity);
        mbar_expect(bars.w_full(weights.slot), w_bytes);
        tma_load4(memory + s.w_at + weights.slot * w_bytes, map_w, w_slab * 64,
                  w_plane * taps + w_tap, walk.column, 0, bars.w_full(weights.slot));
        weights.next();
        if (++w_tap == taps) {
            w_tap = 0;
            if (++w_slab == s.slabs) {
                w_slab = 0;
                if (++w_plane == s.kernel_d)
                    w_plane = 0; // of the next tile
            }
        }
    }
};
DEVICE void load(u32 memory, Barriers bars, const Walk& walk, const TensorMap* map_x,
                 const TensorMap* map_w, const Stream& s) {
    prefetch_map(map_w);
    prefetch_map(map_x);
    const int taps = s.kernel_w * s.kernel_h, steps = walk.count(s) * s.kernel_d * s.slabs;
    Loader loader = {memory, bars, walk, s, map_x, map_w};
    loader.tile = walk.first;
    loader.w_left = (i64)steps * taps;
    if (!s.w_constant)
        grid_wait();
#pragma unroll 1
    for (int i = 0; i < W_SLOTS; i++)
        loader.load_weights(taps);
    grid_wait();
    loader.load_inputs();
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
        loader.load_inputs();
#pragma unroll 1
        for (int tap = 0; tap < taps; tap++)
            loader.load_weights(taps);
    }
}

/// The slots that a warpgroup reads, and those whose products are not known to be done.
struct Reader {
    Ring<SLOTS> inputs{0};
    Ring<W_SLOTS> weights{0};
    int read = -1, w_read = -1;
    DEVICE void release(Barriers bars, int lane) {
        if (lane == 0 && read >= 0)
            mbar_arrive(bars.empty(read));
        if (lane == 0 && w_read >= 0)
            mbar_arrive(bars.w_empty(w_read));
        read = w_read = -1;
    }
};

/// The sums of a warpgroup's squares, of which the first begins at `square` bytes of a slot.
DEVICE void multiply(float (&sums)[PARTS][BN / 2], u32 memory, u32 square, Barriers bars,
                     Reader& reader, int lane, const Stream& s) {
    const int steps = s.kernel_d * s.slabs;
    int started = 0;
#pragma unroll 1
    for (int i = 0; i < steps; i++) {
        mbar_wait(bars.full(reader.inputs.slot), reader.inputs.parity);
        u64 row = wgmma_desc(memory + reader.inputs.slot * s.slot_bytes + square);
        row += (u64)((s.width - 8) * 8) << 32; // lines between groups of 8 rows
#pragma unroll 1
        for (int y = 0; y < s.kernel_h; y++, row += s.dilation_h * s.width * 8) {
            u64 at = row;
#pragma unroll 1
            for (int x = 0; x < s.kernel_w; x++, at += s.dilation_w * 8) {
                mbar_wait(bars.w_full(reader.weights.slot), reader.weights.parity);
                const u64 b = wgmma_desc(memory + s.w_at + reader.weights.slot * w_bytes);
                wgmma_fence();
#pragma unroll
                for (int p = 0; p < PARTS; p++)
#pragma unroll
                    for (int k = 0; k < STEPS; k++)
                        wgmma<BN>(sums[p], at + p * s.width * 64 + k * 2, b + k * 2, started | k);
                wgmma_commit();
                started = 1;
                wgmma_wait<1>();
                reader.release(bars, lane);
                reader.w_read = reader.weights.slot;
                reader.weights.next();
            }
        }
        reader.read = reader.inputs.slot;
        reader.inputs.next();
    }
}

#if FULL
#define FULL_MAP , const __grid_constant__ TensorMap map_full
#else
#define FULL_MAP
#endif
KERNEL void __launch_bounds__(2 * 128 + 32, 1)
    conv_stream(const __grid_constant__ TensorMap map_x, const __grid_constant__ TensorMap map_w,
                const __grid_constant__ TensorMap map_out FULL_MAP,
                const __grid_constant__ Stream s EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    const u32 base = smem_addr(memory);
    const Barriers bars = {base + (u32)s.bar_at};
    const int tid = threadIdx.x, group = tid >> 7, warp = tid >> 5, lane = tid & 31;
    if (tid == 0)
        bars.init();
    sync();
    const Walk walk(s);
    if (group == 2) {
        if (lane == 0)
            load(base, bars, walk, &map_x, &map_w, s);
        return;
    }
    const u32 panel = base + s.panel_at + warp * PARTS * panels * panel_bytes;
    const int right = group * 8, below = (warp & 3) * 2; // of the tile's corner
    grid_wait();
    Columns columns[BN / 8];
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
        int n = walk.column + j * 8 + (lane & 3) * 2;
        if (n < s.results)
            read_columns(columns[j], n EPI_PASS);
    }
    Reader reader;
    u32 round = 0;
#pragma unroll 1
    for (int t = walk.first; t < s.tiles; t += walk.step, round++) {
        const Corner at(t, s);
        if (lane == 0) {
            bulk_wait_read<0>(); // the panels are free
#if FULL
            mbar_expect(bars.ready(warp), PARTS * panels * panel_bytes);
#pragma unroll 1
            for (int i = 0; i < PARTS * panels; i++)
                tma_load4(panel + i * panel_bytes, &map_full, walk.column + i % panels * 64,
                          at.x + right, at.y + i / panels * 8 + below, at.plane, bars.ready(warp));
#endif
        }
        float sums[PARTS][BN / 2];
        multiply(sums, base, right * 128, bars, reader, lane, s);
        if (t + walk.step >= s.tiles)
            end_main_loop();
        wgmma_wait<0>();
        reader.release(bars, lane);
        if (FULL)
            mbar_wait(bars.ready(warp), round & 1);
        else
            sync_warp();
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            store_rows<panel_bytes>(sums[p], panel + p * panels * panel_bytes, columns,
                                    lane EPI_PASS);
        async_fence();
        sync_warp();
        if (lane == 0) {
#pragma unroll 1
            for (int i = 0; i < PARTS * panels; i++)
                tma_store4(&map_out, walk.column + i % panels * 64, at.x + right,
                           at.y + i / panels * 8 + below, at.plane, panel + i * panel_bytes);
            bulk_commit();
        }
    }
    if (lane == 0)
        bulk_wait_all();
}
