// SPDX-License-Identifier: Apache-2.0
// Rounding of sizes, and alignment of addresses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot {

/// a / b, rounded up; for a >= 0 and b > 0.
constexpr int64_t div_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/// The least multiple of `unit` that is not below n >= 0.
constexpr int64_t round_up(int64_t n, int64_t unit) {
    return div_up(n, unit) * unit;
}

inline bool is_aligned(const void* address, size_t alignment) {
    return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

} // namespace ingot
