// SPDX-License-Identifier: Apache-2.0
// Trigonometry for AVX-512; compiled with its options, without contraction (backend.cmake).
#include <cstdint>

namespace ingot::cpu::avx512 {

#include "backends/cpu/simd/trigonometry.inl"
#include "backends/cpu/simd/trigonometry_loops.inl"

} // namespace ingot::cpu::avx512
