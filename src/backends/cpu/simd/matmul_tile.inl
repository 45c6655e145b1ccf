// SPDX-License-Identifier: Apache-2.0
// The inner kernel of matrix products: rows x (2 vectors) of sums, all in registers. The including
// file sets tile_width (floats of a vector) and tile_rows.

using TileVector = float __attribute__((vector_size(tile_width * 4)));
typedef TileVector TileMemory __attribute__((aligned(4), may_alias));

inline TileVector load_tile(const float* p) { return *reinterpret_cast<const TileMemory*>(p); }
inline void store_tile(float* p, TileVector v) { *reinterpret_cast<TileMemory*>(p) = v; }

template <int rows>
inline void add_products(TileVector (&sums)[rows][2], const float* a, const float* b) {
    TileVector b0 = load_tile(b);
    TileVector b1 = load_tile(b + tile_width);
    asm("" : "+v"(b0), "+v"(b1));  // else they are loaded again for each row
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
        sums[r][0] += a[r] * b0;
        sums[r][1] += a[r] * b1;
    }
}

template <int rows>
inline void store_sums(const TileVector (&sums)[rows][2], float* c, int64_t c_stride) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
        store_tile(c + r * c_stride, sums[r][0]);
        store_tile(c + r * c_stride + tile_width, sums[r][1]);
    }
}

template <int rows>
void matmul_rows(int64_t k, const float* a, const float* b, float* c, int64_t c_stride) {
    TileVector sums[rows][2] = {};
    for (int64_t i = 0; i < k; ++i) {
        add_products<rows>(sums, a, b);
        a += rows;
        b += 2 * tile_width;
    }
    store_sums<rows>(sums, c, c_stride);
}

/// Few rows have too few sums to hide the latency of an addition: they process four values of k at
/// a time, each with its own sums.
template <int rows>
void matmul_few_rows(int64_t k, const float* a, const float* b, float* c, int64_t c_stride) {
    constexpr int64_t b_step = 2 * tile_width;
    TileVector sums0[rows][2] = {};
    TileVector sums1[rows][2] = {};
    TileVector sums2[rows][2] = {};
    TileVector sums3[rows][2] = {};
    int64_t i = 0;
    for (; i + 4 <= k; i += 4) {
        add_products<rows>(sums0, a, b);
        add_products<rows>(sums1, a + rows, b + b_step);
        add_products<rows>(sums2, a + 2 * rows, b + 2 * b_step);
        add_products<rows>(sums3, a + 3 * rows, b + 3 * b_step);
        a += 4 * rows;
        b += 4 * b_step;
    }
    for (; i < k; ++i) {
        add_products<rows>(sums0, a, b);
        a += rows;
        b += b_step;
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
        sums0[r][0] += sums1[r][0] + (sums2[r][0] + sums3[r][0]);
        sums0[r][1] += sums1[r][1] + (sums2[r][1] + sums3[r][1]);
    }
    store_sums<rows>(sums0, c, c_stride);
}

using RowsKernel = void (*)(int64_t, const float*, const float*, float*, int64_t);

template <RowsKernel one, RowsKernel two>
void matmul_tile_by(int64_t rows, int64_t k, const float* a, const float* b, float* c,
                    int64_t c_stride) {
    static constexpr RowsKernel kernels[] = {
        one,
        two,
        matmul_rows<3>,
        matmul_rows<4>,
        matmul_rows<5>,
        matmul_rows<6 <= tile_rows ? 6 : 1>,
        matmul_rows<7 <= tile_rows ? 7 : 1>,
        matmul_rows<8 <= tile_rows ? 8 : 1>,
        matmul_rows<9 <= tile_rows ? 9 : 1>,
        matmul_rows<10 <= tile_rows ? 10 : 1>,
        matmul_rows<11 <= tile_rows ? 11 : 1>,
        matmul_rows<12 <= tile_rows ? 12 : 1>,
        matmul_rows<13 <= tile_rows ? 13 : 1>,
        matmul_rows<14 <= tile_rows ? 14 : 1>,
    };
    kernels[rows - 1](k, a, b, c, c_stride);
}

constexpr auto matmul_tile = matmul_tile_by<matmul_few_rows<1>, matmul_few_rows<2>>;
constexpr auto matmul_tile_in_order = matmul_tile_by<matmul_rows<1>, matmul_rows<2>>;
