// SPDX-License-Identifier: Apache-2.0
// The inner kernel of byte products: each 32-bit lane holds the elements of two depths, widened to
// 16 bits, or of four, so that one instruction multiplies them and adds the products. Nothing
// saturates: sums wrap like 32-bit integers. The including file sets tile_width (lanes of a vector)
// and tile_rows, and defines add_byte_products.

using LaneVector = unsigned __attribute__((vector_size(tile_width * 4)));
typedef LaneVector LaneMemory __attribute__((aligned(4), may_alias));

template <int rows>
void byte_rows(int64_t depth, const uint32_t* a, const uint32_t* b, uint32_t* c, int64_t c_stride) {
    LaneVector sums[rows][2] = {};
    for (int64_t i = 0; i < depth; ++i) {
        LaneVector b0 = *reinterpret_cast<const LaneMemory*>(b);
        LaneVector b1 = *reinterpret_cast<const LaneMemory*>(b + tile_width);
        asm("" : "+v"(b0), "+v"(b1));  // else they are loaded again for each row
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
            LaneVector row = LaneVector{} + a[r];
            sums[r][0] = add_byte_products<LaneVector>(sums[r][0], row, b0);
            sums[r][1] = add_byte_products<LaneVector>(sums[r][1], row, b1);
        }
        a += rows;
        b += 2 * tile_width;
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
        *reinterpret_cast<LaneMemory*>(c + r * c_stride) = sums[r][0];
        *reinterpret_cast<LaneMemory*>(c + r * c_stride + tile_width) = sums[r][1];
    }
}

void byte_tile_rows(int64_t rows, int64_t depth, const uint32_t* a, const uint32_t* b, uint32_t* c,
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
    kernels[rows - 1](depth, a, b, c, c_stride);
}
