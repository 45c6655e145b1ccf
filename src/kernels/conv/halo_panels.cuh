// SPDX-License-Identifier: Apache-2.0
// The end of a tile whose results TMA stores from panels in shared memory, for convolutions that
// fetch halos. FULL, BN and the functions of the epilogue come before this file.
/// A warp's 16 rows of a tile through the epilogue into panels of 64 columns, of which the first
/// begins at `panel` and the next one PANEL bytes behind it. With FULL the panels hold an operand.
template <int PANEL>
DEVICE void store_rows(const float* sums, u32 panel, const Columns* columns, int lane EPI_PARAMS) {
    // Rows 0..7 of 16, then the others, of 8 columns; the same of the next 8: as matrices come.
    u32 line = panel + (lane & 15) * 128;
#pragma unroll
    for (int c = 0; c < BN / 16; c++) {
        u32 at = line + c / 4 * PANEL + ((c % 4 * 2 + (lane >> 4)) ^ (lane & 7)) * 16;
        u32 other[4] = {}, r[4];
        if (FULL)
            ldmatrix4(other, at);
#pragma unroll
        for (int j = 0; j < 4; j++)
            r[j] = epilogue_pair(sums[c * 8 + j * 2], sums[c * 8 + j * 2 + 1],
                                 columns[c * 2 + j / 2], other[j] EPI_PASS);
        stmatrix4(at, r[0], r[1], r[2], r[3]);
    }
}
