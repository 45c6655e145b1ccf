// SPDX-License-Identifier: Apache-2.0
// softmax(q k^T * scale + mask) v for f16, bf16 and TF32 with online softmax in f32: wgmma, fed by
// TMA (9.0). Each of WG warpgroups has 64 rows of q; the last one loads tiles of BN (= SN) keys or
// values into ST pipeline stages, in the order of their use (attention_halves.cuh or
// attention_singles.cuh). OVERLAP: while the tensor cores multiply one step's weights by its
// values, the threads make the next step's weights (k0 k1 v0 k2 v1 ...); else other warpgroups of
// the SM fill the gaps, and registers suffice for more of them. DH elements of a key and DV of a
// value, padded to D and W in shared memory only; REGS registers per thread, and LOAD_REGS of those
// that load; PER_SM blocks share an SM; SPLIT: sums go to scratch; BYTES: results are rounded to
// bytes. LOOP: as many blocks as the GPU holds loop over all tiles; a block loads keys, values and
// rows of q of its next tile while it works on the current one. TAIL, without OVERLAP: the last
// step multiplies so many keys where no more are left, or 0. WIDE: short loops bound the text.
template <int N>
DEVICE void scores(float* s, const Queries& q, u32 keys) {
    u64 x = wgmma_desc(q.at), y = wgmma_desc(keys);
    constexpr int parts = D * sizeof(E) / 32;
#pragma unroll(WIDE ? 4 : parts)
    for (int d = 0; d < parts; d++)
        wgmma<N>(s, x + (d / 4 * q_slab + d % 4 * 32) / 16, y + (d / 4 * slab + d % 4 * 32) / 16,
                 d > 0);
}
struct Consumer {
    u32 pipeline, bars;
    Queries q;
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
    DEVICE u32 tile(int slot) const { return pipeline + slot * slot_bytes; }
};

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
        float* to = sums + at * (DV + 2);
#pragma unroll
        for (int j = 0; j < DV / 8; j++) {
            Pack<float, 2> both = {{o[4 * j + 2 * t], o[4 * j + 2 * t + 1]}};
            *(Pack<float, 2>*)(to + j * 8 + (lane & 3) * 2) = both;
        }
        if ((lane & 3) == 0) {
            to[DV] = softmax.natural_top(t);
            to[DV + 1] = sum;
        }
    }
}
#endif

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
    u32 p[BN / product_keys][4];
#pragma unroll 1
    for (int n = 0; n < steps; n++) {
        int key = t.first + n * BN, slot = c.wait(), before = 0;
        wgmma_fence();
        scores<BN>(s, c.q, c.tile(slot));
        wgmma_commit();
        if (n > 0) {
            before = c.wait();
            add_values<BN>(o, p, c.tile(before));
        }
        wgmma_commit();
        wgmma_wait<1>();
        softmax.step(s, f, a, key, key + BN > hides, bias + slot * BN);
        c.release(slot);
        wgmma_wait<0>();
        if (n > 0)
            c.release(before);
        rescale<W>(o, f);
        pack_weights<BN>(p, s);
    }
    int slot = c.wait();
    wgmma_fence();
    add_values<BN>(o, p, c.tile(slot));
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
    u32 p[N / product_keys][4];
    int slot = c.wait();
    wgmma_fence();
    scores<N>(s, c.q, c.tile(slot));
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
            rescale<W>(o, f);
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
    rescale<W>(o, f);
    pack_weights<N>(p, s);
#endif
    slot = c.wait();
    wgmma_fence();
    add_values<N>(o, p, c.tile(slot));
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
    for (int i = 0; i < W / 2; i++)
        o[i] = 0.0f;
    if (t.steps() > 0)
        walk_keys(o, softmax, c, (const float*)(memory + bias_at), a, t);
}

KERNEL void __launch_bounds__(THREADS, PER_SM)
    attention_wgmma(const E* __restrict__ Q, const __grid_constant__ TensorMap map_k,
                    const __grid_constant__ TensorMap map_v, const M* __restrict__ mask,
                    RESULT* __restrict__ O, float* __restrict__ sums,
                    const __grid_constant__ Attn a, int tiles EPI_PARAMS) {
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
        start_loading(bars);
        mbar_init_fence();
    }
    sync();
    if (wg == WG) {
        regs_dec<LOAD_REGS>();
        if ((tid >> 5) - WG * 4 >= loading_warps)
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
    u8* rows = memory + wg * row_bytes; // of q, then of results
    Consumer c = {base + pipeline_at, bars, {}, {0, 0}};
    load_q(Q, smem_addr(rows), a, Tile(a, first));
    int turn = WG * row_bytes;
#pragma unroll 1
    for (int i = first; i < count; i += stride) {
        Tile t(a, i);
        int row = t.m0 + wg * 64 + (tid >> 5 & 3) * 16 + (lane >> 2);
        Softmax softmax;
        softmax.start(a, mask + (MASK ? t.z * a.m[0] : 0), t.g, row, t.last);
        wait_q();
        c.q.read(rows);
        if (LOOP && i + stride < count)
            load_q(Q, smem_addr(rows) + turn, a, Tile(a, i + stride));
        float o[W / 2];
        attend(o, softmax, c, memory, a, t);
        if (i + stride >= count)
            end_main_loop();
#if SPLIT
        store_sums(sums, o, softmax, a, t, row);
#else
        store_rows(O, rows, o, softmax, a, t EPI_PASS);
#endif
        rows += turn;
        turn = -turn;
    }
}
