// SPDX-License-Identifier: Apache-2.0
// Follows wgmma_core.cuh: the factors of rows of A, one over their deviations, out of the moments
// that another kernel left ([row, chunk, mean and squares], chunk_moments.cuh).

/// 0 for a row below 0.
DEVICE float row_factor(const float* moments, i64 row, int depth, float epsilon) {
    if (row < 0)
        return 0.0f;
    int chunks = depth / moment_chunk;
    const Pack<float, 2>* own = (const Pack<float, 2>*)moments + row * chunks;
    MergedMoments all(own[0].v[0]);
#pragma unroll 8
    for (int c = 0; c < chunks; c++) {
        Pack<float, 2> chunk = own[c];
        all.add(chunk.v[0], chunk.v[1]);
    }
    return all.factor((float)chunks, epsilon);
}

#if !PING_PONG
constexpr int merging = 64; // threads of the loading warpgroup that load nothing

/// They leave the factors of the tile's rows in shared memory while the others multiply.
DEVICE void merge_rows(float* factors, const float* moments, int thread, const RowsFrom& rows,
                       int depth, float epsilon) {
#pragma unroll 1
    for (int r = thread; r < tile_m; r += merging)
        factors[r] = row_factor(moments, rows(r), depth, epsilon);
    sync_some(2, consumers + merging);
}

/// Multiplies the sums of a warp, whose first row of the tile is `row`, by their rows' factors.
DEVICE void scale_rows(Sums& sums, const float* factors, int row, int lane) {
    sync_some(2, consumers + merging);
#pragma unroll
    for (int i = 0; i < MB; i++) {
        const float* own = factors + row + i * 64 + (lane >> 2);
        float upper = own[0], lower = own[8];
#pragma unroll
        for (int j = 0; j < BN / 2; j++)
            sums.d[i][j] *= (j & 2) == 0 ? upper : lower;
    }
}
#endif
