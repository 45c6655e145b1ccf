// SPDX-License-Identifier: Apache-2.0
// Stored element types and their loads and stores. A kernel computes in C (float, double or an
// integer) and stores T; load<T> and store<T> convert as in ir/expr.h: floats round to nearest
// even, fp8 saturates, but E5M2 keeps infinity.
struct F16 {
    u16 bits;
};
struct BF16 {
    u16 bits;
};
struct F8E4M3 {
    u8 bits;
};
struct F8E5M2 {
    u8 bits;
};

DEVICE u16 bf16_of_f64(double x) {
    // Rounded once: to odd in f32 first, then to nearest even.
    float f = (float)x;
    u32 u = __float_as_uint(f);
    double back = (double)f;
    if (back != x && x == x && (u & 0x7f800000u) != 0x7f800000u) {
        bool away = (x > 0) ? back > x : back < x;
        u = away ? (u - 1) | 1u : u | 1u;
    }
    return bf16_of(__uint_as_float(u));
}
/// Rounds to nearest even into 1 sign, E exponent and M mantissa bits; `max_bits` is the largest
/// finite code, to which larger values saturate; NaN gives `nan_bits`.
template <int E, int M>
DEVICE u8 f8_round(float x, u32 max_bits, u32 nan_bits, bool infinity_saturates) {
    u32 u = __float_as_uint(x), sign = (u >> 24) & 0x80u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (u8)(sign | nan_bits);
    const int bias = (1 << (E - 1)) - 1;
    u32 r;
    int e = (int)(a >> 23) - 127;
    if (e < 1 - bias) { // denormal: a multiple of 2^(1 - bias - M)
        float scaled = __uint_as_float(a) * __uint_as_float((u32)(127 + bias - 1 + M) << 23);
        r = (u32)(i32)rintf(scaled);
    } else {
        u32 v = a - ((u32)(127 - bias) << 23);
        r = (v + (1u << (22 - M)) - 1u + ((v >> (23 - M)) & 1u)) >> (23 - M);
    }
    if (r > max_bits)
        r = max_bits;
    (void)infinity_saturates;
    return (u8)(sign | r);
}
/// The bits as an f32 whose exponent is too small; denormals stay correct. Codes of infinity and
/// NaN read as numbers.
template <int E, int M>
DEVICE float f8_widen(u8 b) {
    const int bias = (1 << (E - 1)) - 1;
    return __uint_as_float(((u32)(b & 0x80u) << 24) | ((u32)(b & 0x7fu) << (23 - M))) *
           __uint_as_float((u32)(254 - bias) << 23);
}
DEVICE u8 f8e4m3_of(float x) {
#if !defined(INGOT_EMULATED) && __CUDA_ARCH__ >= 890
    u16 two; // the upper half is 0
    asm("cvt.rn.satfinite.e4m3x2.f32 %0,%1,%2;" : "=h"(two) : "f"(0.0f), "f"(x));
    return (u8)two;
#else
    return f8_round<4, 3>(x, 0x7eu, 0x7fu, true);
#endif
}
DEVICE u8 f8e5m2_of(float x) {
    bool infinite = (__float_as_uint(x) & 0x7fffffffu) == 0x7f800000u;
    return f8_round<5, 2>(x, infinite ? 0x7cu : 0x7bu, 0x7fu, true);
}
DEVICE float f32_of_f8e4m3(u8 b) {
    return (b & 0x7fu) == 0x7fu ? __uint_as_float(0x7fc00000u) : f8_widen<4, 3>(b);
}
DEVICE float f32_of_f8e5m2(u8 b) {
    return f32_of_f16((u16)(b << 8));
}

template <class T>
struct Stored {
    typedef T Compute;
};
template <>
struct Stored<F16> {
    typedef float Compute;
};
template <>
struct Stored<BF16> {
    typedef float Compute;
};
template <>
struct Stored<F8E4M3> {
    typedef float Compute;
};
template <>
struct Stored<F8E5M2> {
    typedef float Compute;
};

template <class T>
DEVICE T widen(T v) {
    return v;
}
DEVICE float widen(F16 v) {
    return f32_of_f16(v.bits);
}
DEVICE float widen(BF16 v) {
    return __uint_as_float((u32)v.bits << 16);
}
DEVICE float widen(F8E4M3 v) {
    return f32_of_f8e4m3(v.bits);
}
DEVICE float widen(F8E5M2 v) {
    return f32_of_f8e5m2(v.bits);
}

template <class T>
struct Narrow {
    template <class C>
    static DEVICE T of(C v) {
        return (T)v;
    }
};
template <>
struct Narrow<F16> {
    static DEVICE F16 of(float v) {
        F16 r;
        r.bits = f16_of(v);
        return r;
    }
    static DEVICE F16 of(double v) {
        F16 r;
        r.bits = f16_of(v);
        return r;
    }
};
template <>
struct Narrow<BF16> {
    static DEVICE BF16 of(float v) {
        BF16 r;
        r.bits = bf16_of(v);
        return r;
    }
    static DEVICE BF16 of(double v) {
        BF16 r;
        r.bits = bf16_of_f64(v);
        return r;
    }
};
template <>
struct Narrow<F8E4M3> {
    static DEVICE F8E4M3 of(float v) {
        F8E4M3 r;
        r.bits = f8e4m3_of(v);
        return r;
    }
};
template <>
struct Narrow<F8E5M2> {
    static DEVICE F8E5M2 of(float v) {
        F8E5M2 r;
        r.bits = f8e5m2_of(v);
        return r;
    }
};
template <class T, class C>
DEVICE T narrow(C v) {
    return Narrow<T>::of(v);
}

/// N elements that are read or written at once. Operands promise 16 bytes of alignment at most, so
/// that 32 bytes are two accesses.
template <class T, int N>
struct __align__(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
    T v[N];
};
