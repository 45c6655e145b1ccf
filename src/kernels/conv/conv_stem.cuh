// SPDX-License-Identifier: Apache-2.0
// Convolution of few channels (the first of a network) on tensor cores. A block keeps BN columns of
// the weights in shared memory and loops over tiles of 4 ROWS x 16 result positions. It copies the
// input under a tile once, pixels with their CHANNELS adjacent, so that a row of a window is one
// contiguous run, and reads fragments from the runs in place. The depth is (kernel row, run), with
// runs padded to a multiple of 8; elements beyond the window are masked. A pixel has PIXEL
// elements, of which those behind CHANNELS are zeros: runs of 16 bits begin at pairs. X_PLANES:
// rows of a channel are read in vectors of 16 bytes; W_VECTORS: the weights of 8 results are
// adjacent. IN_REGISTERS: sums go through the epilogue (read_columns and epilogue_pair, generated)
// in registers, and as 8 or 16 bits through shared memory, which stores of whole vectors read; 32
// bits are stored from registers. SINGLE: elements of 32 bits are rounded to TF32 where they enter
// shared memory.
// Traffic: the input about 1.5 times, the result once.
constexpr int down = 4 * ROWS, across = 16, threads = 128;
constexpr int panel_pitch = BN + 8, kept_pitch = BN + 8;
constexpr int vector_pixels = 16 / (int)sizeof(IN);
constexpr int panel_bytes = IN_REGISTERS && WORDS ? 0 : 4 * 16 * panel_pitch * (int)sizeof(ACC);

DEVICE IN entered(IN x) {
#if SINGLE
    return __uint_as_float(cvt_tf32(x));
#else
    return x;
#endif
}

struct Stem {
    i64 tiles_w, tiles_h, tiles; // of a row, of an image, of all
    i64 run, depth;              // padded: to 8, and all of the depth to 32 bytes
    i64 pitch, rows;             // of the input under a tile, in elements
    i64 blocks_n;                // of BN columns
    i64 vectors;                 // over a row of the tile's input, wherever it begins
    u64 by_run, by_vectors;      // 2^32 / n, rounded up
};

DEVICE int divide(int n, u64 inverse) {
    return (int)((u64)(u32)n * inverse >> 32);
}

struct StemRows {
    i64 image;
    int h, w, out_h, out_w;
    DEVICE i64 operator()(int r) const {
        int y = h + r / across, x = w + r % across;
        return y < out_h && x < out_w ? (image * out_h + y) * out_w + x : -1;
    }
};

/// Whether an element of a pixel is one of its channels, not a zero behind them.
DEVICE bool is_channel(int c) {
    return PIXEL == CHANNELS || c < CHANNELS;
}

/// [depth][BN], zero where the run is padded.
DEVICE void load_weights(IN* to, const IN* weights, i64 n0, const Geometry& g, const Window& w,
                         const Stem& s) {
    constexpr int wide = W_VECTORS ? vector_pixels : 1, across_n = BN / wide;
    int run = (int)s.run, taps = (int)w.kernel[2] * CHANNELS;
    int left = g.n - n0 < BN ? (int)(g.n - n0) : BN; // columns that there are
#pragma unroll 4
    for (int p = (int)threadIdx.x; p < (int)s.depth * across_n; p += threads) {
        int k = p / across_n, j = p % across_n * wide;
        int r = divide(k, s.by_run), q = k - r * run;
        bool channel = is_channel(q % PIXEL);
        if (PIXEL > CHANNELS)
            q = q / PIXEL * CHANNELS + q % PIXEL;
        bool in = r < (int)w.kernel[1] && q < taps && channel && j < left;
        int from = in ? (r * taps + q) * (int)g.bk[0] + ((int)n0 + j) * (int)g.bn[0] : 0;
#if SINGLE
        Pack<IN, wide> v{};
        if (in)
            v = *(const Pack<IN, wide>*)(weights + from);
#pragma unroll
        for (int i = 0; i < wide; i++)
            v.v[i] = entered(v.v[i]);
        *(Pack<IN, wide>*)(to + k * kept_pitch + j) = v;
#else
        if (W_VECTORS)
            cp_async16(smem_addr(to + k * kept_pitch + j), weights + from, in ? 16 : 0);
        else
            to[k * kept_pitch + j] = in ? weights[from] : IN{};
#endif
    }
    cp_async_commit();
}

/// From x with its channels in planes, with many loads in flight.
DEVICE void load_planes(IN* to, const IN* x, int top, int left, const Window& w, const Stem& s) {
    constexpr int some = PIXEL == CHANNELS ? 4 : 2; // the text of more is long
    int pitch = (int)s.pitch, vectors = (int)s.vectors, begin = left & ~(vector_pixels - 1);
    int count = (int)s.rows * PIXEL * vectors;
#pragma unroll 1
    for (int p = (int)threadIdx.x; p < count; p += some * threads) {
        uint4 v[some];
        int at[some], first[some]; // in the tile, of the vector's first element
#pragma unroll
        for (int i = 0; i < some; i++) {
            int index = p + i * threads, line = divide(index, s.by_vectors);
            int r = line / PIXEL, c = line % PIXEL;
            int h = top + r, column = begin + (index - line * vectors) * vector_pixels;
            first[i] = index < count ? (column - left) * PIXEL + c : pitch;
            at[i] = r * pitch;
            bool in = index < count && is_channel(c) && (u32)h < (u32)w.in[1] &&
                      (u32)column < (u32)w.in[2];
            v[i] = make_uint4(0, 0, 0, 0);
            if (in)
                v[i] = *(const uint4*)(x + (h * (i32)w.step[1] + c * (i32)w.step_c + column));
        }
#pragma unroll
        for (int i = 0; i < some; i++) {
            const u32 words[4] = {v[i].x, v[i].y, v[i].z, v[i].w};
#pragma unroll
            for (int k = 0; k < vector_pixels; k++) {
                int q = first[i] + k * PIXEL;
#if SINGLE
                IN element = entered(__uint_as_float(words[k]));
#else
                IN element;
                element.bits = (u16)(words[k / 2] >> (k % 2 * 16));
#endif
                if ((u32)q < (u32)pitch)
                    to[at[i] + q] = element;
            }
        }
    }
}

DEVICE void load_pixels(IN* to, const IN* x, int top, int left, const Window& w, const Stem& s) {
    constexpr int some = 8; // rows at once
    int warp = (int)(threadIdx.x / 32), lane = (int)(threadIdx.x % 32), pitch = (int)s.pitch;
#pragma unroll 1
    for (int q = lane; q < pitch; q += 32) {
        i32 pixel = q / PIXEL, c = q % PIXEL, at = left + pixel;
        bool inside = is_channel(c) && at >= 0 && at < (i32)w.in[2];
        const IN* column = x + (i64)at * w.step[2] + c * w.step_c;
#pragma unroll 1
        for (int r = warp; r < (int)s.rows; r += 4 * some) {
            IN v[some];
#pragma unroll
            for (int i = 0; i < some; i++) {
                i32 h = top + r + 4 * i;
                bool in = inside && r + 4 * i < (int)s.rows && h >= 0 && h < (i32)w.in[1];
                v[i] = in ? column[(i64)h * w.step[1]] : IN{};
            }
#pragma unroll
            for (int i = 0; i < some; i++)
                if (r + 4 * i < (int)s.rows)
                    to[(r + 4 * i) * pitch + q] = entered(v[i]);
        }
    }
}

struct StemSums {
    ACC v[ROWS][BN / 8][4];
    DEVICE StemSums() {
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < BN / 8; j++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    v[i][j][k] = (ACC)0;
    }
};

#if SINGLE
/// A warp makes ROWS rows of the tile.
DEVICE void multiply_stem(StemSums& sums, const IN* tile, const IN* weights, const Window& w,
                          const Stem& s) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int wide = (int)w.stride[2] * PIXEL, pitch = (int)s.pitch, run = (int)s.run;
    const IN* from =
        tile + ROWS * warp * (int)w.stride[1] * pitch + (lane >> 2) * wide + (lane & 3);
    int next_row = (int)w.stride[1] * pitch;
    // The valid part of a lane's last 8 elements of a run, of which it has two.
    int valid = (int)w.kernel[2] * PIXEL - (run - 8) - (lane & 3);
    weights += (lane & 3) * kept_pitch + (lane >> 2);
    int q = 0; // of the next 8 elements
#pragma unroll 1
    for (int k = 0; k < (int)s.depth; k += 8) {
        bool last = q + 8 == run;
        u32 left = last && valid < 1 ? 0u : 0xffffffffu, right = last && valid < 5 ? 0u : left;
        u32 a[ROWS][4];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const IN* p = from + q + i * next_row + h * 8 * wide;
                a[i][h] = __float_as_uint(p[0]) & left;
                a[i][2 + h] = __float_as_uint(p[4]) & right;
            }
        q += 8;
        if (last)
            q = 0, from += pitch;
#pragma unroll
        for (int j = 0; j < BN / 8; j++) {
            u32 b0 = __float_as_uint(weights[j * 8]),
                b1 = __float_as_uint(weights[j * 8 + 4 * kept_pitch]);
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                MMA(sums.v[i][j], a[i], b0, b1);
        }
        weights += 8 * kept_pitch;
    }
}
#else
/// A warp makes ROWS rows of the tile.
DEVICE void multiply_stem(StemSums& sums, const IN* tile, const IN* kept, const Window& w,
                          const Stem& s) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int wide = (int)w.stride[2] * PIXEL, pitch = (int)s.pitch, run = (int)s.run;
    const IN* from =
        tile + ROWS * warp * (int)w.stride[1] * pitch + (lane >> 2) * wide + (lane & 3) * 2;
    int next_row = (int)w.stride[1] * pitch;
    // The valid part of a lane's last 8 elements of a run.
    int valid = (int)w.kernel[2] * PIXEL - (run - 8) - (lane & 3) * 2;
    u32 edge = valid >= 2 ? 0xffffffffu : valid == 1 ? 0xffffu : 0u;
    u32 weights = smem_addr(kept + (lane & 15) * kept_pitch + (lane >> 4) * 8);
    int r = 0, q = 0; // of the next 8 elements
#pragma unroll 1
    for (int k = 0; k < (int)s.depth; k += 16) {
        u32 a[ROWS][4];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            bool some = r < (int)w.kernel[1];
            u32 mask = !some ? 0u : q + 8 == run ? edge : 0xffffffffu;
            const IN* p = from + (some ? r * pitch + q : 0);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                a[i][half * 2] = *(const u32*)(p + i * next_row) & mask;
                a[i][half * 2 + 1] = *(const u32*)(p + i * next_row + 8 * wide) & mask;
            }
            q += 8;
            if (q == run)
                q = 0, r++;
        }
#pragma unroll
        for (int j = 0; j < BN / 16; j++) {
            u32 b[4];
            ldmatrix4_trans(b, weights + (k * kept_pitch + j * 16) * (int)sizeof(IN));
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                MMA(sums.v[i][2 * j], a[i], b[0], b[1]);
                MMA(sums.v[i][2 * j + 1], a[i], b[2], b[3]);
            }
        }
    }
}
#endif

#if IN_REGISTERS
constexpr int row_vectors = BN / 8; // of a row
struct StemColumns {
    Columns of[row_vectors];
};
DEVICE StemColumns read_stem_columns(i64 n0, int lane, const Geometry& g EPI_PARAMS) {
    StemColumns columns;
#pragma unroll
    for (int j = 0; j < row_vectors; j++)
        if (n0 + j * 8 < g.n)
            read_columns(columns.of[j], n0 + j * 8 + (lane & 3) * 2 EPI_PASS);
    return columns;
}
#if WORDS
/// Stores the 16 positions of a row of a warp.
DEVICE void store_row(const ACC (*v)[4], u8*, const StemColumns& columns, const StemRows& rows,
                      int first, int lane, i64 n0, const Geometry& g, OUT* out EPI_PARAMS) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        i64 m = rows(first + (lane >> 2) + h * 8);
        if (m < 0)
            continue;
        OUT* to = out + offset_of<RM>((u32)m, g.rows, g.cm[0]) + n0 + (lane & 3) * 2;
#pragma unroll
        for (int j = 0; j < row_vectors; j++)
            if (n0 + j * 8 < g.n)
                *(Two*)(to + j * 8) =
                    epilogue_pair(v[j][h * 2], v[j][h * 2 + 1], columns.of[j], Two() EPI_PASS);
    }
}
#else
/// Two adjacent results.
template <int BYTES>
struct StemPair {
    using type = u32;
};
template <>
struct StemPair<1> {
    using type = u16;
};
/// The same, through the warp's panel.
DEVICE void store_row(const ACC (*v)[4], u8* panel, const StemColumns& columns,
                      const StemRows& rows, int first, int lane, i64 n0, const Geometry& g,
                      OUT* out EPI_PARAMS) {
    using Pair = StemPair<sizeof(OUT)>::type;
    constexpr int pitch = panel_pitch / 2;
    Pair* pairs = (Pair*)panel;
    Pair* mine = pairs + (lane >> 2) * pitch + (lane & 3);
#pragma unroll
    for (int j = 0; j < row_vectors; j++) {
        mine[j * 4] = (Pair)epilogue_pair(v[j][0], v[j][1], columns.of[j], 0 EPI_PASS);
        mine[j * 4 + 8 * pitch] = (Pair)epilogue_pair(v[j][2], v[j][3], columns.of[j], 0 EPI_PASS);
    }
    sync_warp();
#pragma unroll
    for (int i = 0; i < 16 * row_vectors / 32; i++) {
        int r = (i * 32 + lane) / row_vectors, j = (i * 32 + lane) % row_vectors;
        i64 m = rows(first + r), n = n0 + j * 8;
        if (m >= 0 && n < g.n)
            *(Pack<OUT, 8>*)(out + offset_of<RM>((u32)m, g.rows, g.cm[0]) + n) =
                *(const Pack<OUT, 8>*)(pairs + r * pitch + j * 4);
    }
    sync_warp();
}
#endif
#endif

KERNEL void __launch_bounds__(threads, 4)
    conv_stem(const IN* __restrict__ x, const IN* __restrict__ weights, OUT* __restrict__ out,
              i32 w_constant, const __grid_constant__ Window w, const __grid_constant__ Stem s,
              const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    ACC* panel = (ACC*)memory + warp * (16 * panel_pitch);
    IN* kept = (IN*)(memory + panel_bytes);
    IN* tile = kept + kept_pitch * (int)s.depth;
    i64 n0 = (i64)(blockIdx.x % (u32)s.blocks_n) * BN;
    if (!w_constant)
        grid_wait();
    load_weights(kept, weights, n0, g, w, s);
    if (w_constant)
        grid_wait();
#if IN_REGISTERS
    StemColumns columns = read_stem_columns(n0, lane, g EPI_PASS);
#endif
#pragma unroll 1
    for (u32 t = blockIdx.x / (u32)s.blocks_n; t < (u32)s.tiles; t += gridDim.x / (u32)s.blocks_n) {
        u32 line = t / (u32)s.tiles_w;
        i64 image = line / (u32)s.tiles_h;
        StemRows rows = {image, (int)(line - (u32)image * (u32)s.tiles_h) * down,
                         (int)(t - line * (u32)s.tiles_w) * across, (int)w.out[1], (int)w.out[2]};
        const IN* from = x + image * w.step_n;
        int top = rows.h * (int)w.stride[1] - (int)w.low[1];
        int left = rows.w * (int)w.stride[2] - (int)w.low[2];
        if (X_PLANES)
            load_planes(tile, from, top, left, w, s);
        else
            load_pixels(tile, from, top, left, w, s);
        cp_async_wait<0>();
        sync();
        StemSums sums;
        multiply_stem(sums, tile, kept, w, s);
        sync(); // the tile may be overwritten
#if IN_REGISTERS
#pragma unroll
        for (int part = 0; part < ROWS; part++)
            store_row(sums.v[part], (u8*)panel, columns, rows, (warp * ROWS + part) * 16, lane, n0,
                      g, out EPI_PASS);
#else
#pragma unroll 1
        for (int part = 0; part < ROWS; part++) {
            ACC* mine = panel + (lane >> 2) * panel_pitch + (lane & 3) * 2;
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                if (part == i) {
#pragma unroll
                    for (int j = 0; j < BN / 8; j++) {
                        const ACC* v = sums.v[i][j];
                        Pack<ACC, 2> lo = {{v[0], v[1]}}, hi = {{v[2], v[3]}};
                        *(Pack<ACC, 2>*)(mine + j * 8) = lo;
                        *(Pack<ACC, 2>*)(mine + 8 * panel_pitch + j * 8) = hi;
                    }
                }
            sync_warp();
            int first = (warp * ROWS + part) * 16;
            FromPitch<panel_pitch> fetch = {panel - first * panel_pitch};
            store_tile(fetch, rows, lane, 32, first, 16, 0, n0, g, out EPI_PASS);
            sync_warp();
        }
#endif
    }
    end_main_loop();
}
