// SPDX-License-Identifier: Apache-2.0
// Products of at most MR rows by persistent blocks: every warp has pipeline stages in shared
// memory, through which TMA loads one unit of NR columns of B after the other, CHUNK bytes of each
// at a time. Constant columns load before the preceding kernels end, and while the rows of A are
// copied to shared memory. NORM: the rows are normalised there first; 2 layer norm, 3 RMS norm. Its
// vectors are cold in L2: a thread's first part of constant ones comes before the wait too.
constexpr int per_load = 16 / sizeof(TB);
constexpr int chunk = CHUNK / sizeof(TB);
constexpr int slot_bytes = NR * CHUNK;
constexpr int pipelined_warps = 8;
constexpr int bars_bytes = 512;
constexpr int keep = 8; // units whose sums are stored together
constexpr int sums_of_row = keep * NR;
constexpr int results = MR * sums_of_row / VEC;

/// The warp's remaining copies, in order.
struct Feed {
    const TB* b;
    u32 slots, bars;
    i32 stages, slot;
    u32 unit, end;
    i64 k;
    const TB* from[NR];

    DEVICE void next(const Geometry& g) {
        if (unit >= end)
            return;
        if (k == 0) {
#pragma unroll
            for (int j = 0; j < NR; j++) {
                i64 n = (i64)unit * NR + j;
                from[j] = b + offset_of<RN>((u32)(n < g.n ? n : g.n - 1), g.columns, g.bn);
            }
        }
        const i64 left = g.k - k;
        const u32 bytes = (u32)(left < chunk ? left : chunk) * (u32)sizeof(TB);
        mbar_expect(bars + slot * 8, NR * bytes);
#pragma unroll
        for (int j = 0; j < NR; j++)
            bulk_load(slots + slot * slot_bytes + j * CHUNK, from[j] + k, bytes, bars + slot * 8);
        slot = slot + 1 == stages ? 0 : slot + 1;
        k += chunk;
        if (k >= g.k)
            k = 0, unit++;
    }
};

/// A sum, or a pair of them, and the position of its result.
struct Result {
    i64 at[NV];
    Extras extras;
    int sum;
    bool there;

    DEVICE void locate(int i, u32 unit, u32 end, const Geometry& g) {
        constexpr int of_row = sums_of_row / VEC;
        const int m = i / of_row, c = i % of_row * VEC;
        const i64 n = (i64)unit * NR + c;
        sum = m * sums_of_row + c;
        there = i < results && m < g.m && n < g.n && unit + c / NR < end;
        if (!there)
            return;
        Spot s;
        s.batch(g, 0);
        s.add_row(g, (u32)m);
        s.add_column(g, (u32)n);
#pragma unroll
        for (int v = 0; v < NV; v++)
            at[v] = s.at[v];
    }
    DEVICE void read(const Geometry& g EPI_PARAMS) {
        if (there)
            read_extras(extras, at, g EPI_PASS);
    }
    DEVICE void store(const ACC* sums, const Geometry& g, OUT* out EPI_PARAMS) const {
        if (!there)
            return;
        ACC v[VEC];
#pragma unroll
        for (int k = 0; k < VEC; k++)
            v[k] = sums[sum + k];
        deliver(v, extras, at[0], g, out EPI_PASS);
    }
};

/// Adds a lane's part of a slot, from element k of the slot on, times the same part of the rows.
DEVICE void add_piece(ACC (&acc)[MR][NR], const u8* slot, const TA* x, i64 depth) {
    ACC y[NR][per_load];
#pragma unroll
    for (int j = 0; j < NR; j++) {
        Pack<TB, per_load> w = *(const Pack<TB, per_load>*)(slot + j * CHUNK);
#pragma unroll
        for (int e = 0; e < per_load; e++)
            y[j][e] = (ACC)widen(w.v[e]);
    }
#pragma unroll
    for (int i = 0; i < MR; i++) {
        Pack<TA, per_load> v = *(const Pack<TA, per_load>*)(x + i * depth);
#pragma unroll
        for (int e = 0; e < per_load; e++) {
            ACC s = (ACC)widen(v.v[e]);
#pragma unroll
            for (int j = 0; j < NR; j++)
                acc[i][j] += s * y[j][e];
        }
    }
}
/// Adds a slot's share of the sums. x: of its first element.
DEVICE void add_slot(ACC (&acc)[MR][NR], const u8* slot, const TA* x, i64 left, i64 depth,
                     int lane) {
    const int count = left < chunk ? (int)left : chunk;
#pragma unroll(MR > 1 || per_load > 8 ? 1 : 2)
    for (int k = lane * per_load; k < count; k += 32 * per_load)
        add_piece(acc, slot + k * (int)sizeof(TB), x + k, depth);
}

/// Sums over the warp, for all its lanes.
DEVICE void gather(ACC (&acc)[MR][NR], ACC* sums, int lane) {
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int j = 0; j < NR; j++) {
            ACC v = acc[i][j];
#pragma unroll
            for (int m = 16; m > 0; m >>= 1)
                v += shfl_xor(v, m);
            if (lane == 0)
                sums[i * sums_of_row + j] = v;
            acc[i][j] = (ACC)0;
        }
}

/// A row of A; rows past the last one repeat it.
DEVICE const TA* row_of(const TA* a, int i, const Geometry& g) {
    return a + offset_of<RM>((u32)(i < g.m ? i : g.m - 1), g.rows, g.am);
}

#if NORM
constexpr int row_threads = 256 / MR;

/// Parts of the norm's vectors, as long as a part of a row.
struct Factors {
    Pack<SCALE, per_load> scale;
    Pack<BIAS, per_load> bias;
    DEVICE void load(const SCALE* s, const BIAS* b, int part) {
        scale = *(const Pack<SCALE, per_load>*)(s + part * per_load);
        if (b)
            bias = *(const Pack<BIAS, per_load>*)(b + part * per_load);
    }
};

DEVICE void take_rows(TA* x, float* parts, const TA* a, const SCALE* scale, const BIAS* bias,
                      Factors f, float epsilon, const Geometry& g) {
    typedef Pack<TA, per_load> P;
    const int row = threadIdx.x / row_threads;
    const P* from = (const P*)row_of(a, row, g);
    P* to = (P*)(x + row * g.k);
    const int first = threadIdx.x % row_threads, packs = (int)(g.k / per_load);
    float mean = 0.0f, sum = 0.0f;
#pragma unroll 1
    for (int p = first; p < packs; p += row_threads) {
        P v = from[p];
        to[p] = v;
#pragma unroll
        for (int e = 0; e < per_load; e++) {
            float f = (float)widen(v.v[e]);
            sum += NORM == 2 ? f : f * f;
        }
    }
    sum = row_total<row_threads>(sum, parts);
    if (NORM == 2) {
        mean = sum / (float)g.k;
        sum = 0.0f;
#pragma unroll 2
        for (int p = first; p < packs; p += row_threads) {
            P v = to[p];
#pragma unroll
            for (int e = 0; e < per_load; e++) {
                float d = (float)widen(v.v[e]) - mean;
                sum += d * d;
            }
        }
        sum = row_total<row_threads>(sum, parts);
    }
    const float factor = 1.0f / ingot_sqrt(sum / (float)g.k + epsilon);
#pragma unroll 1
    for (int p = first; p < packs; p += row_threads) {
        P v = to[p];
        if (p != first)
            f.load(scale, bias, p);
#pragma unroll
        for (int e = 0; e < per_load; e++) {
            float y = ((float)widen(v.v[e]) - mean) * factor * (float)widen(f.scale.v[e]);
            v.v[e] = narrow<TA>(y + (bias ? (float)widen(f.bias.v[e]) : 0.0f));
        }
        to[p] = v;
    }
}
#else
DEVICE void take_rows(TA* x, const TA* a, const Geometry& g) {
    typedef Pack<TA, per_load> P;
    const int packs = (int)(g.k / per_load);
#pragma unroll
    for (int i = 0; i < MR; i++) {
        const P* from = (const P*)row_of(a, i, g);
        P* to = (P*)(x + i * g.k);
#pragma unroll 4 // loads at once: a row comes from L2
        for (int p = threadIdx.x; p < packs; p += 256)
            to[p] = from[p];
    }
}
#endif

// constant: 1 the columns, 2 the norm's vectors, 3 both.
KERNEL void __launch_bounds__(256, 2)
    gemv_pipelined(const TA* __restrict__ a, const TB* __restrict__ b, OUT* __restrict__ out,
                   i32 stages, i32 per_warp, i32 constant, const SCALE* __restrict__ scale,
                   const BIAS* __restrict__ bias, float epsilon,
                   const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    end_main_loop();
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 units = (u32)((g.n + NR - 1) / NR);
    u32 unit = (warp * gridDim.x + blockIdx.x) * per_warp;
    const u32 end = unit + per_warp < units ? unit + per_warp : units;
    const u8* slots = memory + warp * stages * slot_bytes;
    ACC* sums = (ACC*)(memory + pipelined_warps * stages * slot_bytes) + warp * (MR * sums_of_row);
    u8* after =
        memory + pipelined_warps * (stages * slot_bytes + MR * sums_of_row * (int)sizeof(ACC));
    const u32 bars = smem_addr(after) + warp * stages * 8;
    TA* x = (TA*)(after + bars_bytes);
    Feed feed = {b, smem_addr(slots), bars, stages, 0, unit, end, 0, {}};
    if (lane == 0) {
        for (int s = 0; s < stages; s++)
            mbar_init(bars + s * 8, 1);
        mbar_init_fence();
    }
#if NORM
    const int own_part = threadIdx.x % row_threads;
    Factors factors = {};
#endif
    Result result;
#pragma unroll 1
    for (int waited = 0; waited < 2; waited++) {
        if (waited)
            grid_wait();
#if NORM
        if (waited == !(constant & 2) && own_part * per_load < g.k)
            factors.load(scale, bias, own_part);
#endif
        if (lane == 0 && waited == !(constant & 1)) // constant columns come first
#pragma unroll 1
            for (int s = 0; s < stages; s++)
                feed.next(g);
        if (!waited && results <= 32)
            result.locate(lane, unit, end, g);
    }
#if NORM
    // The memory of the sums is free until the rows arrive.
    opaque(a); // or its loads could join those before the wait
    take_rows(x, (float*)(memory + pipelined_warps * stages * slot_bytes), a, scale, bias, factors,
              epsilon, g);
#else
    take_rows(x, a, g);
#endif
    sync(); // for the rows, and for each warp's mbarriers
    ACC acc[MR][NR];
#pragma unroll
    for (int i = 0; i < MR; i++)
#pragma unroll
        for (int j = 0; j < NR; j++)
            acc[i][j] = (ACC)0;
    int slot = 0, kept = 0;
    u32 phase = 0;
#pragma unroll 1
    for (; unit < end; unit++) {
        if (kept == 0 && results <= 32)
            result.read(g EPI_PASS);
#pragma unroll 1
        for (i64 k0 = 0; k0 < g.k; k0 += chunk) {
            mbar_wait(bars + slot * 8, phase);
            add_slot(acc, slots + slot * slot_bytes, x + k0, g.k - k0, g.k, lane);
            sync_warp();
            if (lane == 0)
                feed.next(g);
            slot++;
            if (slot == stages)
                slot = 0, phase ^= 1;
        }
        gather(acc, sums + kept * NR, lane);
        if (++kept < keep && unit + 1 < end)
            continue;
        sync_warp();
        if (results <= 32) {
            result.store(sums, g, out EPI_PASS);
            result.locate(lane, unit + 1, end, g);
        } else {
#pragma unroll 1
            for (int i = lane; i < results; i += 32) {
                result.locate(i, unit + 1 - kept, end, g);
                result.read(g EPI_PASS);
                result.store(sums, g, out EPI_PASS);
            }
        }
        sync_warp();
        kept = 0;
    }
}
