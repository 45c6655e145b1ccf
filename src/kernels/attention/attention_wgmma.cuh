// SPDX-License-Identifier: Apache-2.0
// softmax(q k^T * scale + mask) v for f16 and bf16 with online softmax in f32: wgmma, fed by TMA
// (9.0). Each of WG warpgroups has 64 rows of q; the last warp loads tiles of BN (= SN) keys or
// values into ST pipeline stages, in the order of their use. OVERLAP: while the tensor cores
// multiply one step's weights by its values, the threads make the next step's weights (k0 k1 v0 k2
// v1 ...); else other warpgroups of the SM fill the gaps, and registers suffice for more of them.
// DH head size, padded to D in shared memory only; REGS registers per thread, PER_SM blocks share
// an SM; SPLIT: sums go to scratch. LOOP: as many blocks as the GPU holds loop over all tiles; a
// block loads keys, values and rows of q of its next tile while it works on the current one. TAIL,
// without OVERLAP: the last step multiplies so many keys where no more are left, or 0.
#define D ((DH + 15) / 16 * 16)
#define BM (64 * WG)
#define THREADS (128 * WG + 128)
constexpr int slabs = (D + 63) / 64; // of 64 columns: rows of 128 bytes, swizzled
constexpr int q_slab = 64 * 128, slab = BN * 128, tile_bytes = slabs * slab;
constexpr int pipeline_at = (1 + LOOP) * WG * slabs * q_slab,
              bias_at = pipeline_at + ST * tile_bytes;
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
/// Operand with its columns innermost: slabs of 64 columns, 1024 bytes between groups of 8 rows.
DEVICE u64 rows_desc(u32 at) {
    return wgmma_desc(at) + ((u64)(slab / 16 - 1) << 16);
}
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
#endif
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
#if OVERLAP
        bool values = i == 2 * steps - 1 || (i > 0 && (i & 1) == 0);
        int key = first + (values ? (i - 1) / 2 : (i + 1) / 2) * BN;
#else
        bool values = i & 1;
        int key = first + i / 2 * BN;
#endif
        u32 full = bars + 8 * p.slot;
        mbar_wait(full + 8 * ST, p.phase);
#if STAGED
        if (!values) {
            float* bias = (float*)(memory + bias_at) + p.slot * BN;
#pragma unroll
            for (int k = 0; k < lane_keys; k++)
                if (k * 32 + lane < BN)
                    bias[k * 32 + lane] =
                        EDGES || key + k * 32 + lane < t.last ? staged_mask(y[k]) : hidden();
            read_mask(y, mask, a, key + BN);
        }
        sync_warp();
#endif
        if (lane == 0) {
            mbar_expect(full, tile_bytes);
#pragma unroll
            for (int s = 0; s < slabs; s++)
                tma_load4(pipeline + p.slot * tile_bytes + s * slab, values ? map_v : map_k, s * 64,
                          key, t.g, t.z, full);
        }
        p.next();
    }
}

struct Consumer {
    u8* rows; // of q, then of results
    u32 pipeline, bars;
    Place place;
    DEVICE int wait() {
        int slot = place.slot;
        mbar_wait(bars + 8 * slot, place.phase);
        place.next();
        return slot;
    }
    DEVICE void release(int slot) {
        if ((threadIdx.x & 31) == 0)
            mbar_arrive(bars + 8 * (ST + slot));
    }
    template <int N>
    DEVICE void scores(float* s, int slot) const {
        u64 x = wgmma_desc(smem_addr(rows)), y = wgmma_desc(pipeline + slot * tile_bytes);
#pragma unroll
        for (int d = 0; d < D / 16; d++)
            wgmma<N>(s, x + (d / 4 * q_slab + d % 4 * 32) / 16,
                     y + (d / 4 * slab + d % 4 * 32) / 16, d > 0);
    }
    template <int N>
    DEVICE void add_values(float* o, const u32 (*p)[4], int slot) const {
        u64 y = rows_desc(pipeline + slot * tile_bytes);
#pragma unroll
        for (int j = 0; j < N / 16; j++)
            wgmma_ra<D, 1>(o, p[j], y + j * 2048 / 16, 1);
    }
};
template <int N>
DEVICE void pack_weights(u32 (*p)[4], const float* s) {
#pragma unroll
    for (int j = 0; j < N / 16; j++)
#pragma unroll
        for (int k = 0; k < 4; k++)
            p[j][k] = PACK(s[8 * j + 2 * k], s[8 * j + 2 * k + 1]);
}

DEVICE int head_of(const Attn& a, int row) {
    return a.share == 1 ? 0 : (u32)row / (u32)a.queries;
}
/// Stores the results of a warp's 16 rows through shared memory, which held its rows of q.
DEVICE void store_rows(u16* O, u8* staged, float* o, const Softmax& softmax, const Attn& a,
                       const Tile& tile) {
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
    for (int j = 0; j < D / 16; j++) {
        const float* x = o + 8 * j;
        stmatrix4(to + q_chunk(w * 16 + (lane & 15), 2 * j + (lane >> 4)),
                  PACK(x[0] * r[0], x[1] * r[0]), PACK(x[2] * r[1], x[3] * r[1]),
                  PACK(x[4] * r[0], x[5] * r[0]), PACK(x[6] * r[1], x[7] * r[1]));
    }
    sync_warp();
    O += tile.z * a.o[0] + (i64)tile.g * a.share * a.o[1];
#pragma unroll 1
    for (int i = lane; i < 16 * (DH / 8); i += 32) {
        int c = i % (DH / 8), local = w * 16 + i / (DH / 8), row = tile.m0 + wg * 64 + local;
        if (row >= a.share * a.queries)
            break;
        int head = head_of(a, row);
        u16* at = O + head * a.o[1] + (row - head * a.queries) * a.o[2];
        *(uint4*)(at + c * 8) = *(const uint4*)(staged + q_chunk(local, c));
    }
    sync_warp();
}
#if SPLIT
DEVICE void store_sums(float* sums, const float* o, const Softmax& softmax, const Attn& a,
                       const Tile& tile, int row) {
    int lane = threadIdx.x & 31, rows = a.share * a.queries;
#pragma unroll
    for (int t = 0; t < 2; t++) {
        float sum = softmax.total(t);
        if (row + t * 8 >= rows)
            continue;
        i64 head = (i64)tile.z * a.groups + tile.g;
        i64 at = (head * a.splits + tile.split) * rows + row + t * 8;
        float* to = sums + at * (DH + 2);
#pragma unroll
        for (int j = 0; j < DH / 8; j++) {
            Pack<float, 2> both = {{o[4 * j + 2 * t], o[4 * j + 2 * t + 1]}};
            *(Pack<float, 2>*)(to + j * 8 + (lane & 3) * 2) = both;
        }
        if ((lane & 3) == 0) {
            to[DH] = softmax.natural_top(t);
            to[DH + 1] = sum;
        }
    }
}
#endif

/// Starts loading a warpgroup's rows of q to shared memory; two threads share a row.
DEVICE void load_q(const u16* q, u32 to, const Attn& a, const Tile& tile) {
    int t = threadIdx.x & 127, r = t >> 1, row = tile.m0 + (threadIdx.x >> 7) * 64 + r;
    int head = head_of(a, row);
    bool in = row < a.share * a.queries;
    q += tile.z * a.q[0] + (i64)tile.g * a.share * a.q[1];
    const u16* from = q + (in ? head * a.q[1] + (row - head * a.queries) * a.q[2] : 0);
#pragma unroll
    for (int j = 0; j < D / 16; j++) {
        int c = 2 * j + (t & 1);
        bool ok = in && c * 8 < DH;
        cp_async16(to + q_chunk(r, c), from + (ok ? c * 8 : 0), ok ? 16 : 0);
    }
    cp_async_commit();
}
/// Waits for all rows of the warpgroup.
DEVICE void wait_q() {
    cp_async_wait<0>();
    async_fence();
    sync_some(1 + (threadIdx.x >> 7), 128);
}

#if OVERLAP
/// A warpgroup's rows of a tile with keys, before the division by their sums of weights.
DEVICE void walk_keys(float* o, Softmax& softmax, Consumer& c, const float* bias, const Attn& a,
                      const Tile& t) {
    int hides = first_hidden(a, t.m0, BM, t.last), steps = t.steps();
    float s[BN / 2], f[2];
    u32 p[BN / 16][4];
#pragma unroll 1
    for (int n = 0; n < steps; n++) {
        int key = t.first + n * BN, slot = c.wait(), before = 0;
        wgmma_fence();
        c.scores<BN>(s, slot);
        wgmma_commit();
        if (n > 0) {
            before = c.wait();
            c.add_values<BN>(o, p, before);
        }
        wgmma_commit();
        wgmma_wait<1>();
        softmax.step(s, f, a, key, key + BN > hides, bias + slot * BN);
        c.release(slot);
        wgmma_wait<0>();
        if (n > 0)
            c.release(before);
        rescale<D>(o, f);
        pack_weights<BN>(p, s);
    }
    int slot = c.wait();
    wgmma_fence();
    c.add_values<BN>(o, p, slot);
    wgmma_commit();
    wgmma_wait<0>();
    c.release(slot);
}
#else
/// N keys from `key` on.
template <int N>
DEVICE void see_keys(float* o, Softmax& softmax, Consumer& c, const float* bias, const Attn& a,
                     int key, bool edge) {
    float s[N / 2], f[2];
    u32 p[N / 16][4];
    int slot = c.wait();
    wgmma_fence();
    c.scores<N>(s, slot);
    wgmma_commit();
    wgmma_wait<0>();
#if LAZY
    softmax.see<N>(s, a, key, edge, bias + slot * BN);
    c.release(slot);
    float x[2];
    bool raised = softmax.unseen();
    f[0] = f[1] = 1.0f;
#pragma unroll 1
    for (;;) {
        if (raised) {
            softmax.raise<N>(s, f);
            rescale<D>(o, f);
        }
        if (softmax.try_weights<N>(p, x, s) || raised)
            break;
        raised = true;
    }
    softmax.sum[0] = softmax.sum[0] * f[0] + x[0];
    softmax.sum[1] = softmax.sum[1] * f[1] + x[1];
#else
    softmax.step<N>(s, f, a, key, edge, bias + slot * BN);
    c.release(slot);
    rescale<D>(o, f);
    pack_weights<N>(p, s);
#endif
    slot = c.wait();
    wgmma_fence();
    c.add_values<N>(o, p, slot);
    wgmma_commit();
    wgmma_wait<0>();
    c.release(slot);
}

/// As above.
DEVICE void walk_keys(float* o, Softmax& softmax, Consumer& c, const float* bias, const Attn& a,
                      const Tile& t) {
    int hides = first_hidden(a, t.m0, BM, t.last), whole = t.steps();
#if TAIL
    bool tail = t.last - (t.first + (whole - 1) * BN) <= TAIL;
    whole -= tail;
#endif
#pragma unroll 1
    for (int n = 0; n < whole; n++) {
        int key = t.first + n * BN;
        see_keys<BN>(o, softmax, c, bias, a, key, key + BN > hides);
    }
#if TAIL
    if (tail)
        see_keys<TAIL>(o, softmax, c, bias, a, t.first + whole * BN, true);
#endif
}
#endif

/// As walk_keys, with keys or without.
DEVICE void attend(float* o, Softmax& softmax, Consumer& c, const u8* memory, const Attn& a,
                   const Tile& t) {
#pragma unroll
    for (int i = 0; i < D / 2; i++)
        o[i] = 0.0f;
    if (t.steps() > 0)
        walk_keys(o, softmax, c, (const float*)(memory + bias_at), a, t);
}

KERNEL void __launch_bounds__(THREADS, PER_SM)
    attention_wgmma(const u16* __restrict__ Q, const __grid_constant__ TensorMap map_k,
                    const __grid_constant__ TensorMap map_v, const M* __restrict__ mask,
                    u16* __restrict__ O, float* __restrict__ sums, const __grid_constant__ Attn a,
                    int tiles) {
    begin_kernel();
    const int count = LOOP ? tiles : 1, first = LOOP ? blockIdx.x : 0;
    const int stride = LOOP ? gridDim.x : 1;
    SHARED(memory);
    u32 base = smem_addr(memory), bars = base + bars_at;
    int tid = threadIdx.x, wg = tid >> 7, lane = tid & 31;
    if (tid == 0) {
        for (int i = 0; i < ST; i++) {
            mbar_init(bars + 8 * i, 1);
            mbar_init(bars + 8 * (ST + i), WG * 4);
        }
        mbar_init_fence();
    }
    sync();
    if (wg == WG) {
        regs_dec<24>();
        if (tid >> 5 != WG * 4)
            return;
        if (lane == 0) {
            prefetch_map(&map_k);
            prefetch_map(&map_v);
        }
        grid_wait();
        Place p = {0, 1};
#pragma unroll 1
        for (int i = first; i < count; i += stride)
            load_tiles(&map_k, &map_v, mask, memory, a, Tile(a, i), p);
        return;
    }
    regs_inc<REGS>();
    grid_wait();
    Consumer c = {memory + wg * slabs * q_slab, base + pipeline_at, bars, {0, 0}};
    load_q(Q, smem_addr(c.rows), a, Tile(a, first));
    int turn = WG * slabs * q_slab;
#pragma unroll 1
    for (int i = first; i < count; i += stride) {
        Tile t(a, i);
        int row = t.m0 + wg * 64 + (tid >> 5 & 3) * 16 + (lane >> 2);
        Softmax softmax;
        softmax.start(a, mask + (MASK ? t.z * a.m[0] : 0), t.g, row, t.last);
        wait_q();
        if (LOOP && i + stride < count)
            load_q(Q, smem_addr(c.rows) + turn, a, Tile(a, i + stride));
        float o[D / 2];
        attend(o, softmax, c, memory, a, t);
        if (i + stride >= count)
            end_main_loop();
#if SPLIT
        store_sums(sums, o, softmax, a, t, row);
#else
        store_rows(O, c.rows, o, softmax, a, t);
#endif
        c.rows += turn;
        turn = -turn;
    }
}
