// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes that come from files: nullopt on overflow.
#pragma once

#include <cstdint>
#include <optional>

namespace ingot {

inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
    int64_t r = 0;
    return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}
inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
    int64_t r = 0;
    return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}
inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
    uint64_t r = 0;
    return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}
inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
    uint64_t r = 0;
    return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
}

/// Whether the `size` elements first, first + step, first + 2 * step, ... all lie in [0, limit).
/// True when `size` is 0.
inline bool lies_within(int64_t first, int64_t size, int64_t step, int64_t limit) {
    if (size <= 0) {
        return size == 0;
    }
    auto span = checked_mul(size - 1, step);
    auto last = span ? checked_add(first, *span) : std::nullopt;
    return first >= 0 && first < limit && last && *last >= 0 && *last < limit;
}

} // namespace ingot
