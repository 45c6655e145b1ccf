// SPDX-License-Identifier: Apache-2.0
// Byte products by AVX-512 VNNI; compiled with its options (backend.cmake). Tables of bytes by
// AVX-512 VBMI, which not all of these processors have. All other loops are AVX-512's.
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

__attribute__((target("avx512vbmi"))) void lookup_vbmi(void* out, const void* x, const void* table,
                                                       const void*, int64_t n) {
    auto* r = static_cast<uint8_t*>(out);
    const auto* a = static_cast<const uint8_t*>(x);
    const auto* t = static_cast<const uint8_t*>(table);
    __m512i quarters[4];
    for (int64_t k = 0; k < 4; ++k) {
        quarters[k] = _mm512_loadu_si512(t + 64 * k);
    }
    for (int64_t i = 0; i < n; i += 64) {
        __mmask64 inside = n - i >= 64 ? ~__mmask64{0} : ~(~__mmask64{0} << (n - i));
        __m512i at = _mm512_maskz_loadu_epi8(inside, a + i);
        __m512i low = _mm512_permutex2var_epi8(quarters[0], at, quarters[1]);
        __m512i high = _mm512_permutex2var_epi8(quarters[2], at, quarters[3]);
        __m512i found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high);
        _mm512_mask_storeu_epi8(r + i, inside, found);
    }
}

} // namespace

extern const MapLoop lookup;
const MapLoop lookup = lookup_vbmi;
extern const ByteTile byte_tile;
const ByteTile byte_tile = pairs::byte_tile_rows;
extern const ByteTile quad_tile;
const ByteTile quad_tile = quads::byte_tile_rows;

} // namespace ingot::cpu::avx512_vnni
