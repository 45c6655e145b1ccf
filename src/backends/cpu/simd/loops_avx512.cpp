// SPDX-License-Identifier: Apache-2.0
// Vector loops for AVX-512 F, BW, DQ and VL; compiled with its options (backend.cmake).
#include "backends/cpu/simd/simd.h"

#include <immintrin.h>

namespace ingot::cpu::avx512 {

namespace {

constexpr int tile_width = 16;
constexpr int tile_rows = 14;

template <class V>
inline V add_byte_products(V sums, V a, V b) {
    return sums + (V)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}

} // namespace

#include "backends/cpu/simd/loops.inl"

} // namespace ingot::cpu::avx512
