// SPDX-License-Identifier: Apache-2.0
// Convolution of few channels (the first of a network) on tensor cores. A block keeps BN columns of
// the weights in shared memory and goes through tiles of 8 x 16 result positions; the input under a
// tile is copied there once, pixels with their CHANNELS side by side, so that a row of a window is
// one run, and fragments are read out of the runs in place. The depth is (kernel row, run), a run
// padded to a multiple of 8; what is read there beyond the window is masked. Traffic: the input
// about 1.5 times, the result once.
constexpr int down = 8, across = 16, threads = 128;
constexpr int panel_pitch = BN + 8;

struct Stem {
    i64 tiles_w, tiles_h, tiles; // of a row, of an image, of all
    i64 run, depth;              // padded: to 8, and all of the depth to 16
    i64 pitch, rows;             // of the input under a tile, in elements
    i64 blocks_n;                // of BN columns
};

struct StemRows {
    i64 image;
    int h, w, out_h, out_w;
    DEVICE i64 operator()(int r) const {
        int y = h + r / across, x = w + r % across;
        return y < out_h && x < out_w ? (image * out_h + y) * out_w + x : -1;
    }
};

/// [BN][depth + 8], zero where the run is padded. A lane's loads of many rows are under way at
/// once.
DEVICE void load_weights(IN* to, const IN* weights, i64 n0, const Geometry& g, const Window& w,
                         const Stem& s) {
    constexpr int some = BN / (threads / 32);
    int pitch = (int)s.depth + 8, run = (int)s.run, taps = (int)w.kernel[2] * CHANNELS;
    int warp = (int)(threadIdx.x / 32), lane = (int)(threadIdx.x % 32);
    int left = g.n - n0 < BN ? (int)(g.n - n0) : BN; // columns that there are
    weights += (n0 + warp) * g.bn[0];
#pragma unroll 1
    for (int k = lane; k < pitch; k += 32) {
        int r = k / run, q = k - r * run;
        bool in = r < (int)w.kernel[1] && q < taps;
        const IN* from = weights + (r * taps + q);
        IN v[some];
#pragma unroll
        for (int i = 0; i < some; i++)
            v[i] = in && warp + i * 4 < left ? from[i * 4 * g.bn[0]] : IN{};
#pragma unroll
        for (int i = 0; i < some; i++)
            to[(warp + i * 4) * pitch + k] = v[i];
    }
}

DEVICE void load_input(IN* to, const IN* x, int top, int left, const Window& w, const Stem& s) {
    constexpr int some = 8; // rows at once
    int warp = (int)(threadIdx.x / 32), lane = (int)(threadIdx.x % 32), pitch = (int)s.pitch;
#pragma unroll 1
    for (int q = lane; q < pitch; q += 32) {
        i32 pixel = q / CHANNELS, at = left + pixel;
        bool inside = at >= 0 && at < (i32)w.in[2];
        const IN* column = x + (i64)at * w.step[2] + (q - pixel * CHANNELS) * w.step_c;
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
                    to[(r + 4 * i) * pitch + q] = v[i];
        }
    }
}

struct StemSums {
    ACC v[2][BN / 8][4];
};

/// A warp makes two rows of the tile.
DEVICE void multiply_stem(StemSums& sums, const IN* tile, u32 weights, const Window& w,
                          const Stem& s) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int wide = (int)w.stride[2] * CHANNELS, pitch = (int)s.pitch, run = (int)s.run;
    const IN* from =
        tile + 2 * warp * (int)w.stride[1] * pitch + (lane >> 2) * wide + (lane & 3) * 2;
    int next_row = (int)w.stride[1] * pitch;
    // What a lane may use of the last 8 elements of a run.
    int valid = (int)w.kernel[2] * CHANNELS - (run - 8) - (lane & 3) * 2;
    u32 edge = valid >= 2 ? 0xffffffffu : valid == 1 ? 0xffffu : 0u;
    int weight_pitch = ((int)s.depth + 8) * (int)sizeof(IN);
    weights += ((lane & 7) + ((lane >> 4) << 3)) * weight_pitch + ((lane >> 3) & 1) * 16;
    int r = 0, q = 0; // of the next 8 elements
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < BN / 8; j++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                sums.v[i][j][k] = (ACC)0;
#pragma unroll 1
    for (int k = 0; k < (int)s.depth; k += 16) {
        u32 a[2][4];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            bool some = r < (int)w.kernel[1];
            u32 mask = !some ? 0u : q + 8 == run ? edge : 0xffffffffu;
            const IN* p = from + (some ? r * pitch + q : 0);
#pragma unroll
            for (int i = 0; i < 2; i++) {
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
            ldmatrix4(b, weights + j * 16 * weight_pitch + k * (int)sizeof(IN));
#pragma unroll
            for (int i = 0; i < 2; i++) {
                MMA(sums.v[i][2 * j], a[i], b[0], b[1]);
                MMA(sums.v[i][2 * j + 1], a[i], b[2], b[3]);
            }
        }
    }
}

KERNEL void __launch_bounds__(threads, 4)
    conv_stem(const IN* __restrict__ x, const IN* __restrict__ weights, OUT* __restrict__ out,
              i32 w_constant, const __grid_constant__ Window w, const __grid_constant__ Stem s,
              const __grid_constant__ Geometry g EPI_PARAMS) {
    SHARED(memory);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    ACC* panel = (ACC*)memory + warp * (16 * panel_pitch);
    IN* kept = (IN*)(memory + 4 * 16 * panel_pitch * sizeof(ACC));
    IN* tile = kept + BN * ((int)s.depth + 8);
    i64 n0 = (i64)(blockIdx.x % (u32)s.blocks_n) * BN;
    if (!w_constant)
        grid_wait();
    load_weights(kept, weights, n0, g, w, s);
    if (w_constant)
        grid_wait();
#pragma unroll 1
    for (u32 t = blockIdx.x / (u32)s.blocks_n; t < (u32)s.tiles; t += gridDim.x / (u32)s.blocks_n) {
        u32 line = t / (u32)s.tiles_w;
        i64 image = line / (u32)s.tiles_h;
        StemRows rows = {image, (int)(line - (u32)image * (u32)s.tiles_h) * down,
                         (int)(t - line * (u32)s.tiles_w) * across, (int)w.out[1], (int)w.out[2]};
        load_input(tile, x + image * w.step_n, rows.h * (int)w.stride[1] - (int)w.low[1],
                   rows.w * (int)w.stride[2] - (int)w.low[2], w, s);
        sync();
        StemSums sums;
        multiply_stem(sums, tile, smem_addr(kept), w, s);
        sync(); // the tile may be overwritten
#pragma unroll 1
        for (int part = 0; part < 2; part++) {
            ACC* mine = panel + (lane >> 2) * panel_pitch + (lane & 3) * 2;
#pragma unroll
            for (int i = 0; i < 2; i++)
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
            int first = warp * 32 + part * 16;
            FromPitch<panel_pitch> fetch = {panel - first * panel_pitch};
            store_tile(fetch, rows, lane, 32, first, 16, 0, n0, g, out EPI_PASS);
            sync_warp();
        }
    }
    grid_release();
}
