// SPDX-License-Identifier: Apache-2.0
// Contraction by wgmma, a tile of 64 * MB * NC x BN per block, fed by TMA (9.0). The
// loading threads are a warpgroup, in which one thread loads A and one B; or, where RESIDENT is not
// 0, a warp, in which one thread loads both: it takes few registers from the others, so that
// RESIDENT blocks share an SM, one storing its tile while another multiplies. A B that is constant
// is fetched before the kernels before this one have finished. `splits` blocks of a cluster share a
// tile and sum in a fixed order. CENTRED: the sums are divided by the deviation of their row of A
// (the root of its variance plus `epsilon`), of which a block has the whole depth. MERGED: the same
// by the moments of A's rows, which another kernel has left; what they give lies at byte
// `factors_at` of shared memory. RESIDUAL: rows that the epilogue reads as an operand are
// normalised, by their moments (with EARLY). The finished tile lies at byte `tile_at`, which is 0,
// in the place of the pipeline stages, or behind the barriers, where it can be received while the
// stages are in use. EARLY: the epilogue's operands are read before the main loop.
constexpr int tile_bytes = tile_m * tile_pitch * 4, depth = 4;
constexpr int end_bytes = tile_bytes + (EARLY ? 0 : depth * 40 * consumers); // of two operands
constexpr int bar_at = ST * stage_bytes > end_bytes ? ST* stage_bytes : end_bytes;
#if EARLY // the slots of a cluster's blocks fit, rounding included
static_assert(ST * stage_bytes >= tile_bytes + 7 * tile_pitch * 4, "few stages");
#endif

#if defined(MERGED) || defined(RESIDUAL)
#define LEFT_MOMENTS , const float *left_moments, i32 factors_at
#ifdef MERGED
#define MOMENT_ROW g.k
#else
#define MOMENT_ROW g.n
#endif
#else
#define LEFT_MOMENTS
#endif

#if RESIDENT
/// One thread loads both operands; B goes first where it is constant.
DEVICE void produce_both(LoadA& load_a, LoadB& load_b, int bytes_a, u32 pipeline, u32 full,
                         int begin, int end, bool b_constant) {
    int first = begin;
#pragma unroll 1
    for (int pass = b_constant ? 0 : 1; pass < 2; pass++) {
        int stage = 0, last = pass == 0 && begin + ST < end ? begin + ST : end;
        u32 phase = 1;
        if (pass == 1)
            grid_wait();
#pragma unroll 1
        for (int k = begin; k < last; k++) {
            u32 bar = full + 8 * stage, at = pipeline + stage * stage_bytes;
            mbar_wait(full + 8 * (ST + stage), phase);
            if (pass == 0 || k >= first) {
                mbar_expect(bar, K_BLOCKS * slab_b);
#pragma unroll
                for (int d = 0; d < K_BLOCKS; d++)
                    load_b(at + K_BLOCKS * slab_a + d * slab_b, k * K_BLOCKS + d, bar);
            }
            if (pass == 1) {
                mbar_expect(bar, K_BLOCKS * bytes_a);
#pragma unroll
                for (int d = 0; d < K_BLOCKS; d++)
                    load_a(at + d * slab_a, k * K_BLOCKS + d, bar);
            }
            if (++stage == ST) {
                stage = 0;
                phase ^= 1;
            }
        }
        first = last;
    }
}
#endif

DEVICE void stage_tile(ACC* tile, const Sums& sums, int row, int lane) {
    ACC* mine = tile + (row + (lane >> 2)) * tile_pitch + (lane & 3) * 2;
#pragma unroll
    for (int i = 0; i < MB; i++)
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            const ACC* d = sums.d[i] + j * 4;
            Pack<ACC, 2> lo = {{d[0], d[1]}}, hi = {{d[2], d[3]}};
            *(Pack<ACC, 2>*)(mine + i * 64 * tile_pitch + j * 8) = lo;
            *(Pack<ACC, 2>*)(mine + (i * 64 + 8) * tile_pitch + j * 8) = hi;
        }
}

KERNEL void __launch_bounds__(consumers + (RESIDENT ? 32 : 128), BLOCKS)
    gemm_wgmma(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
               OUT* __restrict__ out, i32 splits, i32 b_constant, i32 a_batched, i32 b_batched,
               i32 backwards, float epsilon, i32 tile_at LEFT_MOMENTS CONV_PARAMS,
               const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    u32 pipeline = smem_addr(memory), full = pipeline + bar_at;
    int tid = threadIdx.x, group = tid >> 7;
    if (tid == 0) {
        for (int i = 0; i < ST; i++) {
            mbar_init(full + 8 * i, 2);
            mbar_init(full + 8 * (ST + i), NC * 4);
        }
#if EARLY
        mbar_init(full + 16 * ST, 1);
#endif
        mbar_init_fence();
    }
    sync();
#if EARLY
    if (splits > 1 && tile_at > 0)
        cluster_arrive_relaxed(); // this block can be sent sums
#endif
    u32 t = blockIdx.x / splits;
    int split = blockIdx.x - t * splits;
    Place at = place_of(t, backwards, g, patch);
    int all = all_steps(g, patch);
    int begin = (int)((i64)all * split / splits), end = (int)((i64)all * (split + 1) / splits);
    if (group == NC) {
        LoadA load_a(&map_a, at, begin, a_batched, patch);
        LoadB load_b(&map_b, at, begin, b_batched, patch);
        int bytes_a = bytes_of_a(g, patch);
#if RESIDENT
        if (tid == consumers) {
            prefetch_map(&map_a);
            prefetch_map(&map_b);
            produce_both(load_a, load_b, bytes_a, pipeline, full, begin, end, b_constant != 0);
        }
#else
        if (NC == 2)
            regs_dec<40>();
        Turn turn;
        if (tid == consumers) {
            prefetch_map(&map_a);
            grid_wait();
            produce<slab_a>(load_a, bytes_a, pipeline, full, begin, end, turn);
        } else if (tid == consumers + 32) {
            prefetch_map(&map_b);
            if (!b_constant)
                grid_wait();
            produce<slab_b>(load_b, slab_b, pipeline + K_BLOCKS * slab_a, full, begin, end, turn);
        }
#if defined(MERGED) || defined(RESIDUAL)
        else if (tid >= consumers + 64) {
            grid_wait();
            merge_rows((RowStatistics*)(memory + factors_at), left_moments, tid - consumers - 64,
                       at.row_of, (int)MOMENT_ROW, epsilon);
        }
#endif
#endif
        sync_warp();
        if (splits > 1) {
#if EARLY
            if (tile_at == 0)
                cluster_arrive();
            cluster_wait();
#else
            cluster_sync();
            cluster_sync();
#endif
        }
        return;
    }
#if !RESIDENT
    if (NC == 2)
        regs_inc<232>();
#endif
    int lane = tid & 31, warp = (tid >> 5) & 3;
    int row = group * (64 * MB) + warp * 16; // the warp's first
#if EARLY
    Share own(stored_rows(at, g, patch), splits, split);
    EarlyStore store(splits > 1 ? ThreadRows::of_block(tid, own.first, own.count)
                                : ThreadRows::of_warp(tid >> 5, lane),
                     at.row_of, at.batch, at.n0, g);
    if (tid < across && store.rows.count > 0)
        prefetch_extras(store.at[0] EPI_PASS); // vectors along the columns are cold
    u32 sent = full + 16 * ST;
    Sender send(own, pipeline + tile_at, sent, split, row, lane);
    if (splits > 1) {
        if (tid == 0)
            mbar_expect(sent, splits * own.count * BN * 4);
        if (tile_at > 0)
            cluster_wait(); // the others can be sent sums
    }
    grid_wait();
    EPI_OPAQUE
    store.read(g EPI_PASS);
#endif
    Sums sums;
#ifdef CENTRED
    RowDeviations deviations(memory, warp, lane, (int)g.k);
    accumulate<false>(sums, pipeline, full, begin, end, group * (MB * 8192), lane, Turn(), 0,
                      deviations);
#else
    (void)epsilon;
    accumulate<false>(sums, pipeline, full, begin, end, group * (MB * 8192), lane, Turn(), 0);
#endif
    end_main_loop();
#if !EARLY
    grid_wait();
#endif
#ifdef CENTRED
    deviations.divide(sums, epsilon, lane);
#endif
#ifdef MERGED
    scale_rows(sums, (const RowStatistics*)(memory + factors_at), row, lane);
#endif
#ifdef RESIDUAL
    store.norms = (const RowStatistics*)(memory + factors_at);
    sync_some(2, consumers + merging); // they are there
#endif
    ACC* tile = (ACC*)(memory + tile_at);
#if EARLY
    if (splits > 1) {
        if (tile_at == 0)
            cluster_sync(); // the stages of all blocks are free
        send(sums, lane);
        mbar_wait_cluster(sent, 0);
    } else {
        if (tile_at == 0)
            sync_some(1, consumers); // the stages are free
        stage_tile(tile, sums, row, lane);
        sync_warp();
    }
    FromSlots fetch = {tile, own.first, splits, own.share * tile_pitch};
    store(fetch, g, out EPI_PASS);
#else
    sync_some(1, consumers); // the stages are free
    stage_tile(tile, sums, row, lane);
    int from = tile_m * split / splits, count = tile_m * (split + 1) / splits - from;
    if (splits > 1) {
        cluster_sync();
        cluster_sum<4>((u8*)tile, splits, from, count, tid, consumers);
        cluster_sync();
    }
    sync_some(1, consumers);
    FromTile fetch = {tile};
#if STAGED
    store_staged<BN, depth>(fetch, at.row_of, memory + tile_bytes, tid, consumers, from, count,
                            at.batch, at.n0, g, out EPI_PASS);
#else
    store_tile(fetch, at.row_of, tid, consumers, from, count, at.batch, at.n0, g, out EPI_PASS);
#endif
#endif
}
