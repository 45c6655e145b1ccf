// SPDX-License-Identifier: Apache-2.0
// The function table of one instruction set. Included inside its namespace, after tile_width,
// tile_rows and add_byte_products. Everything except the table has internal linkage.

#if defined(__clang__)
#define INGOT_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#else
#define INGOT_VECTORIZE _Pragma("GCC ivdep")
#endif

#include "backends/cpu/simd/trigonometry_loops.inl"

namespace {

#include "backends/cpu/simd/math.inl"
#include "backends/cpu/simd/map_loops.inl"
#include "backends/cpu/simd/row_loops.inl"
#include "backends/cpu/simd/matmul_tile.inl"
#include "backends/cpu/simd/byte_tile.inl"

}  // namespace

extern const VectorLoops loops;
const VectorLoops loops = {
    .map = find_map,
    .convert = find_convert,
    .quantize = find_quantize,
    .centred_sums = centred_sums,
    .lookup = lookup,
    .sum = row_sum,
    .sum_squares = row_sum_squares,
    .maximum = row_extreme<false>,
    .minimum = row_extreme<true>,
    .dot = row_dot,
    .exp_sum = row_exp_sum,
    .scale = row_scale,
    .normalize = row_normalize,
    .multiply_add = row_multiply_add,
    .byte_taps = row_byte_taps,
    .add_scaled = row_add_scaled,
    .tile = {tile_rows, 2 * tile_width},
    .matmul_tile = matmul_tile,
    .matmul_tile_in_order = matmul_tile_in_order,
    .byte_tile = byte_tile_rows,
    .quad_tile = nullptr,
};
