// SPDX-License-Identifier: Apache-2.0
// Parts of attention_wgmma.cuh that hold for all element types E: the layout of shared memory, and
// the place of a tile. SINGLE: elements are f32, multiplied as TF32.
#define D ((DH + 15) / 16 * 16)
#define W ((DV + 15) / 16 * 16)
#define BM (64 * WG)
#define THREADS (128 * WG + 128)
constexpr int columns = 128 / sizeof(E); // of a slab: rows of 128 bytes, swizzled
constexpr int key_slabs = (D + columns - 1) / columns, value_slabs = (W + columns - 1) / columns;
constexpr int most_slabs = key_slabs > value_slabs ? key_slabs : value_slabs; // of a tile
constexpr int q_slab = 64 * 128, slab = BN * 128, tile_bytes = most_slabs * slab;
constexpr int row_bytes = most_slabs * q_slab; // of a warpgroup: its rows of q, then of results
constexpr int turned_bytes = SINGLE * ((BN + 31) / 32 * W * 128); // of values whose keys adjoin
constexpr int slot_bytes = turned_bytes > tile_bytes ? turned_bytes : tile_bytes;
constexpr int pipeline_at = (1 + LOOP) * WG * row_bytes, raw_at = pipeline_at + ST * slot_bytes,
              bias_at = raw_at + SINGLE * 2 * tile_bytes;
constexpr int bars_at = bias_at + STAGED * ST * BN * 4;

/// Rows [m0, m0 + BM) of group g in batch z, and keys [first, last).
struct Tile {
    int m0, g, split, z, first, last;
    /// `i`: index among all tiles, where blocks loop.
    DEVICE Tile(const Attn& a, int i) {
        int tiles = (u32)(a.share * a.queries + BM - 1) / BM, x = blockIdx.x, y = blockIdx.y;
        z = blockIdx.z;
#if LOOP
        y = i / tiles;
        x = i - y * tiles;
        z = y / (a.groups * a.splits);
        y -= z * (a.groups * a.splits);
#endif
        split = (u32)y / (u32)a.groups;
        g = y - split * a.groups;
        m0 = (a.causal ? tiles - 1 - x : x) * BM; // causal: the longest rows first
        key_range(a, split, m0, BM, first, last);
    }
    DEVICE int steps() const {
        return (u32)(last - first + BN - 1) / BN;
    }
};
struct Place {
    int slot;
    u32 phase;
    DEVICE void next() {
        if (++slot == ST) {
            slot = 0;
            phase ^= 1;
        }
    }
};
DEVICE u32 q_chunk(int r, int c) {
    return (u32)((c >> 3) * q_slab + r * 128 + (((c ^ r) & 7) << 4));
}

#if STAGED
constexpr int lane_keys = (BN + 31) / 32;
/// Missing keys get some mask: `edge` hides them, or with EDGES == 0 the loading warp does.
DEVICE void read_mask(M* y, const M* mask, const Attn& a, int key) {
#pragma unroll
    for (int k = 0; k < lane_keys; k++) {
        int c = key + k * 32 + (threadIdx.x & 31);
        y[k] = mask[(c < a.keys ? c : a.keys - 1) * a.m[3]];
    }
}
/// The mask from `key` on, for the softmax.
DEVICE void stage_mask(float* bias, const M* y, int key, int last) {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int k = 0; k < lane_keys; k++)
        if (k * 32 + lane < BN)
            bias[k * 32 + lane] =
                EDGES || key + k * 32 + lane < last ? staged_mask(y[k]) : hidden();
}
#endif
/// The order of loads: whether load `i` brings values, and of which step.
DEVICE bool brings_values(int i, int steps) {
    (void)steps;
#if OVERLAP
    return i == 2 * steps - 1 || (i > 0 && (i & 1) == 0);
#else
    return i & 1;
#endif
}
DEVICE int step_of(int i, bool values) {
#if OVERLAP
    return values ? (i - 1) / 2 : (i + 1) / 2;
#else
    (void)values;
    return i / 2;
#endif
}
DEVICE void load_tile(u32 to, const TensorMap* map, bool values, int key, const Tile& t, u32 bar) {
    const int slabs = values ? value_slabs : key_slabs;
    mbar_expect(bar, slabs * slab);
#pragma unroll(WIDE ? 1 : most_slabs)
    for (int s = 0; s < most_slabs; s++)
        if (s < slabs)
            tma_load4(to + s * slab, map, s * columns, key, t.g, t.z, bar);
}

DEVICE int head_of(const Attn& a, int row) {
    return a.share == 1 ? 0 : (u32)row / (u32)a.queries;
}
/// Starts loading a warpgroup's rows of q to shared memory; two threads share a row.
DEVICE void load_q(const E* q, u32 to, const Attn& a, const Tile& tile) {
    constexpr int wide = 16 / sizeof(E);
    int t = threadIdx.x & 127, r = t >> 1, row = tile.m0 + (threadIdx.x >> 7) * 64 + r;
    int head = head_of(a, row);
    bool in = row < a.share * a.queries;
    q += tile.z * a.q[0] + (i64)tile.g * a.share * a.q[1];
    const E* from = q + (in ? head * a.q[1] + (row - head * a.queries) * a.q[2] : 0);
#pragma unroll(WIDE ? 1 : D / wide / 2)
    for (int j = 0; j < D / wide / 2; j++) {
        int c = 2 * j + (t & 1);
        bool ok = in && c * wide < DH;
        cp_async16(to + q_chunk(r, c), from + (ok ? c * wide : 0), ok ? 16 : 0);
    }
    cp_async_commit();
}
