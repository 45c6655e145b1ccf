// SPDX-License-Identifier: Apache-2.0
// The functions in the rows of expr.def, for float, double, int64_t, uint64_t and bool. Every
// function is total: integer overflow wraps, division by zero gives 0, shifts beyond the width give
// 0.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace ingot::expr_math {

template <class T>
inline constexpr bool is_fp = std::is_floating_point_v<T>;

template <class T>
T wrapping_add(T a, T b) {
    if constexpr (is_fp<T>) {
        return a + b;
    } else {
        return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    }
}
template <class T>
T wrapping_sub(T a, T b) {
    if constexpr (is_fp<T>) {
        return a - b;
    } else {
        return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    }
}
template <class T>
T wrapping_mul(T a, T b) {
    if constexpr (is_fp<T>) {
        return a * b;
    } else {
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    }
}
template <class T>
T negate(T a) {
    if constexpr (is_fp<T>) {
        return -a;
    } else {
        return static_cast<T>(0 - static_cast<uint64_t>(a));
    }
}
/// Integers truncate towards zero, as C++ and ONNX do.
template <class T>
T safe_div(T a, T b) {
    if constexpr (is_fp<T>) {
        return a / b;
    } else if constexpr (std::is_signed_v<T>) {
        return b == 0 ? T(0) : b == -1 ? negate(a) : a / b;
    } else {
        return b == 0 ? T(0) : a / b;
    }
}
/// Result has the sign of the divisor (Python, ONNX Mod with fmod = 0).
template <class T>
T floor_mod(T a, T b) {
    if constexpr (is_fp<T>) {
        T r = std::fmod(a, b);
        return (r != T(0) && ((r < T(0)) != (b < T(0)))) ? r + b : r;
    } else {
        if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) {
            return 0;
        }
        T r = a % b;
        if constexpr (std::is_signed_v<T>) {
            return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
        } else {
            return r;
        }
    }
}
/// Result has the sign of the dividend (C fmod).
template <class T>
T trunc_mod(T a, T b) {
    if constexpr (is_fp<T>) {
        return std::fmod(a, b);
    } else {
        return (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) ? T(0) : a % b;
    }
}
template <class T>
T power(T a, T b) {
    if constexpr (is_fp<T>) {
        return std::pow(a, b);
    } else {
        if (std::is_signed_v<T> && b < T(0)) {
            return a == T(1) ? T(1) : a == static_cast<T>(-1) ? ((b & T(1)) != 0 ? a : T(1)) : T(0);
        }
        T r = 1;
        for (auto e = static_cast<uint64_t>(b); e != 0; e >>= 1) {
            if ((e & 1) != 0) {
                r = wrapping_mul(r, a);
            }
            a = wrapping_mul(a, a);
        }
        return r;
    }
}
/// NaN when either is NaN, as NumPy's minimum.
template <class T>
T nan_min(T a, T b) {
    return (a < b || a != a) ? a : b;
}
template <class T>
T nan_max(T a, T b) {
    return (a > b || a != a) ? a : b;
}
template <class T>
T absolute(T a) {
    if constexpr (is_fp<T>) {
        return std::fabs(a);
    } else if constexpr (std::is_signed_v<T>) {
        return a < 0 ? negate(a) : a;
    } else {
        return a;
    }
}
template <class T>
T sign_of(T a) {
    if constexpr (is_fp<T>) {
        return a > T(0) ? T(1) : a < T(0) ? T(-1) : a;
    } else if constexpr (std::is_signed_v<T>) {
        return a > 0 ? T(1) : a < 0 ? T(-1) : T(0);
    } else {
        return a != 0 ? T(1) : T(0);
    }
}
template <class T>
T logistic(T a) {
    return T(1) / (T(1) + std::exp(-a));
}
template <class T>
T bit_and(T a, T b) {
    return static_cast<T>(a & b);
}
template <class T>
T bit_or(T a, T b) {
    return static_cast<T>(a | b);
}
template <class T>
T bit_xor(T a, T b) {
    return static_cast<T>(a ^ b);
}
template <class T>
T bit_not(T a) {
    if constexpr (std::is_same_v<T, bool>) {
        return !a;
    } else {
        return static_cast<T>(~a);
    }
}
template <class T>
T shift_left(T a, T b) {
    auto n = static_cast<uint64_t>(b);
    return n > 63 ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << n);
}
/// Logical for unsigned types; ONNX has no signed shifts.
template <class T>
T shift_right(T a, T b) {
    auto n = static_cast<uint64_t>(b);
    return n > 63 ? T(0) : static_cast<T>(static_cast<uint64_t>(a) >> n);
}
template <class T>
bool is_infinite(T a) {
    return std::isinf(a);
}

} // namespace ingot::expr_math
