// SPDX-License-Identifier: Apache-2.0
// Follows wgmma_core.cuh: a warpgroup finds the deviations of its rows of A, of elements A_TYPE, in
// the stages that it multiplies, and divides its sums by them. Two lanes of a warp share a row of
// 16, each half of a slab. Sums are about a row's first element, so that a mean far from 0 costs no
// digits. ODD_DEPTH: rows end inside a chunk of 16 bytes.
struct RowDeviations {
    const u8* memory; // of the stages
    int row, half, depth;
    float pivot[MB], sum[MB], squares[MB];
    DEVICE RowDeviations(const u8* memory_, int warp, int lane, int depth_)
        : memory(memory_), row(warp * 16 + (lane & 15)), half(lane >> 4), depth(depth_) {
#pragma unroll
        for (int i = 0; i < MB; i++)
            pivot[i] = sum[i] = squares[i] = 0.0f;
    }
    /// The rows of step k, which begin at byte `rows`.
    DEVICE void see(u32 rows, int k) {
        constexpr int chunks = 8, per_chunk = SLAB_K / chunks;
#pragma unroll
        for (int s = 0; s < K_BLOCKS; s++)
#pragma unroll
            for (int i = 0; i < MB; i++) {
                const u8* from = memory + rows + s * slab_a + i * 8192 + row * 128;
                if (k == 0 && s == 0)
                    pivot[i] = widen(*(const A_TYPE*)(from + ((row & 7) << 4)));
                int left = depth - (k * K_BLOCKS + s) * SLAB_K;
#pragma unroll
                for (int q = 0; q < chunks / 2; q++) {
                    int c = half * (chunks / 2) + q;
                    if (c * per_chunk >= left)
                        continue;
                    Pack<A_TYPE, per_chunk> x =
                        *(const Pack<A_TYPE, per_chunk>*)(from + ((c ^ (row & 7)) << 4));
#pragma unroll
                    for (int e = 0; e < per_chunk; e++) {
                        float d = widen(x.v[e]) - pivot[i];
#ifdef ODD_DEPTH
                        d = c * per_chunk + e < left ? d : 0.0f;
#endif
                        sum[i] += d;
                        squares[i] += d * d;
                    }
                }
            }
        async_fence(); // these reads come before the copy that takes the stage's place
        sync_warp();
    }
    DEVICE void divide(Sums& sums, float epsilon, int lane) {
#pragma unroll
        for (int i = 0; i < MB; i++) {
            float share = 1.0f / (float)depth;
            float mean = (sum[i] + shfl_xor(sum[i], 16)) * share;
            float variance = (squares[i] + shfl_xor(squares[i], 16)) * share - mean * mean;
            float factor = 1.0f / ingot_sqrt((variance > 0.0f ? variance : 0.0f) + epsilon);
            factor = variance == variance ? factor : variance; // NaN stays
            float upper = shfl(factor, lane >> 2), lower = shfl(factor, (lane >> 2) + 8);
#pragma unroll
            for (int j = 0; j < BN / 2; j++)
                sums.d[i][j] *= (j & 2) == 0 ? upper : lower;
        }
    }
};
