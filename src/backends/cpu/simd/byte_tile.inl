// SPDX-License-Identifier: Apache-2.0
// The inner kernel of byte products: each 32-bit lane holds the elements of two depths, widened to
// 16 bits, so that one instruction multiplies both and adds the products. Nothing saturates: sums
// wrap like 32-bit integers. The including file sets tile_width (lanes of a vector) and tile_rows,
// and defines add_pairs.

using PairVector = unsigned __attribute__((vector_size(tile_width * 4)));
typedef PairVector PairMemory __attribute__((aligned(4), may_alias));

template <int rows>
void byte_rows(int64_t pairs, const uint32_t* a, const uint32_t* b, uint32_t* c, int64_t c_stride) {
    PairVector sums[rows][2] = {};
    for (int64_t i = 0; i < pairs; ++i) {
        PairVector b0 = *reinterpret_cast<const PairMemory*>(b);
        PairVector b1 = *reinterpret_cast<const PairMemory*>(b + tile_width);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
            PairVector row = PairVector{} + a[r];
            sums[r][0] = add_pairs<PairVector>(sums[r][0], row, b0);
            sums[r][1] = add_pairs<PairVector>(sums[r][1], row, b1);
        }
        a += rows;
        b += 2 * tile_width;
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
        *reinterpret_cast<PairMemory*>(c + r * c_stride) = sums[r][0];
        *reinterpret_cast<PairMemory*>(c + r * c_stride + tile_width) = sums[r][1];
    }
}

void byte_tile_rows(int64_t rows, int64_t pairs, const uint32_t* a, const uint32_t* b, uint32_t* c,
                    int64_t c_stride) {
    using Kernel = void (*)(int64_t, const uint32_t*, const uint32_t*, uint32_t*, int64_t);
    static constexpr Kernel kernels[] = {
        byte_rows<1>,
        byte_rows<2>,
        byte_rows<3>,
        byte_rows<4>,
        byte_rows<5 <= tile_rows ? 5 : 1>,
        byte_rows<6 <= tile_rows ? 6 : 1>,
        byte_rows<7 <= tile_rows ? 7 : 1>,
        byte_rows<8 <= tile_rows ? 8 : 1>,
        byte_rows<9 <= tile_rows ? 9 : 1>,
        byte_rows<10 <= tile_rows ? 10 : 1>,
        byte_rows<11 <= tile_rows ? 11 : 1>,
        byte_rows<12 <= tile_rows ? 12 : 1>,
        byte_rows<13 <= tile_rows ? 13 : 1>,
        byte_rows<14 <= tile_rows ? 14 : 1>,
    };
    kernels[rows - 1](pairs, a, b, c, c_stride);
}
