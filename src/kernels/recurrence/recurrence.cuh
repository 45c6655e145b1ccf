// SPDX-License-Identifier: Apache-2.0
// The steps of a recurrent layer. The warps of a cluster of BLOCKS blocks, which has COLUMNS * 8
// sequences of a direction, share the hidden elements, TILES tiles of four a warp, and each
// computes all gates of its elements: a tile of 16 rows of r is gates 0 to 3 of four elements. The
// products have rows of r on the left and states on the right. A row has CHUNKS pieces of 64 bytes:
// HELD of them stay in registers for all steps and KEPT in shared memory; the others are read in
// each step. States go to all blocks of the cluster through shared memory: two buffers, since a
// block has all of step t + 1 only when all warps have read step t.
// APART: a launch is one step, whose blocks are no cluster: states lie in memory between launches,
// and the weights held are loaded before the launch before has ended.
// T elements, in f32 states and sums. KIND 0: products of halves; 1: of TF32; 2: of f32, as three
// of TF32. CELL 0 rnn, 1 gru (the reset scales the product), 2 lstm. The functions gate_of,
// candidate_of and output_of come before this file.
struct Recurrent {
    i32 steps, batch, hidden, directions;
    i32 groups;        // of sequences, in a direction
    i32 reversed;      // bit d: direction d begins at a sequence's last step
    i32 early;         // r is constant
    i32 begin, blocks; // APART: the step, the blocks of a group
};
#define GATES (CELL == 2 ? 4 : CELL == 1 ? 3 : 1)
#define WIDE (KIND != 0)
#define EACH (16 / (int)sizeof(T)) // elements of 16 bytes
#define PITCH ((CHUNKS * 64) | 64) // bytes of a sequence's states: an odd multiple of 64

#if BLOCKS > 1
/// As st_async4, for two floats.
DEVICE void st_async2(u32 to, const float* v, u32 bar) {
#ifdef INGOT_EMULATED
    INGOT_RUNTIME.st_async(to, v, 8, bar);
#else
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 "
                 "[%0],{%1,%2},[%3];" ::"r"(to),
                 "f"(v[0]), "f"(v[1]), "r"(bar)
                 : "memory");
#endif
}
#endif
/// The place of a thread in its tiles: element `unit` of sequence `column`.
struct Place {
    int lane, row, part;  // row of a fragment, and which 16 bytes of its chunks
    int tile;             // the first
    int direction, first; // sequence
    DEVICE int unit(int i) const { return (tile + i) * 4 + (row & 3); }
    DEVICE int column(int n) const { return n * 8 + part * 2 + (lane >> 4); }
};
struct __align__(16) Words {
    u32 v[4];
};
DEVICE u32 bits_of(F16 v) {
    return v.bits;
}
DEVICE u32 bits_of(BF16 v) {
    return v.bits;
}
DEVICE u32 bits_of(float v) {
    return __float_as_uint(v);
}
/// Elements k to k + EACH of a row; zeros where there are none.
DEVICE Words row_words(const T* row, int k, int hidden) {
    Words w;
#if VECTOR == 16
    uint4 v = make_uint4(0, 0, 0, 0);
    if (k < hidden)
        v = *(const uint4*)(row + k);
    w.v[0] = v.x, w.v[1] = v.y, w.v[2] = v.z, w.v[3] = v.w;
#else
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const int each = EACH / 4, at = k + e * each;
#if VECTOR == 4
        w.v[e] = at < hidden ? *(const u32*)(row + at) : 0u;
#else
        u32 word = at < hidden ? bits_of(row[at]) : 0u;
        if (each == 2 && at + 1 < hidden)
            word |= bits_of(row[at + 1]) << 16;
        w.v[e] = word;
#endif
    }
#endif
    return w;
}
/// Rows `low` and `high` of a tile's fragment in one chunk.
struct Weights {
    Words low, high;
};
DEVICE Weights weights_of(const T* r, int unit, int row, int k, const Recurrent& s) {
    Weights w;
#pragma unroll
    for (int e = 0; e < 4; e++)
        w.low.v[e] = w.high.v[e] = 0u;
    const int gate = row >> 2;
    if (unit < s.hidden) {
        if (gate < GATES)
            w.low = row_words(r + ((i64)gate * s.hidden + unit) * s.hidden, k, s.hidden);
        if (gate + 2 < GATES)
            w.high = row_words(r + ((i64)(gate + 2) * s.hidden + unit) * s.hidden, k, s.hidden);
    }
    return w;
}
/// As products read them: once for all steps where that is all of it.
DEVICE void round_weights(Weights& w) {
#if KIND == 1
#pragma unroll
    for (int e = 0; e < 4; e++) {
        w.low.v[e] = cvt_tf32(__uint_as_float(w.low.v[e]));
        w.high.v[e] = cvt_tf32(__uint_as_float(w.high.v[e]));
    }
#endif
}
DEVICE u32 rest_of(u32 v, u32 rounded) {
    return cvt_tf32(__uint_as_float(v) - __uint_as_float(rounded));
}
/// sums += the products of words e and e + 1.
DEVICE void multiply(float* sums, const Weights& w, const Words& h, int e) {
    const u32 a[4] = {w.low.v[e], w.high.v[e], w.low.v[e + 1], w.high.v[e + 1]};
#if KIND == 0
    if (IS_BF16)
        mma_bf16(sums, a, h.v[e], h.v[e + 1]);
    else
        mma_f16(sums, a, h.v[e], h.v[e + 1]);
#elif KIND == 1
    mma_tf32(sums, a, h.v[e], h.v[e + 1]);
#else
    u32 near[4], rest[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        near[i] = cvt_tf32(__uint_as_float(a[i]));
        rest[i] = rest_of(a[i], near[i]);
    }
    const u32 b0 = cvt_tf32(__uint_as_float(h.v[e]));
    const u32 b1 = cvt_tf32(__uint_as_float(h.v[e + 1]));
    mma_tf32(sums, rest, b0, b1);
    mma_tf32(sums, near, rest_of(h.v[e], b0), rest_of(h.v[e + 1], b1));
    mma_tf32(sums, near, b0, b1);
#endif
}
/// A state as products read it.
DEVICE u32 stored_state(float h) {
#if KIND == 1
    return cvt_tf32(h);
#else
    return bits_of(narrow<T>(h));
#endif
}
/// The step's inputs of a thread's element, by gate.
struct Given {
    T v[GATES];
};
/// Where the inputs and results of step t are.
DEVICE int place_of_step(int t, int length, bool backwards) {
    return backwards && t < length ? length - 1 - t : t;
}

KERNEL void __launch_bounds__(THREADS, 1)
    recurrence(const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ h0,
               const T* __restrict__ c0, const T* __restrict__ reset_bias,
               const T* __restrict__ peepholes, const i64* __restrict__ lengths, T* last_h,
               T* last_c, T* y, float* between, const Recurrent s) {
    begin_kernel();
    SHARED(shared);
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
#if APART
    const int rank = blockIdx.x % s.blocks, group = blockIdx.x / s.blocks;
    const int begin = s.begin, end = s.begin < s.steps ? s.begin + 1 : s.steps;
#else
    const int rank = BLOCKS > 1 ? (int)cluster_rank() : 0, group = blockIdx.x / BLOCKS;
    const int begin = 0, end = s.steps;
#endif
    Place p;
    p.lane = threadIdx.x % 32;
    p.row = p.lane / 4;
    p.part = p.lane % 4;
    p.tile = (rank * warps + warp) * TILES;
    p.direction = group / s.groups;
    p.first = group % s.groups * (COLUMNS * 8);
    const int tiles = (s.hidden + 3) / 4;
    const int size = COLUMNS * 8 * PITCH;                           // of a buffer of states
    const u32 states = smem_addr(shared), bars = states + 2 * size; // 16 bytes of mbarriers
    (void)bars;
    const T* own = r + (i64)p.direction * GATES * s.hidden * s.hidden;
    // Weights in shared memory: rows low, then rows high, 16 bytes a lane.
    u8* kept = shared + 2 * size + 16 + warp * (TILES * KEPT * 1024) + p.lane * 16;
    (void)kept;
    if (!s.early)
        grid_wait();
    Weights held[TILES][HELD > 0 ? HELD : 1];
#pragma unroll
    for (int i = 0; i < TILES; i++) {
#pragma unroll
        for (int c = 0; c < HELD; c++) {
            held[i][c] = weights_of(own, p.unit(i), p.row, (c * 4 + p.part) * EACH, s);
            round_weights(held[i][c]);
        }
#pragma unroll 2
        for (int c = 0; c < KEPT; c++) {
            Weights w = weights_of(own, p.unit(i), p.row, ((HELD + c) * 4 + p.part) * EACH, s);
            round_weights(w);
            u8* to = kept + (i * KEPT + c) * 1024;
            *(Words*)to = w.low;
            *(Words*)(to + 512) = w.high;
        }
    }
    if (s.early)
        grid_wait();

    // Both buffers begin as zeros, the first step's with the states before it.
    for (int i = threadIdx.x * 16; i < 2 * size; i += blockDim.x * 16)
        *(uint4*)(shared + i) = make_uint4(0, 0, 0, 0);
    sync();
    const int count = s.batch - p.first < COLUMNS * 8 ? s.batch - p.first : COLUMNS * 8;
    const i64 base = (i64)p.direction * s.batch + p.first; // row of states
    // Between launches: h of even and of odd steps, c.
    const i64 all = (i64)s.directions * s.batch * s.hidden;
    const float* h_before = between + (begin & 1) * all;
    float *h_after = between + (begin + 1 & 1) * all, *cells = between + 2 * all;
    (void)h_before, (void)h_after, (void)cells;
    auto state_before = [&](i64 at) { return begin == 0 ? widen(h0[at]) : h_before[at]; };
    for (int i = threadIdx.x; i < count * s.hidden; i += blockDim.x) {
        const int column = i / s.hidden, unit = i % s.hidden;
        const float v = state_before(base * s.hidden + i);
        u8* to = shared + (begin & 1) * size + column * PITCH + unit * (int)sizeof(T);
        if (WIDE)
            *(u32*)to = stored_state(v);
        else
            *(u16*)to = (u16)stored_state(v);
    }
#if BLOCKS > 1
    // The bytes of all tiles of a step arrive at the mbarrier of their buffer.
    const u32 arriving = tiles * (COLUMNS * 32 * (int)sizeof(T));
    if (threadIdx.x == 0) {
        mbar_init(bars, 1);
        mbar_init(bars + 8, 1);
        mbar_init_fence();
        mbar_expect(bars, arriving);
        mbar_expect(bars + 8, arriving);
    }
    cluster_sync();
#else
    sync();
#endif

    const bool backwards = (s.reversed >> p.direction & 1) != 0;
    const int width = s.directions * GATES * s.hidden;
    float h[TILES][COLUMNS], c[TILES][COLUMNS], bias[TILES];
    int length[COLUMNS];
#pragma unroll
    for (int n = 0; n < COLUMNS; n++) {
        length[n] = s.steps;
#if LENGTHS
        if (p.column(n) < count) {
            const i64 l = lengths[p.first + p.column(n)];
            length[n] = l < 0 ? 0 : l < s.steps ? (int)l : s.steps;
        }
#endif
    }
    auto is_real = [&](int i, int n) { return p.unit(i) < s.hidden && p.column(n) < count; };
    auto place_of = [&](int i, int n) { return (base + p.column(n)) * s.hidden + p.unit(i); };
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        bias[i] = 0.0f;
        if (CELL == 1 && p.unit(i) < s.hidden)
            bias[i] = widen(reset_bias[p.direction * s.hidden + p.unit(i)]);
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            h[i][n] = c[i][n] = 0.0f;
            if (is_real(i, n)) {
                h[i][n] = state_before(place_of(i, n));
                if (CELL == 2)
                    c[i][n] = begin == 0 ? widen(c0[place_of(i, n)]) : cells[place_of(i, n)];
            }
        }
    }
    auto fetch = [&](Given(&to)[TILES][COLUMNS], int t) {
#pragma unroll
        for (int i = 0; i < TILES; i++) {
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                const bool real = is_real(i, n) && t < s.steps;
                const int at = place_of_step(t, length[n], backwards);
                const T* from = x + ((i64)at * s.batch + p.first + p.column(n)) * width +
                                p.direction * GATES * s.hidden + p.unit(i);
#pragma unroll
                for (int g = 0; g < GATES; g++)
                    to[i][n].v[g] = real ? from[g * s.hidden] : narrow<T>(0.0f);
            }
        }
    };
    Given given[TILES][COLUMNS];
    fetch(given, begin);
#pragma unroll 1
    for (int t = begin; t < end; t++) {
        Given coming[TILES][COLUMNS];
        if (!APART)
            fetch(coming, t + 1);
        const u8* now = shared + (t & 1) * size;
#if BLOCKS > 1
        if (t > 0) {
            const u32 bar = bars + (t & 1) * 8;
            mbar_wait_cluster(bar, (t - 1) >> 1 & 1);
            if (threadIdx.x == 0)
                mbar_expect(bar, arriving);
        }
#endif
        float sums[TILES][COLUMNS][2][4];
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int n = 0; n < COLUMNS; n++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    sums[i][n][0][k] = sums[i][n][1][k] = 0.0f;
        constexpr int at_once = APART ? 4 : 2; // chunks that are waited for together
        const T* read = own;
        opaque(read); // weights that are not held are read in this step
        auto chunk = [&](int k, const Weights(&w)[TILES]) {
            Words state[COLUMNS];
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                const uint4 v =
                    *(const uint4*)(now + (n * 8 + p.row) * PITCH + k * 64 + p.part * 16);
                state[n].v[0] = v.x, state[n].v[1] = v.y;
                state[n].v[2] = v.z, state[n].v[3] = v.w;
            }
#pragma unroll
            for (int i = 0; i < TILES; i++) {
#pragma unroll
                for (int n = 0; n < COLUMNS; n++) {
                    multiply(sums[i][n][0], w[i], state[n], 0);
                    multiply(sums[i][n][1], w[i], state[n], 2);
                }
            }
        };
        if (p.tile < tiles) {
            Weights w[TILES];
#pragma unroll
            for (int k = 0; k < HELD; k++) {
#pragma unroll
                for (int i = 0; i < TILES; i++)
                    w[i] = held[i][k];
                chunk(k, w);
            }
#pragma unroll 2
            for (int k = 0; k < KEPT; k++) {
#pragma unroll
                for (int i = 0; i < TILES; i++) {
                    const u8* from = kept + (i * KEPT + k) * 1024;
                    w[i].low = *(const Words*)from;
                    w[i].high = *(const Words*)(from + 512);
                }
                chunk(HELD + k, w);
            }
#pragma unroll(at_once)
            for (int k = HELD + KEPT; k < CHUNKS; k++) {
#pragma unroll
                for (int i = 0; i < TILES; i++) {
                    w[i] = weights_of(read, p.unit(i), p.row, (k * 4 + p.part) * EACH, s);
                    round_weights(w[i]);
                }
                chunk(k, w);
            }
        }
        u32 next = (t + 1 & 1) * size;
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            if (p.tile + i >= tiles)
                break;
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                float product[4];
#pragma unroll
                for (int k = 0; k < 4; k++)
                    product[k] = sums[i][n][0][k] + sums[i][n][1][k];
                // A lane below 16 has gates 0 and 2 of two columns, the other half 1 and 3:
                // each keeps its own column.
                const bool upper = p.lane >= 16;
                const float first = shfl_xor(upper ? product[0] : product[1], 16);
                const float second = shfl_xor(upper ? product[2] : product[3], 16);
                const float kept = upper ? product[1] : product[0];
                const float also = upper ? product[3] : product[2];
                const float q[4] = {upper ? first : kept, upper ? kept : first,
                                    upper ? second : also, upper ? also : second};
                const T* in = given[i][n].v;
                float before = h[i][n], after;
#if CELL == 0
                after = gate_of(widen(in[0]) + q[0]);
#elif CELL == 1
                const float z = gate_of(widen(in[0]) + q[0]);
                const float reset = gate_of(widen(in[1]) + q[1]);
                const float inner = candidate_of(widen(in[2]) + reset * (q[2] + bias[i]));
                after = (1.0f - z) * inner + z * before;
#else
                float peep[3] = {0.0f, 0.0f, 0.0f};
#if PEEPHOLES
                if (p.unit(i) < s.hidden)
#pragma unroll
                    for (int k = 0; k < 3; k++)
                        peep[k] = widen(peepholes[(p.direction * 3 + k) * s.hidden + p.unit(i)]);
#endif
                float cell = c[i][n];
                const float enter = gate_of(widen(in[0]) + q[0] + peep[0] * cell);
                const float keep =
                    INPUT_FORGET ? 1.0f - enter : gate_of(widen(in[2]) + q[2] + peep[2] * cell);
                cell = keep * cell + enter * candidate_of(widen(in[3]) + q[3]);
                after = gate_of(widen(in[1]) + q[1] + peep[1] * cell) * output_of(cell);
#endif
                const bool real = is_real(i, n);
                const bool runs = !LENGTHS || t < length[n];
                if (real) {
                    const int at = place_of_step(t, length[n], backwards);
                    const i64 row = ((i64)at * s.directions + p.direction) * s.batch + p.first;
                    y[(row + p.column(n)) * s.hidden + p.unit(i)] = narrow<T>(runs ? after : 0.0f);
                }
                after = real ? runs ? after : before : 0.0f;
                h[i][n] = after;
#if CELL == 2
                c[i][n] = runs ? cell : c[i][n];
#endif
                // Four lanes gather the states of the tile's four elements.
                const u32 mine = stored_state(after), other = shfl_xor(mine, 4);
                const bool odd = (p.row & 1) != 0, behind = (p.row & 2) != 0;
                const u32 a = odd ? other : mine, b = odd ? mine : other;
                const u32 to =
                    states + next + p.column(n) * PITCH + (p.tile + i) * 4 * (int)sizeof(T);
                const u32 from = p.row & 3; // the first block that this lane sends to
                (void)to, (void)from;
#if WIDE
                const u32 a2 = shfl_xor(a, 8), b2 = shfl_xor(b, 8);
                const float quad[4] = {
                    __uint_as_float(behind ? a2 : a), __uint_as_float(behind ? b2 : b),
                    __uint_as_float(behind ? a : a2), __uint_as_float(behind ? b : b2)};
#else
                const u32 pair = a | b << 16, pair2 = shfl_xor(pair, 8);
                const float quad[2] = {__uint_as_float(behind ? pair2 : pair),
                                       __uint_as_float(behind ? pair : pair2)};
#endif
                if (t + 1 < end) {
#if BLOCKS > 1
                    for (u32 k = from; k < BLOCKS; k += 4) {
                        const u32 bar = cluster_address(bars + (t + 1 & 1) * 8, k);
#if WIDE
                        st_async4(cluster_address(to, k), quad, bar);
#else
                        st_async2(cluster_address(to, k), quad, bar);
#endif
                    }
#else
                    if (from == 0) {
#pragma unroll
                        for (int k = 0; k < (WIDE ? 4 : 2); k += 2)
                            st_shared2(to + k * 4, quad[k], quad[k + 1]);
                    }
#endif
                }
            }
        }
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int n = 0; n < COLUMNS; n++)
                given[i][n] = coming[i][n];
#if BLOCKS == 1 && !APART
        sync();
#endif
    }
    end_main_loop();
    const bool ends = end == s.steps;
#pragma unroll
    for (int i = 0; i < TILES; i++) {
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
            if (!is_real(i, n))
                continue;
            const i64 at = place_of(i, n);
            if (ends) {
                last_h[at] = narrow<T>(h[i][n]);
                if (CELL == 2)
                    last_c[at] = narrow<T>(c[i][n]);
            } else if (APART) {
                h_after[at] = h[i][n];
                if (CELL == 2)
                    cells[at] = c[i][n];
            }
        }
    }
}
