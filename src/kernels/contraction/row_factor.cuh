// SPDX-License-Identifier: Apache-2.0
// Follows wgmma_core.cuh: means and factors of rows, one over their deviations, out of the moments
// that another kernel left ([row, chunk, mean and squares], chunk_moments.cuh).

struct RowStatistics {
    float mean, factor;
};
DEVICE RowStatistics row_statistics(const float* moments, i64 row, int size, float epsilon) {
    int chunks = size / moment_chunk;
    const Pack<float, 2>* own = (const Pack<float, 2>*)moments + row * chunks;
    MergedMoments all(own[0].v[0]);
#pragma unroll 8
    for (int c = 0; c < chunks; c++) {
        Pack<float, 2> chunk = own[c];
        all.add(chunk.v[0], chunk.v[1]);
    }
    return {all.mean((float)chunks), all.factor((float)chunks, epsilon)};
}
/// 0 for a row below 0.
DEVICE float row_factor(const float* moments, i64 row, int size, float epsilon) {
    return row < 0 ? 0.0f : row_statistics(moments, row, size, epsilon).factor;
}

#if !PING_PONG
constexpr int merging = 64; // threads of the loading warpgroup that load nothing

/// They leave the statistics of the tile's rows in shared memory while the others multiply. (Four
/// threads a row, which ask for all of it at once, delay the others' first loads: 5 % of BERT.)
DEVICE void merge_rows(RowStatistics* out, const float* moments, int thread, const RowsFrom& rows,
                       int size, float epsilon) {
#pragma unroll 1
    for (int r = thread; r < tile_m; r += merging) {
        i64 row = rows(r);
        out[r] = row_statistics(moments, row < 0 ? 0 : row, size, epsilon);
    }
    sync_some(2, consumers + merging);
}

/// Multiplies the sums of a warp, whose first row of the tile is `row`, by their rows' factors.
DEVICE void scale_rows(Sums& sums, const RowStatistics* rows, int row, int lane) {
    sync_some(2, consumers + merging);
#pragma unroll
    for (int i = 0; i < MB; i++) {
        const RowStatistics* own = rows + row + i * 64 + (lane >> 2);
        float upper = own[0].factor, lower = own[8].factor;
#pragma unroll
        for (int j = 0; j < BN / 2; j++)
            sums.d[i][j] *= (j & 2) == 0 ? upper : lower;
    }
}
#endif
