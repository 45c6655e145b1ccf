// SPDX-License-Identifier: Apache-2.0
// Loads, products and stores of attention_wgmma.cuh for f32, multiplied as TF32. Such products take
// operands whose depth is innermost in shared memory: four warps turn each tile of values, so that
// a head's element has its keys adjacent. The even ones among 8 keys come first, so that a thread
// multiplies them by the weights that it has.
constexpr int loading_warps = 4;
/// Barriers of the tiles of values that are still to be turned, behind those of the pipeline.
DEVICE u32 raw_bar(u32 bars, int step) {
    return bars + 16 * ST + 8 * (step & 1);
}
DEVICE void start_loading(u32 bars) {
    mbar_init(raw_bar(bars, 0), 1);
    mbar_init(raw_bar(bars, 1), 1);
}
/// A warp turns 8 keys of 32 columns at a time.
DEVICE void turn_values(u8* to, const u8* from, int warp, int lane) {
    constexpr int groups = BN / 8, parts = (W + 31) / 32 * groups;
#pragma unroll 2
    for (int i = warp; i < parts; i += loading_warps) {
        int g = i % groups, d = i / groups * 32 + lane;
        if (d >= W)
            continue;
        u32 v[8];
#pragma unroll
        for (int k = 0; k < 8; k++)
            v[k] = *(const u32*)(from + (d >> 5) * slab + (g * 8 + k) * 128 +
                                 (((d >> 2) ^ k) & 7) * 16 + (d & 3) * 4);
        u8* line = to + (g >> 2) * (W * 128) + d * 128;
        int chunk = (g & 3) * 2;
        *(uint4*)(line + ((chunk ^ d) & 7) * 16) = make_uint4(v[0], v[2], v[4], v[6]);
        *(uint4*)(line + (((chunk + 1) ^ d) & 7) * 16) = make_uint4(v[1], v[3], v[5], v[7]);
    }
}
/// The last warps load a tile's keys and values.
DEVICE void load_tiles(const TensorMap* map_k, const TensorMap* map_v, const M* mask, u8* memory,
                       const Attn& a, const Tile& t, Place& p) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3, first = t.first, steps = t.steps();
    u32 base = smem_addr(memory), bars = base + bars_at;
    bool leads = warp == 0 && lane == 0;
    if (leads)
        for (int n = 0; n < 2 && n < steps; n++)
            load_tile(base + raw_at + n * tile_bytes, map_v, true, first + n * BN, t,
                      raw_bar(bars, n));
#if STAGED
    mask += t.z * a.m[0] + (i64)t.g * a.share * a.m[1];
    M y[lane_keys];
    read_mask(y, mask, a, first);
#endif
#pragma unroll 1
    for (int i = 0; i < 2 * steps; i++, p.next()) {
        bool values = brings_values(i, steps);
        int step = step_of(i, values), key = first + step * BN;
        u32 full = bars + 8 * p.slot;
        if (values) {
            mbar_wait(raw_bar(bars, step), step >> 1 & 1);
            mbar_wait(full + 8 * ST, p.phase);
            int raw = raw_at + (step & 1) * tile_bytes;
            turn_values(memory + pipeline_at + p.slot * slot_bytes, memory + raw, warp, lane);
            async_fence();
            sync_some(1 + WG, 32 * loading_warps);
            if (leads) {
                mbar_arrive(full);
                if (step + 2 < steps)
                    load_tile(base + raw, map_v, true, key + 2 * BN, t, raw_bar(bars, step));
            }
        } else if (warp == 0) {
            mbar_wait(full + 8 * ST, p.phase);
#if STAGED
            stage_mask((float*)(memory + bias_at) + p.slot * BN, y, key, t.last);
            read_mask(y, mask, a, key + BN);
            sync_warp();
#endif
            if (lane == 0)
                load_tile(base + pipeline_at + p.slot * slot_bytes, map_k, false, key, t, full);
        }
    }
}

/// A warpgroup's rows of q, as products read them: rounded where they lie, by those that loaded
/// them.
struct Queries {
    u32 at;
    DEVICE void read(u8* rows) {
        int t = threadIdx.x & 127, r = t >> 1;
#pragma unroll
        for (int j = 0; j < D / 8; j++) {
            Pack<u32, 4>* x = (Pack<u32, 4>*)(rows + q_chunk(r, 2 * j + (t & 1)));
            Pack<u32, 4> y = *x;
#pragma unroll
            for (int i = 0; i < 4; i++)
                y.v[i] = cvt_tf32(__uint_as_float(y.v[i]));
            *x = y;
        }
        async_fence();
        sync_some(1 + (threadIdx.x >> 7), 128);
        at = smem_addr(rows);
    }
};
constexpr int product_keys = 8; // of an instruction
template <int N>
DEVICE void add_values(float* o, const u32 (*p)[4], u32 values) {
    u64 y = wgmma_desc(values);
#pragma unroll
    for (int j = 0; j < N / 8; j++)
        wgmma_ra<W>(o, p[j], y + (j / 4 * (W * 128) + j % 4 * 32) / 16, 1);
}
template <int N>
DEVICE void pack_weights(u32 (*p)[4], const float* s) {
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int k = 0; k < 4; k++)
            p[j][k] = __float_as_uint(s[4 * j + k % 2 * 2 + k / 2]);
}

/// Stores the results of a warp's 16 rows.
DEVICE void store_rows(RESULT* O, u8*, float* o, const Softmax& softmax, const Attn& a,
                       const Tile& tile EPI_PARAMS) {
    int lane = threadIdx.x & 31, w = threadIdx.x >> 5 & 3, wg = threadIdx.x >> 7;
    O += tile.z * a.o[0] + (i64)tile.g * a.share * a.o[1] + (lane & 3) * 2;
#pragma unroll
    for (int t = 0; t < 2; t++) {
        float sum = softmax.total(t), r = sum > 0.0f ? 1.0f / sum : 0.0f;
        int row = tile.m0 + wg * 64 + w * 16 + (lane >> 2) + t * 8, head = head_of(a, row);
        RESULT* at = O + head * a.o[1] + (row - head * a.queries) * a.o[2];
        if (row < a.share * a.queries)
#pragma unroll
            for (int j = 0; j < DV / 8; j++) {
                float x = o[4 * j + 2 * t] * r, y = o[4 * j + 2 * t + 1] * r;
#if BYTES
                *(u16*)(at + j * 8) = (u16)rounded(x, y EPI_PASS);
#else
                Pack<E, 2> both = {{x, y}};
                *(Pack<E, 2>*)(at + j * 8) = both;
#endif
            }
    }
}
