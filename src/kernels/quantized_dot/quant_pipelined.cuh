// SPDX-License-Identifier: Apache-2.0
// Products of at most MR rows with columns of 16 bits (of type TA) or quantised ones, by persistent
// blocks: TMA loads tiles of 16 columns x 128 bytes for every warp through pipeline stages in
// shared memory; the tensor cores multiply them, widened to 16 bits, by the rows. `share` warps
// split the depth of 16 columns, and sum in a fixed order; the first `more` of these groups of
// warps make one unit of 16 columns more than `few`. Constant tiles load before the preceding
// kernels end. BLOCK: elements of the depth that share a scale, which is loaded with the tiles; 0:
// one scale per column, which multiplies its sum. ZEROS: the source of zero points; 1 memory, one
// per column or for all, 2 TMA, with the scales. NORM: the rows are normalised first; 2 layer norm,
// 3 RMS norm.
constexpr int tile_columns = 16;
constexpr int tile_elements = 1024 / Q_BITS; // of the depth
constexpr int tile_bytes = 2048;
constexpr int four = 512 / Q_BITS;              // elements that four lanes read of a column at once
constexpr int pieces = four / 32;               // of 8 elements, for each of them
[[maybe_unused]] constexpr int part = four / 4; // elements of a lane
constexpr int pipelined_warps = 8;
constexpr int sums_bytes = 8192;
constexpr int zeros_bytes = 512; // of zeros that stand for rows

#if BLOCK
constexpr int passes = (MR + 1) / 2;
constexpr int tile_scales = BLOCK < tile_elements ? tile_elements / BLOCK : 1; // of a column
/// Elements of a row of scales and of zero points: half of it, and all. TMA loads at least 16
/// bytes.
constexpr int least_scales = 16 / (int)sizeof(SCALE);
constexpr int half_scales = !PAIRED ? 16 : least_scales > 8 ? least_scales : 8;
constexpr int row_scales = PAIRED ? 2 * half_scales : 16;
constexpr int scales_bytes = (tile_scales * row_scales * (int)sizeof(SCALE) + 127) / 128 * 128;
constexpr int row_zeros = PAIRED ? 32 : 16;
constexpr int origins_bytes = ZEROS == 2 ? (tile_scales * row_zeros + 127) / 128 * 128 : 0;
#else
constexpr int passes = 1, scales_bytes = 0, origins_bytes = 0;
#endif
constexpr int extra_bytes = scales_bytes + origins_bytes;

DEVICE void multiply(float* c, const u32* a, u32 b0, u32 b1) {
#if TA_BF16
    mma_bf16(c, a, b0, b1);
#else
    mma_f16(c, a, b0, b1);
#endif
}

/// A lane's part of a tile. It has rows lane / 4 and that + 8 of the matrix instruction, columns of
/// the product; these are `row` and `row` + 8 of the tile, so that the lanes of a load use all
/// banks.
struct Lane {
    int quad, t, row;
    u32 at; // of its first 16 bytes in a tile, where 16 bytes stand in the order of the swizzle
    DEVICE Lane() {
        const int lane = threadIdx.x & 31;
        quad = lane >> 2, t = lane & 3;
        row = (quad >> 1) + 4 * (quad & 1);
        at = (u32)(row * 128 + ((t ^ row) << 4));
    }
    /// The index of the tile's row `row` + 8 * i among the 16 columns of a unit.
    DEVICE int column(int i) const { return PAIRED ? 2 * row + i : row + 8 * i; }
};

/// 8 times 8 elements of the depth of 16 columns, in four adjacent lanes: c += them times the rows
/// at x[p].
DEVICE void add_four(float (&c)[passes][2][4], const u8* from, const u8* const (&x)[passes],
                     const Origin (&origin)[2]) {
    const uint4 v = *(const uint4*)from, w = *(const uint4*)(from + 1024);
    const u32 first[4] = {v.x, v.y, v.z, v.w}, second[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int j = 0; j < pieces; j++) {
        u32 a[4], b[4];
        q_pairs(a, first + j * (4 / pieces), origin[0]);
        q_pairs(b, second + j * (4 / pieces), origin[1]);
        const u32 even[4] = {a[0], b[0], a[1], b[1]}, odd[4] = {a[2], b[2], a[3], b[3]};
#pragma unroll
        for (int p = 0; p < passes; p++) {
            const uint4 r = *(const uint4*)(x[p] + j * 64);
            multiply(c[p][0], even, r.x, r.y);
            multiply(c[p][1], odd, r.z, r.w);
        }
    }
}

DEVICE void set_to_zero(float (&c)[passes][2][4]) {
#pragma unroll
    for (int p = 0; p < passes; p++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[p][0][i] = c[p][1][i] = 0.0f;
}

/// Sums of a warp over its part of the depth.
struct Sums {
#if BLOCK
    float v[passes][2]; // two columns, for the row that the lane stands for in each pass
    DEVICE void clear() {
#pragma unroll
        for (int p = 0; p < passes; p++)
            v[p][0] = v[p][1] = 0.0f;
    }
    /// The rows form a diagonal: of the matrix instruction's 8 columns, four for each of two rows,
    /// one has the elements of one lane in four and zeros elsewhere. So sums over parts of the
    /// depth stay separate until each is multiplied by its scale.
    DEVICE void add_tile(const u8* tile, const u8* extra, const u8* x, int pitch, const u8* zeros,
                         const Lane& l, Origin (&origin)[2]) {
        const u8* from[passes];
#pragma unroll
        for (int p = 0; p < passes; p++) {
            const int r = 2 * p + (l.quad >> 2);
            from[p] = (l.quad & 3) == l.t && r < MR ? x + r * pitch + l.t * 16 : zeros;
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
#if ZEROS == 2
            const ZERO* z = (const ZERO*)(extra + scales_bytes) +
                            (h * 4 + l.t) * part / BLOCK * row_zeros + l.row;
            origin[0].set((i32)z[0]);
            origin[1].set((i32)z[PAIRED ? 16 : 8]);
#endif
            float c[passes][2][4];
            set_to_zero(c);
            add_four(c, tile + (l.at ^ (u32)(h * 64)), from, origin);
            const int first = h * 4 + 2 * (l.t & 1); // of the lane's two parts
            const SCALE* s = (const SCALE*)extra + l.row;
            const SCALE* one = s + first * part / BLOCK * row_scales;
            const SCALE* other = s + (first + 1) * part / BLOCK * row_scales;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float a = (float)widen(one[i * (PAIRED ? half_scales : 8)]);
                const float b = (float)widen(other[i * (PAIRED ? half_scales : 8)]);
#pragma unroll
                for (int p = 0; p < passes; p++) {
                    v[p][i] += (c[p][0][2 * i] + c[p][1][2 * i]) * a;
                    v[p][i] += (c[p][0][2 * i + 1] + c[p][1][2 * i + 1]) * b;
                }
            }
#pragma unroll
            for (int p = 0; p < passes; p++)
                from[p] += four * 2;
        }
    }
    DEVICE void store(float* to, const Lane& l) const {
#pragma unroll
        for (int p = 0; p < passes; p++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float sum = v[p][i] + shfl_xor(v[p][i], 1);
                const int r = 2 * p + (l.t >> 1);
                if ((l.t & 1) == 0 && r < MR)
                    to[r * tile_columns + l.column(i)] = sum;
            }
    }
#else
    float c[1][2][4];
    DEVICE void clear() {
        set_to_zero(c);
    }
    DEVICE void add_tile(const u8* tile, const u8*, const u8* x, int pitch, const u8*,
                         const Lane& l, Origin (&origin)[2]) {
        const u8* from[1] = {x + (l.quad < MR ? l.quad : MR - 1) * pitch + l.t * 16};
#pragma unroll
        for (int h = 0; h < 2; h++) {
            add_four(c, tile + (l.at ^ (u32)(h * 64)), from, origin);
            from[0] += four * 2;
        }
    }
    DEVICE void store(float* to, const Lane& l) const {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int r = 2 * l.t + i % 2;
            if (r < MR)
                to[r * tile_columns + l.column(i / 2)] = c[0][0][i] + c[0][1][i];
        }
    }
#endif
};

/// The warp's remaining copies, in order: every `share`th tile of each unit.
struct Feed {
    u32 tiles, extras, bars;
    i32 stages, slot, share, first, depth; // depth: in tiles
    u32 unit, end;
    i32 tile;

    DEVICE void next(const TensorMap& q_map MAP_PARAMS) {
        if (unit >= end)
            return;
        const u32 bar = bars + slot * 8;
        int n = (int)(PAIRED ? unit * (tile_columns / 2) : unit * tile_columns), head = 0;
#if HEAD_PAIRS
        head = n / HEAD_PAIRS;
        n %= HEAD_PAIRS;
#endif
#if BLOCK
        const int k = tile * tile_elements / BLOCK;
        const u32 extra = extras + slot * extra_bytes;
        mbar_expect(bar, tile_bytes + tile_scales * row_scales * (int)sizeof(SCALE) +
                             (ZEROS == 2 ? tile_scales * row_zeros : 0));
        tma_load4(extra, &s_map, n, 0, k, head, bar);
#if ZEROS == 2
        tma_load4(extra + scales_bytes, &z_map, n, 0, k, head, bar);
#endif
#else
        mbar_expect(bar, tile_bytes);
#endif
        tma_load4(tiles + slot * tile_bytes, &q_map, tile * 128, n, 0, head, bar);
        slot = slot + 1 == stages ? 0 : slot + 1;
        tile += share;
        if (tile >= depth)
            tile = first, unit++;
    }
};

/// A result of a unit, or a part of one, and its position.
struct Result {
    i64 at[NV];
    Extras extras;
    float scale[VEC];
    int sum;
    bool there;

    /// The i-th of the kept units: from `unit` on, up to `end`.
    DEVICE void locate(int i, u32 unit, u32 end, int share, const SCALE* scales, i64 scale_n,
                       const Geometry& g) {
        constexpr int of_row = tile_columns / VEC, of_unit = MR * of_row;
        const int u = i / of_unit, m = i % of_unit / of_row, c = i % of_row * VEC;
        const u32 n = (unit + u) * tile_columns + c;
        sum = (u * share * MR + m) * tile_columns + c;
        there = unit + u < end && m < g.m && (i64)n < g.n;
        if (!there)
            return;
        Spot s;
        s.batch(g, 0);
        s.add_row(g, (u32)m);
        s.add_column(g, n);
#pragma unroll
        for (int v = 0; v < NV; v++)
            at[v] = s.at[v];
#if !BLOCK && Q_BITS < 16
#pragma unroll
        for (int v = 0; v < VEC; v++)
            scale[v] = (float)widen(scales[column_of_b(n + v, g) * scale_n]);
#endif
    }
    DEVICE void read(const Geometry& g EPI_PARAMS) {
        if (there)
            read_extras(extras, at, g EPI_PASS);
    }
    DEVICE void store(const float* sums, int share, const Geometry& g, OUT* out EPI_PARAMS) const {
        if (!there)
            return;
        ACC v[VEC];
#pragma unroll
        for (int k = 0; k < VEC; k++) {
            float parts[pipelined_warps],
                total = 0.0f; // all on their way before the first is added
#pragma unroll
            for (int p = 0; p < pipelined_warps; p++)
                parts[p] = p < share ? sums[sum + p * MR * tile_columns + k] : 0.0f;
#pragma unroll
            for (int p = 0; p < pipelined_warps; p++)
                total += parts[p];
            v[k] = BLOCK || Q_BITS == 16 ? total : total * scale[k];
        }
        deliver(v, extras, at[0], g, out EPI_PASS);
    }
};

/// 8 elements of a row in the order in which lanes read them.
DEVICE void put_piece(u8* row, int piece, uint4 v) {
    const int of_lane = piece % (four / 8),
              to = piece / (four / 8) * (four / 8) + of_lane % pieces * 4 + of_lane / pieces;
#if Q_BITS == 4
    const uint4 w = v;
    v.x = pick_bytes<0x5410>(w.x, w.z), v.y = pick_bytes<0x7632>(w.x, w.z);
    v.z = pick_bytes<0x5410>(w.y, w.w), v.w = pick_bytes<0x7632>(w.y, w.w);
#endif
    *(uint4*)(row + to * 16) = v;
}

union Piece {
    uint4 u;
    TA v[8];
};

#if NORM
constexpr int row_threads = 256 / MR;
#endif

/// Loads the rows, normalised under NORM, padded with zeros to a whole tile.
DEVICE void take_rows(u8* x, int pitch, int depth, float* parts, const TA* a, const GAIN* gain,
                      const Pack<GAIN, 8>& first_gain, const BIAS* bias, float epsilon,
                      const Geometry& g) {
    const int there = (int)g.k / 8, whole = depth * (tile_elements / 8);
#if NORM
    const int row = threadIdx.x / row_threads, first = threadIdx.x % row_threads;
    const TA* from = a + offset_of<RM>((u32)(row < g.m ? row : g.m - 1), g.rows, g.am);
    float mean = 0.0f, sum = 0.0f;
#pragma unroll 1
    for (int p = first; p < there; p += row_threads) {
        Piece v;
        v.u = *(const uint4*)(from + p * 8);
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const float f = (float)widen(v.v[e]);
            sum += NORM == 2 ? f : f * f;
        }
    }
    sum = row_total<row_threads>(sum, parts);
    if (NORM == 2) {
        mean = sum / (float)g.k;
        sum = 0.0f;
#pragma unroll 1
        for (int p = first; p < there; p += row_threads) {
            Piece v;
            v.u = *(const uint4*)(from + p * 8);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const float d = (float)widen(v.v[e]) - mean;
                sum += d * d;
            }
        }
        sum = row_total<row_threads>(sum, parts);
    }
    const float factor = 1.0f / ingot_sqrt(sum / (float)g.k + epsilon);
#pragma unroll 1
    for (int p = first; p < whole; p += row_threads) {
        Piece v;
        v.u = make_uint4(0, 0, 0, 0);
        if (p < there) {
            v.u = *(const uint4*)(from + p * 8);
            const Pack<GAIN, 8> s = p == first ? first_gain : *(const Pack<GAIN, 8>*)(gain + p * 8);
            Pack<BIAS, 8> t;
            if (bias)
                t = *(const Pack<BIAS, 8>*)(bias + p * 8);
#pragma unroll
            for (int e = 0; e < 8; e++) {
                const float f = ((float)widen(v.v[e]) - mean) * factor * (float)widen(s.v[e]);
                v.v[e] = narrow<TA>(f + (bias ? (float)widen(t.v[e]) : 0.0f));
            }
        }
        put_piece(x + row * pitch, p, v.u);
    }
#else
#pragma unroll 1
    for (int i = 0; i < MR; i++) {
        const TA* from = a + offset_of<RM>((u32)(i < g.m ? i : g.m - 1), g.rows, g.am);
#pragma unroll 4 // loads at once: a row comes from L2
        for (int p = threadIdx.x; p < whole; p += 256)
            put_piece(x + i * pitch, p,
                      p < there ? *(const uint4*)(from + p * 8) : make_uint4(0, 0, 0, 0));
    }
    (void)parts, (void)gain, (void)first_gain, (void)bias, (void)epsilon;
#endif
}

// With many sums of blocks, two thread blocks would lack registers on an SM.
KERNEL void __launch_bounds__(256, BLOCK&& MR > 4 ? 1 : 2)
    quant_pipelined(const TA* __restrict__ a, const __grid_constant__ TensorMap q_map MAP_VALUES,
                    const SCALE* __restrict__ scales, const ZERO* __restrict__ zeros,
                    OUT* __restrict__ out, i64 scale_n, i64 zero_n, i32 stages, i32 share, u32 few,
                    u32 more, i32 constant, const GAIN* __restrict__ gain,
                    const BIAS* __restrict__ bias, float epsilon,
                    const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    end_main_loop();
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = warp / share;
    const int depth = (int)((g.k + tile_elements - 1) / tile_elements);
    const int pitch = depth * tile_elements * 2 + 64;
    const u32 number = group * gridDim.x + blockIdx.x;
    u32 unit = number * few + (number < more ? number : more);
    const u32 end = unit + few + (number < more ? 1u : 0u);
    const int all_stages = pipelined_warps * stages;
    u8* extras = memory + all_stages * tile_bytes;
    u8* after = extras + all_stages * extra_bytes;
    float* sums = (float*)after;
    u8* nothing = after + sums_bytes;
    u8* x = nothing + zeros_bytes;
    const u32 bars = smem_addr(x + MR * pitch) + warp * stages * 8;
    const u8* tiles = memory + warp * stages * tile_bytes;
    const u8* own_extras = extras + warp * stages * extra_bytes;
    const int first = warp % share;
    Feed feed = {smem_addr(tiles),
                 smem_addr(own_extras),
                 bars,
                 stages,
                 0,
                 share,
                 first,
                 depth,
                 unit,
                 first < depth ? end : 0,
                 first};
    if (!constant)
        grid_wait();
    // A thread of a group has one result at most.
    const int of_group = 32 * share, keep = 2 * share > MR ? 2 * share / MR : 1;
    const int results = keep * MR * tile_columns / VEC, member = threadIdx.x % of_group;
    if (lane == 0) {
#pragma unroll 1
        for (int s = 0; s < stages; s++)
            mbar_init(bars + s * 8, 1);
        mbar_init_fence();
#pragma unroll 1
        for (int s = 0; s < stages; s++)
            feed.next(q_map MAP_PASS);
    }
    if (threadIdx.x < zeros_bytes / 4)
        ((u32*)nothing)[threadIdx.x] = 0;
    Pack<GAIN, 8> first_gain = {};
#if NORM
    if (threadIdx.x % (256 / MR) * 8 < g.k)
        first_gain = ((const Pack<GAIN, 8>*)gain)[threadIdx.x % (256 / MR)];
#endif
    Result result;
    result.there = false;
    if (member < results)
        result.locate(member, unit, end, share, scales, scale_n, g);
    grid_wait();
    // The memory of the sums is free until the rows arrive.
    take_rows(x, pitch, depth, sums, a, gain, first_gain, bias, epsilon, g);
    sync(); // for the rows, and for each warp's mbarriers
    const Lane l;
    Origin origin[2];
    origin[0].set(0), origin[1].set(0);
    Sums own;
    own.clear();
    float* group_sums = sums + group * keep * of_group / 32 * MR * tile_columns;
    int slot = 0, kept = 0;
    u32 phase = 0;
#pragma unroll 1
    for (; unit < end; unit++) {
        if (kept == 0)
            result.read(g EPI_PASS);
#if ZEROS == 1
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const i64 n = (i64)unit * tile_columns + l.column(i);
            origin[i].set((i32)zeros[column_of_b((u32)(n < g.n ? n : g.n - 1), g) * zero_n]);
        }
#endif
#pragma unroll 1
        for (int tile = first; tile < depth; tile += share) {
            mbar_wait(bars + slot * 8, phase);
            own.add_tile(tiles + slot * tile_bytes, own_extras + slot * extra_bytes,
                         x + tile * (tile_elements * 2), pitch, nothing, l, origin);
            sync_warp();
            if (lane == 0)
                feed.next(q_map MAP_PASS);
            slot++;
            if (slot == stages)
                slot = 0, phase ^= 1;
        }
        own.store(group_sums + (kept * share + first) * (MR * tile_columns), l);
        own.clear();
        if (++kept < keep && unit + 1 < end)
            continue;
        sync_some(group + 1, of_group);
        result.store(group_sums, share, g, out EPI_PASS);
        if (member < results)
            result.locate(member, unit + 1, end, share, scales, scale_n, g);
        sync_some(group + 1, of_group);
        kept = 0;
    }
}
