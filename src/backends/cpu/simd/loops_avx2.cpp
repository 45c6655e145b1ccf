// SPDX-License-Identifier: Apache-2.0
// Vector loops for AVX2, FMA and F16C; compiled with its options (backend.cmake).
#include "backends/cpu/simd/simd.h"

#include <immintrin.h>

namespace ingot::cpu::avx2 {

namespace {

constexpr int tile_width = 8;
constexpr int tile_rows = 6;

template <class V>
inline V add_byte_products(V sums, V a, V b) {
    return sums + (V)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}

} // namespace

#include "backends/cpu/simd/loops.inl"

} // namespace ingot::cpu::avx2
