// SPDX-License-Identifier: Apache-2.0
// Vector loops for x86-64-v2; compiled with its options (backend.cmake).
#include "backends/cpu/simd/simd.h"

#include <immintrin.h>

namespace ingot::cpu::baseline {

namespace {

constexpr int tile_width = 4;
constexpr int tile_rows = 4;

template <class V>
inline V add_byte_products(V sums, V a, V b) {
    return sums + (V)_mm_madd_epi16((__m128i)a, (__m128i)b);
}

} // namespace

#include "backends/cpu/simd/loops.inl"

} // namespace ingot::cpu::baseline
