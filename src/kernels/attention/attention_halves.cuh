// SPDX-License-Identifier: Apache-2.0
// Loads, products and stores of attention_wgmma.cuh for f16 and bf16. PACK makes two of them.
constexpr int loading_warps = 1;
DEVICE void start_loading(u32) {}
/// Operand with its columns innermost: slabs of 64 columns, 1024 bytes between groups of 8 rows.
DEVICE u64 rows_desc(u32 at) {
    return wgmma_desc(at) + ((u64)(slab / 16 - 1) << 16);
}
/// The last warp loads a tile's keys and values.
DEVICE void load_tiles(const TensorMap* map_k, const TensorMap* map_v, const M* mask, u8* memory,
                       const Attn& a, const Tile& t, Place& p) {
    int lane = threadIdx.x & 31, first = t.first, steps = t.steps();
    u32 pipeline = smem_addr(memory) + pipeline_at, bars = smem_addr(memory) + bars_at;
#if STAGED
    mask += t.z * a.m[0] + (i64)t.g * a.share * a.m[1];
    M y[lane_keys];
    read_mask(y, mask, a, first);
#endif
#pragma unroll 1
    for (int i = 0; i < 2 * steps; i++) {
        bool values = brings_values(i, steps);
        int key = first + step_of(i, values) * BN;
        u32 full = bars + 8 * p.slot;
        mbar_wait(full + 8 * ST, p.phase);
#if STAGED
        if (!values) {
            stage_mask((float*)(memory + bias_at) + p.slot * BN, y, key, t.last);
            read_mask(y, mask, a, key + BN);
        }
        sync_warp();
#endif
        if (lane == 0)
            load_tile(pipeline + p.slot * slot_bytes, values ? map_v : map_k, values, key, t, full);
        p.next();
    }
}

/// A warpgroup's rows of q, as products read them.
struct Queries {
    u32 at;
    DEVICE void read(u8* rows) { at = smem_addr(rows); }
};
constexpr int product_keys = 16; // of an instruction
template <int N>
DEVICE void add_values(float* o, const u32 (*p)[4], u32 values) {
    u64 y = rows_desc(values);
#pragma unroll
    for (int j = 0; j < N / 16; j++)
        wgmma_ra<W, 1>(o, p[j], y + j * 2048 / 16, 1);
}
template <int N>
DEVICE void pack_weights(u32 (*p)[4], const float* s) {
#pragma unroll
    for (int j = 0; j < N / 16; j++)
#pragma unroll
        for (int k = 0; k < 4; k++)
            p[j][k] = PACK(s[8 * j + 2 * k], s[8 * j + 2 * k + 1]);
}

/// Stores the results of a warp's 16 rows through shared memory, which held its rows of q.
DEVICE void store_rows(RESULT* O, u8* staged, float* o, const Softmax& softmax, const Attn& a,
                       const Tile& tile EPI_PARAMS) {
    int lane = threadIdx.x & 31, w = threadIdx.x >> 5 & 3, wg = threadIdx.x >> 7;
    u32 to = smem_addr(staged);
    float r[2];
#pragma unroll
    for (int t = 0; t < 2; t++) {
        float sum = softmax.total(t);
        r[t] = sum > 0.0f ? 1.0f / sum : 0.0f;
    }
    sync_some(1 + wg, 128);
#pragma unroll
    for (int j = 0; j < W / 16; j++) {
        const float* x = o + 8 * j;
        stmatrix4(to + q_chunk(w * 16 + (lane & 15), 2 * j + (lane >> 4)),
                  PACK(x[0] * r[0], x[1] * r[0]), PACK(x[2] * r[1], x[3] * r[1]),
                  PACK(x[4] * r[0], x[5] * r[0]), PACK(x[6] * r[1], x[7] * r[1]));
    }
    sync_warp();
    O += tile.z * a.o[0] + (i64)tile.g * a.share * a.o[1];
#pragma unroll 1
    for (int i = lane; i < 16 * (DV / 8); i += 32) {
        int c = i % (DV / 8), local = w * 16 + i / (DV / 8), row = tile.m0 + wg * 64 + local;
        if (row >= a.share * a.queries)
            break;
        int head = head_of(a, row);
        RESULT* at = O + head * a.o[1] + (row - head * a.queries) * a.o[2] + c * 8;
        uint4 x = *(const uint4*)(staged + q_chunk(local, c));
#if BYTES
        Pack<u32, 2> y = {{rounded(x.x EPI_PASS) | rounded(x.y EPI_PASS) << 16,
                           rounded(x.z EPI_PASS) | rounded(x.w EPI_PASS) << 16}};
        *(Pack<u32, 2>*)at = y;
#else
        *(uint4*)at = x;
#endif
    }
    sync_warp();
}
