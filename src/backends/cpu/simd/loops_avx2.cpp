// SPDX-License-Identifier: Apache-2.0
// Vector loops for AVX2, FMA and F16C; compiled with its options (backend.cmake).
#include "backends/cpu/simd/simd.h"

namespace ingot::cpu::avx2 {

namespace {

constexpr int tile_width = 8;
constexpr int tile_rows = 6;

} // namespace

#include "backends/cpu/simd/loops.inl"

} // namespace ingot::cpu::avx2
