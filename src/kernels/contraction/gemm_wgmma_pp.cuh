// SPDX-License-Identifier: Apache-2.0
// Persistent contraction by wgmma: a block per SM loops over tiles of 64 * MB x BN with two
// alternating warpgroups. While one stores its tile, the other multiplies; two threads of the third
// load continuously across tiles. Each warp stages its 16 rows of the tile in shared memory of its
// own, `wide` columns at a time. Only for VEC == 8.
constexpr int wide = BN % 64 == 0 ? 64 : BN % 48 == 0 ? 48 : 32;
static_assert(NC == 2 && BN % wide == 0 && K_BLOCKS == 1, "two warpgroups, whole panels");
constexpr int panel_pitch = wide + 8;
constexpr int panel_at = ST * stage_bytes;
constexpr int depth = 2, room_bytes = depth * 40 * 32; // of a warp, for two operands
constexpr int room_at = panel_at + 8 * 16 * panel_pitch * 4, bar_at = room_at + 8 * room_bytes;

/// The sums of part i * (BN / wide) + c: rows of block i, columns of panel c.
DEVICE void stage_panel(ACC* panel, const Sums& sums, int part, int lane) {
    ACC* mine = panel + (lane >> 2) * panel_pitch + (lane & 3) * 2;
#pragma unroll
    for (int i = 0; i < MB; i++)
#pragma unroll
        for (int c = 0; c < BN / wide; c++)
            if (part == i * (BN / wide) + c) {
#pragma unroll
                for (int j = 0; j < wide / 8; j++) {
                    const ACC* d = sums.d[i] + c * (wide / 2) + j * 4;
                    Pack<ACC, 2> lo = {{d[0], d[1]}}, hi = {{d[2], d[3]}};
                    *(Pack<ACC, 2>*)(mine + j * 8) = lo;
                    *(Pack<ACC, 2>*)(mine + 8 * panel_pitch + j * 8) = hi;
                }
            }
}

DEVICE void store_panels(const Sums& sums, ACC* panel, u8* room, const Place& at, int warp,
                         int lane, const Geometry& g, OUT* out EPI_PARAMS) {
    (void)room;
#pragma unroll 1
    for (int part = 0; part < MB * (BN / wide); part++) {
        stage_panel(panel, sums, part, lane);
        sync_warp();
        int first = part / (BN / wide) * 64 + warp * 16;
        // The panel's row 0 is the tile's row `first`.
        FromPitch<panel_pitch> fetch = {panel - first * panel_pitch};
        i64 n0 = at.n0 + part % (BN / wide) * wide;
#if STAGED
        store_staged<wide, depth>(fetch, at.row_of, room, lane, 32, first, 16, at.batch, n0, g,
                                  out EPI_PASS);
#else
        store_tile<wide>(fetch, at.row_of, lane, 32, first, 16, at.batch, n0, g, out EPI_PASS);
#endif
        sync_warp();
    }
}

KERNEL void __launch_bounds__(384, 1)
    gemm_wgmma_pp(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                  OUT* __restrict__ out, i32 b_constant, i32 a_batched, i32 b_batched,
                  i32 backwards CONV_PARAMS, const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    u32 pipeline = smem_addr(memory), full = pipeline + bar_at, turns = full + 16 * ST;
    int tid = threadIdx.x, group = tid >> 7, lane = tid & 31;
    if (tid == 0) {
        for (int i = 0; i < ST; i++) {
            mbar_init(full + 8 * i, 2);
            mbar_init(full + 8 * (ST + i), 4);
        }
        mbar_init(turns, 4);
        mbar_init(turns + 8, 4);
        mbar_init_fence();
    }
    sync();
    u32 tiles = row_tiles(g, patch) * column_tiles(g) * (u32)g.batches;
    int all = all_steps(g, patch);
    if (group == 2) {
        regs_dec<40>();
        Turn turn;
        if (tid == consumers) {
            prefetch_map(&map_a);
            grid_wait();
            int bytes = bytes_of_a(g, patch);
#pragma unroll 1
            for (u32 t = blockIdx.x; t < tiles; t += gridDim.x) {
                Place at = place_of(t, backwards, g, patch);
                LoadA load(&map_a, at, 0, a_batched, patch);
                produce<slab_a>(load, bytes, pipeline, full, 0, all, turn);
            }
        } else if (tid == consumers + 32) {
            prefetch_map(&map_b);
            if (!b_constant)
                grid_wait();
#pragma unroll 1
            for (u32 t = blockIdx.x; t < tiles; t += gridDim.x) {
                Place at = place_of(t, backwards, g, patch);
                LoadB load(&map_b, at, 0, b_batched, patch);
                produce<slab_b>(load, slab_b, pipeline + slab_a, full, 0, all, turn);
            }
        }
        return;
    }
    regs_inc<232>();
    int warp = (tid >> 5) & 3;
    ACC* panel = (ACC*)(memory + panel_at) + (group * 4 + warp) * (16 * panel_pitch);
    u8* room = memory + room_at + (group * 4 + warp) * room_bytes;
    int i = 0; // of this warpgroup's tiles
#pragma unroll 1
    for (u32 t = blockIdx.x + group * gridDim.x; t < tiles; t += 2 * gridDim.x, i++) {
        int before = (2 * i + group) * all; // steps of the block's tiles so far
        Turn turn;
        turn.stage = before % ST;
        turn.phase = (u32)(before / ST) & 1;
        if (i + group > 0)
            mbar_wait(turns + 8 * group, (u32)(i - 1 + group) & 1);
        Sums sums = Unset();
        accumulate<true>(sums, pipeline, full, 0, all, 0, lane, turn, turns + 8 * (1 - group));
        if (t + 2 * gridDim.x >= tiles)
            end_main_loop();
        if (i == 0)
            grid_wait();
        store_panels(sums, panel, room, place_of(t, backwards, g, patch), warp, lane, g,
                     out EPI_PASS);
    }
}
