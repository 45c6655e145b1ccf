// SPDX-License-Identifier: Apache-2.0
// softmax(q k^T * scale + mask) v for f16, bf16 and f32 (as TF32) with online softmax in f32:
// mma.sync and cp.async. Results are E, or with BYTES rounded to bytes. Every block reads its rows
// of q once, and all keys and values visible to them. E stored elements; DH elements of a key and
// DV of a value, even, with ACROSS DV a multiple of 4, padded to D and W in shared memory only;
// COPIED bytes of a row, 16, 8 or 4, are aligned; MI * 16 rows a warp, NW warps, BN keys a stage,
// SN of them a step; QREG: q stays in registers; SPLIT: sums go to scratch. ACROSS: the warps share
// the rows, and each has its own keys of a stage, NW * SN in all. CLUSTER > 1: the blocks of a
// cluster share fewer than 16 rows and split the keys; each block receives the others' sums for its
// share of the results, and adds them in order. SKIPS: keys that the mask hides from all rows are
// not read before the first that it shows, nor behind the last, such as a buffer's unused rows.
#define STEP (TF32 ? 8 : 16) // of the depth, by one instruction
#define PADDED(n) (((n) + STEP - 1) / STEP * STEP)
#define D PADDED(DH)
#define W PADDED(DV)
#define BM (16 * MI * (ACROSS ? 1 : NW))
#define NT (32 * NW)
constexpr int widest = D > W ? D : W;
constexpr int pitch = TF32 ? widest * 4 + 16 : widest * 2; // bytes of a row in shared memory
constexpr int per_chunk = 16 / sizeof(E);
/// Chunk c of row r, placed so that ldmatrix has no bank conflicts: f32 by the pitch, else
/// swizzled.
DEVICE u32 chunk_at(int r, int c) {
    int x = TF32 ? 0 : widest % 64 == 0 ? r & 7 : widest % 32 == 0 ? (r >> 1) & 3 : (r >> 2) & 1;
    return (u32)(r * pitch + ((c ^ x) << 4));
}
/// chunk_at(r, c + 2 * d) from chunk_at(r, c) with c < 2.
DEVICE u32 along(u32 at, int d) {
    if (TF32 || widest % 32 != 0)
        return at + d * 32;
    return widest % 64 == 0 ? (at ^ (d & 3) * 32) + (d >> 2) * 128
                            : (at ^ (d & 1) * 32) + (d >> 1) * 64;
}
/// The rows of a stage that some step uses.
DEVICE int used_rows(int rows) {
    return rows < BN ? (rows + SN - 1) / SN * SN : BN;
}
/// Chunk c of the row of N elements at `from`, with zeros behind its end; all zeros if not `ok`.
template <int N>
DEVICE void copy_chunk(u32 to, const E* from, int c, bool ok) {
    constexpr int piece = COPIED / sizeof(E);
#pragma unroll
    for (int e = 0; e < per_chunk; e += piece) {
        bool in = ok && c * per_chunk + e < N;
        const E* at = from + (in ? c * per_chunk + e : 0);
        if (COPIED == 16)
            cp_async16(to, at, in ? 16 : 0);
        else if (COPIED == 8)
            cp_async8(to + e * sizeof(E), at, in ? 8 : 0);
        else
            cp_async4(to + e * sizeof(E), at, in ? 4 : 0);
    }
}
template <int N>
DEVICE void fill_tile(u32 to, const E* from, i64 stride, int row, int rows) {
    constexpr int chunks = PADDED(N) / per_chunk;
    const int count = used_rows(rows - row) * chunks;
#pragma unroll(DH == DV ? 2 : 1) // two widths have two such loops
    for (int i = threadIdx.x; i < count; i += NT) {
        int r = i / chunks, c = i % chunks;
        bool ok = row + r < rows;
        copy_chunk<N>(to + chunk_at(r, c), from + (ok ? (i64)(row + r) * stride : 0), c, ok);
    }
}
DEVICE void round_tf32(u32* v) {
#if TF32
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = cvt_tf32(__uint_as_float(v[i]));
#endif
}
DEVICE void read_q(u32 (*q)[4], u32 at, int d) {
#pragma unroll
    for (int i = 0; i < MI; i++) {
        ldmatrix4(q[i], along(at, d) + i * 16 * pitch);
        round_tf32(q[i]);
    }
}
#if TF32
/// o += weights times the values at `v`: this thread's rows 2 * (lane % 4) and column lane / 4. The
/// keys of a step are permuted, so that the weights stay in place.
DEVICE void add_values(float (*o)[W / 2], const float (*s)[SN / 2], const float* v) {
#pragma unroll
    for (int j = 0; j < SN / 8; j++) {
        u32 p[MI][4];
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                p[i][k] = cvt_tf32(s[i][4 * j + (k & 1) * 2 + (k >> 1)]);
#pragma unroll
        for (int d = 0; d < W / 8; d++) {
            const float* at = v + j * 8 * (pitch / 4) + d * 8;
            u32 b0 = cvt_tf32(at[0]), b1 = cvt_tf32(at[pitch / 4]);
#pragma unroll
            for (int i = 0; i < MI; i++)
                mma_tf32(o[i] + 4 * d, p[i], b0, b1);
        }
    }
}
#else
DEVICE void add_values(float (*o)[W / 2], const float (*s)[SN / 2], u32 v) {
#pragma unroll
    for (int j = 0; j < SN / 16; j++) {
        u32 p[MI][4];
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                p[i][k] = PACK(s[i][8 * j + 2 * k], s[i][8 * j + 2 * k + 1]);
#pragma unroll
        for (int d = 0; d < W / 16; d++) {
            u32 b[4];
            ldmatrix4_trans(b, along(v, d) + j * 16 * pitch);
#pragma unroll
            for (int i = 0; i < MI; i++) {
                MMA(o[i] + 8 * d, p[i], b[0], b[1]);
                MMA(o[i] + 8 * d + 4, p[i], b[2], b[3]);
            }
        }
    }
}
#endif

/// Two adjoining results, or sums.
DEVICE void store_two(float* to, float x, float y EPI_PARAMS) {
    Pack<float, 2> both = {{x, y}};
    *(Pack<float, 2>*)to = both;
}
#if BYTES
DEVICE void store_two(u8* to, float x, float y EPI_PARAMS) {
#if TF32
    *(u16*)to = (u16)rounded(x, y EPI_PASS);
#else
    *(u16*)to = (u16)rounded(PACK(x, y) EPI_PASS);
#endif
}
#elif !TF32
DEVICE void store_two(u16* to, float x, float y EPI_PARAMS) {
    *(u32*)to = PACK(x, y);
}
#endif

#define SKIPS (ACROSS && STAGED)
#if SKIPS
/// Narrows [first, last) to the keys from the first to the last that the mask shows. `room`: two
/// words for each warp, which later code writes behind a barrier.
DEVICE void shown_keys(const M* mask, i64 stride, int& first, int& last, u32* room) {
    u32 low = last, high = first;
#pragma unroll 4
    for (int c = first + threadIdx.x; c < last; c += NT)
        if (staged_mask(mask[c * stride]) != hidden()) {
            low = low < (u32)c ? low : c;
            high = c + 1;
        }
#pragma unroll
    for (int m = 16; m > 0; m >>= 1) {
        const u32 l = shfl_xor(low, m), h = shfl_xor(high, m);
        low = l < low ? l : low;
        high = h > high ? h : high;
    }
    if ((threadIdx.x & 31) == 0) {
        room[threadIdx.x >> 4] = low;
        room[(threadIdx.x >> 4) + 1] = high;
    }
    sync();
#pragma unroll
    for (int w = 0; w < NW; w++) {
        low = room[2 * w] < low ? room[2 * w] : low;
        high = room[2 * w + 1] > high ? room[2 * w + 1] : high;
    }
    last = low < high ? high : first; // none: nothing is left
    first = low < high ? low : first;
}
#endif

#if CLUSTER > 1
constexpr int stage_bytes = (BM + 4 * BN) * pitch + (STAGED ? 8 * BN : 0);
constexpr int part_bytes = NW * BM * (DV + 2) * 4;
constexpr int inbox = stage_bytes > part_bytes ? stage_bytes : part_bytes;
#endif
#if ACROSS
/// Four columns, the maximum and the total of N parts, in order: those of part j are at
/// from + j * step and at marks + j * step.
template <int N>
DEVICE void merge_parts(float* x, const float* from, const float* marks, int step) {
    float top = hidden();
#pragma unroll
    for (int j = 0; j < N; j++)
        top = fmaxf(top, marks[j * step]);
    const float base = top == hidden() ? 0.0f : top;
#pragma unroll
    for (int k = 0; k < 6; k++)
        x[k] = k == 4 ? top : 0.0f;
#pragma unroll
    for (int j = 0; j < N; j++) {
        const float f = ex2((marks[j * step] - base) * log2_e);
        x[5] += marks[j * step + 1] * f;
#pragma unroll
        for (int k = 0; k < 4; k++)
            x[k] += from[j * step + k] * f;
    }
}
/// Stores four columns from e on of a row of the results, from the sums and their total in x.
DEVICE void store_four(RESULT* O, const Attn& a, int g, int row, int e, const float* x EPI_PARAMS) {
    const int head = row / a.queries;
    const float r = x[5] > 0.0f ? 1.0f / x[5] : 0.0f;
    RESULT* to = O + blockIdx.z * a.o[0] + ((i64)g * a.share + head) * a.o[1] +
                 (row - head * a.queries) * a.o[2] + e;
#pragma unroll
    for (int k = 0; k < 4; k += 2)
        store_two(to + k, x[k] * r, x[k + 1] * r EPI_PASS);
}
#endif
KERNEL void __launch_bounds__(NT, 1)
    attention_mma(const E* __restrict__ Q, const E* __restrict__ K, const E* __restrict__ V,
                  const M* __restrict__ mask, RESULT* __restrict__ O, float* __restrict__ sums,
                  Attn a EPI_PARAMS) {
    begin_kernel();
    SHARED(sm);
    const u32 tile = BN * pitch, q_s = smem_addr(sm), k_s = q_s + BM * pitch, v_s = k_s + 2 * tile;
    float* bias = (float*)(sm + BM * pitch + 4 * tile);
    int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5, w = ACROSS ? 0 : warp;
#if CLUSTER > 1
    int g = blockIdx.y, split = blockIdx.x, m0 = 0;
    cluster_arrive(); // that all have begun is known when they exchange
#else
    int g = blockIdx.y % a.groups, split = blockIdx.y / a.groups, m0 = blockIdx.x * BM;
#endif
    int rows = a.share * a.queries, first, last;
    key_range(a, split, m0, BM, first, last);
    const E* q = Q + blockIdx.z * a.q[0] + (i64)g * a.share * a.q[1];
    const E* k = K + blockIdx.z * a.k[0] + (i64)g * a.k[1];
    const E* v = V + blockIdx.z * a.v[0] + (i64)g * a.v[1];
    mask += MASK ? blockIdx.z * a.m[0] : 0;
    int steps = (last - first + BN - 1) / BN;
#if STAGED
    M next = M();
    const M* mask_row = mask + (i64)g * a.share * a.m[1];
#endif
#if SKIPS
    int skipped = 0; // keys between the first step and the second
#else
    constexpr int skipped = 0;
#endif
    auto fetch = [&](int n) {
        int key = first + n * BN + (n > 0 ? skipped : 0);
#if DH == DV
#pragma unroll 1
        for (int x = 0; x < 2; x++)
            fill_tile<DH>((x ? v_s : k_s) + (n & 1) * tile, x ? v : k, x ? a.v[2] : a.k[2], key,
                          last);
#else
        fill_tile<DH>(k_s + (n & 1) * tile, k, a.k[2], key, last);
        fill_tile<DV>(v_s + (n & 1) * tile, v, a.v[2], key, last);
#endif
#if STAGED
        int c = key + tid < a.keys ? key + tid : a.keys - 1; // `edge` hides keys that are none
        next = mask_row[c * a.m[3]];
#endif
    };
    grid_wait();
    if (steps > 0)
        fetch(0);
    constexpr int chunks = D / per_chunk;
#pragma unroll 1
    for (int i = tid; i < BM * chunks; i += NT) {
        int r = i / chunks, c = i % chunks, row = m0 + r;
        bool ok = row < rows;
        int head = row / a.queries, s = row - head * a.queries;
        copy_chunk<DH>(q_s + chunk_at(r, c), q + (ok ? head * a.q[1] + s * a.q[2] : 0), c, ok);
    }
    cp_async_commit();
#if SKIPS
    if (steps > 2) { // the first step is on its way
        int shown = first, end = last;
        shown_keys(mask_row, a.m[3], shown, end, (u32*)(bias + BN));
        last = end;
        skipped = shown - first >= 2 * BN ? (shown - first) / BN * BN - BN : 0;
        steps = (last - first - skipped + BN - 1) / BN;
    }
#endif
    int hides = first_hidden(a, m0, BM, last);
    float o[MI][W / 2];
    Softmax softmax[MI];
#pragma unroll
    for (int i = 0; i < MI; i++) {
#pragma unroll
        for (int j = 0; j < W / 2; j++)
            o[i][j] = 0.0f;
        softmax[i].start(a, mask, g, m0 + (w * MI + i) * 16 + (lane >> 2), last);
    }
    u32 q_at = q_s + chunk_at(w * MI * 16 + (lane & 15), lane >> 4);
    u32 k_at = chunk_at((lane & 7) + ((lane >> 4) << 3), (lane >> 3) & 1);
#if QREG
    u32 qf[D / STEP][MI][4];
#endif
#if STAGED
    if (tid < BN)
        bias[tid] = staged_mask(next);
#endif
#pragma unroll 1
    for (int n = 1; n <= steps; n++) {
        if (n < steps)
            fetch(n);
        cp_async_commit();
        cp_async_wait<1>();
        sync();
        const int from = first + (n - 1) * BN + (n > 1 ? skipped : 0);
        const int used = used_rows(last - from);
#if QREG
        if (n == 1) {
#pragma unroll
            for (int d = 0; d < D / STEP; d++)
                read_q(qf[d], q_at, d);
        }
#endif
#pragma unroll 1
        for (int h = ACROSS ? warp * SN : 0; h < used; h += ACROSS ? BN : SN) {
            int key = from + h;
            u32 at = ((n - 1) & 1) * tile + h * pitch, kb = k_s + at;
            float s[MI][SN / 2];
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int j = 0; j < SN / 2; j++)
                    s[i][j] = 0.0f;
#pragma unroll(QREG ? D / STEP : 4)
            for (int d = 0; d < D / STEP; d++) {
#if !QREG
                u32 qf[1][MI][4];
                read_q(qf[0], q_at, d);
#endif
#pragma unroll
                for (int j = 0; j < SN / 16; j++) {
                    u32 b[4];
                    ldmatrix4(b, kb + along(k_at, d) + j * 16 * pitch);
                    round_tf32(b);
#pragma unroll
                    for (int i = 0; i < MI; i++) {
                        MMA(s[i] + 8 * j, qf[QREG ? d : 0][i], b[0], b[1]);
                        MMA(s[i] + 8 * j + 4, qf[QREG ? d : 0][i], b[2], b[3]);
                    }
                }
            }
            float f[MI][2];
#pragma unroll
            for (int i = 0; i < MI; i++) {
                softmax[i].step(s[i], f[i], a, key, key + SN > hides,
                                bias + ((n - 1) & 1) * BN + h);
                rescale<W>(o[i], f[i]);
            }
#if TF32
            add_values(o, s,
                       (const float*)(sm + BM * pitch + 2 * tile + at + (lane & 3) * 2 * pitch) +
                           (lane >> 2));
#else
            add_values(o, s, v_s + at + chunk_at(lane & 15, lane >> 4));
#endif
        }
        sync();
#if STAGED
        if (tid < BN)
            bias[(n & 1) * BN + tid] = staged_mask(next);
#endif
    }
    cp_async_wait<0>();
#if ACROSS
    sync(); // all keys and values have been read: their place takes the sums of each warp
    float* parts = (float*)sm;
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
        for (int t = 0; t < 2; t++) {
            float sum = softmax[i].total(t);
            int row = i * 16 + (lane >> 2) + t * 8;
            if (m0 + row >= rows)
                continue;
            float* to = parts + (warp * BM + row) * (DV + 2);
#pragma unroll
            for (int j = 0; j < W / 8; j++) {
                int e = j * 8 + (lane & 3) * 2;
                if (W != DV && e >= DV)
                    break;
                to[e] = o[i][4 * j + 2 * t];
                to[e + 1] = o[i][4 * j + 2 * t + 1];
            }
            if ((lane & 3) == 0) {
                to[DV] = softmax[i].natural_top(t);
                to[DV + 1] = sum;
            }
        }
    sync();
    const int columns = DV / 4, count = (rows - m0 < BM ? rows - m0 : BM) * columns;
#if CLUSTER > 1
    const int share = (count + CLUSTER - 1) / CLUSTER, mine = blockIdx.x * share;
    cluster_wait();
#endif
#pragma unroll 1
    for (int i = tid; i < count; i += NT) {
        int r = i / columns, e = i % columns * 4;
        const float* from = parts + r * (DV + 2);
        float x[8];
        merge_parts<NW>(x, from + e, from + DV, BM * (DV + 2));
#if CLUSTER > 1
        x[6] = x[7] = 0.0f;
        const int owner = i / share;
        const u32 to = q_s + inbox + (split * share + i - owner * share) * 32;
        st_cluster4(to, owner, x);
        st_cluster4(to + 16, owner, x + 4);
    }
    cluster_sync();
    const float* got = (const float*)(sm + inbox);
#pragma unroll 1
    for (int i = tid; i < share && mine + i < count; i += NT) {
        float x[6];
        merge_parts<CLUSTER>(x, got + i * 8, got + i * 8 + 4, share * 8);
        store_four(O, a, g, (mine + i) / columns, (mine + i) % columns * 4, x EPI_PASS);
    }
#elif SPLIT
        i64 at = ((i64)(blockIdx.z * a.groups + g) * a.splits + split) * rows + m0 + r;
        float* to = sums + at * (DV + 2);
#pragma unroll
        for (int k = 0; k < 4; k++)
            to[e + k] = x[k];
        if (e == 0) {
            to[DV] = x[4];
            to[DV + 1] = x[5];
        }
    }
#else
        store_four(O, a, g, m0 + r, e, x EPI_PASS);
    }
#endif
#else
    end_main_loop();
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
        for (int t = 0; t < 2; t++) {
            float sum = softmax[i].total(t);
            int row = m0 + (w * MI + i) * 16 + (lane >> 2) + t * 8;
            if (row >= rows)
                continue;
#if SPLIT
            i64 at = ((i64)(blockIdx.z * a.groups + g) * a.splits + split) * rows + row;
            float* to = sums + at * (DV + 2) + (lane & 3) * 2;
            const float r = 1.0f;
#else
            float r = sum > 0.0f ? 1.0f / sum : 0.0f;
            int head = row / a.queries;
            RESULT* to = O + blockIdx.z * a.o[0] + ((i64)g * a.share + head) * a.o[1] +
                         (row - head * a.queries) * a.o[2] + (lane & 3) * 2;
#endif
#pragma unroll
            for (int j = 0; j < W / 8; j++) {
                if (W != DV && j * 8 + (lane & 3) * 2 >= DV)
                    break;
                float x = o[i][4 * j + 2 * t] * r, y = o[i][4 * j + 2 * t + 1] * r;
                store_two(to + j * 8, x, y EPI_PASS);
            }
#if SPLIT
            if ((lane & 3) == 0) {
                to[DV] = softmax[i].natural_top(t);
                to[DV + 1] = sum;
            }
#endif
        }
#endif
}
