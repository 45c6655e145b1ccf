// SPDX-License-Identifier: Apache-2.0
// The sums of a warpgroup that gemm_wgmma_persistent.cuh stores at a time. REPEATED: the epilogue
// stands in the text once (0), for each block of 64 rows (1), or for each chunk of their columns
// too (2).

// Columns that a warp converts at a time: fewer where sums leave few registers.
constexpr int wide = MB * BN < 384 ? 32 : 16, chunks = BN / wide;

/// Blocks of 64 rows that are stored at once, and how often that is.
constexpr int rows_at_once = REPEATED > 0 ? MB : 1, parts = chunks * MB / rows_at_once;
/// The sums of some blocks of rows in a chunk of columns, for part == c * MB / rows_at_once + i.
template <int PART>
DEVICE void take(ACC (*d)[wide / 2], const Sums& sums) {
    constexpr int part = PART % parts, turns_of_rows = MB / rows_at_once;
    constexpr int first = part % turns_of_rows * rows_at_once,
                  from = part / turns_of_rows * (wide / 2);
#pragma unroll
    for (int i = 0; i < rows_at_once; i++)
#pragma unroll
        for (int e = 0; e < wide / 2; e++)
            d[i][e] = sums.d[first + i][from + e];
}
#define TAKE(part)                                                                                 \
    case part:                                                                                     \
        take<part>(d, sums);                                                                       \
        break;
/// A switch, because with conditions the compiler moves all sums every time.
DEVICE void pick(ACC (*d)[wide / 2], const Sums& sums, int part) {
    static_assert(parts <= (wide == 16 ? 24 : 12), "as many cases");
    switch (part) {
        TAKE(0)
        TAKE(1)
        TAKE(2)
        TAKE(3)
        TAKE(4)
        TAKE(5)
        TAKE(6)
        TAKE(7)
        TAKE(8)
        TAKE(9)
        TAKE(10)
#if MB * BN >= 384 && !REPEATED
        TAKE(11)
        TAKE(12)
        TAKE(13)
        TAKE(14)
        TAKE(15)
        TAKE(16)
        TAKE(17)
        TAKE(18)
        TAKE(19)
        TAKE(20)
        TAKE(21)
        TAKE(22)
    default:
        take<23>(d, sums);
#else
    default:
        take<11>(d, sums);
#endif
    }
}
