// SPDX-License-Identifier: Apache-2.0
// Byte products by AVX-512 VNNI; compiled with its options (backend.cmake). All other loops are
// AVX-512's.
#include "backends/cpu/simd/simd.h"

#include <immintrin.h>

namespace ingot::cpu::avx512_vnni {

namespace {

constexpr int tile_width = 16;
constexpr int tile_rows = 14;

namespace pairs {

template <class V>
inline V add_byte_products(V sums, V a, V b) {
    return (V)_mm512_dpwssd_epi32((__m512i)sums, (__m512i)a, (__m512i)b);
}

#include "backends/cpu/simd/byte_tile.inl"

} // namespace pairs

namespace quads {

template <class V>
inline V add_byte_products(V sums, V a, V b) {
    return (V)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)a, (__m512i)b);
}

#include "backends/cpu/simd/byte_tile.inl"

} // namespace quads

} // namespace

extern const ByteTile byte_tile;
const ByteTile byte_tile = pairs::byte_tile_rows;
extern const ByteTile quad_tile;
const ByteTile quad_tile = quads::byte_tile_rows;

} // namespace ingot::cpu::avx512_vnni
