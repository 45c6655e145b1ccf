// SPDX-License-Identifier: Apache-2.0
// The scalar functions of expression text, with exactly the meaning of ir/expr_math.h: integers
// wrap, division by zero gives 0, shifts beyond 63 give 0, NaN wins in min and max. f32 functions
// are accurate to about 2 ulp.
struct I4 {
    u8 bits;
};
struct U4 {
    u8 bits;
};
struct F4E2M1 {
    u8 bits;
};
DEVICE i8 widen(I4 v) {
    return (i8)((i8)(v.bits << 4) >> 4);
}
DEVICE u8 widen(U4 v) {
    return (u8)(v.bits & 15u);
}
DEVICE float widen(F4E2M1 v) {
    return f8_widen<2, 1>((u8)(v.bits & 7u)) * ((v.bits & 8u) ? -1.0f : 1.0f);
}
template <>
struct Stored<I4> {
    typedef i8 Compute;
};
template <>
struct Stored<U4> {
    typedef u8 Compute;
};
template <>
struct Stored<F4E2M1> {
    typedef float Compute;
};
DEVICE u8 f4e2m1_of(float x) {
    u8 r = f8_round<2, 1>(x, 7u, 0u, true);
    return (u8)((r & 7u) | (r >> 4 & 8u));
}
template <>
struct Narrow<I4> {
    static DEVICE I4 of(i8 v) {
        I4 r;
        r.bits = (u8)(v & 15);
        return r;
    }
};
template <>
struct Narrow<U4> {
    static DEVICE U4 of(u8 v) {
        U4 r;
        r.bits = (u8)(v & 15u);
        return r;
    }
};
template <>
struct Narrow<F4E2M1> {
    static DEVICE F4E2M1 of(float v) {
        F4E2M1 r;
        r.bits = f4e2m1_of(v);
        return r;
    }
};

DEVICE float ingot_inf() {
    return __uint_as_float(0x7f800000u);
}
DEVICE float ingot_nan() {
    return __uint_as_float(0x7fc00000u);
}

#define INGOT_SAME(name)                                                                           \
    DEVICE float ingot_##name(float x) {                                                           \
        return name##f(x);                                                                         \
    }                                                                                              \
    DEVICE double ingot_##name(double x) {                                                         \
        return name(x);                                                                            \
    }
INGOT_SAME(sqrt)
INGOT_SAME(exp)
INGOT_SAME(expm1)
INGOT_SAME(log)
INGOT_SAME(log1p)
INGOT_SAME(sin)
INGOT_SAME(cos)
INGOT_SAME(tan)
INGOT_SAME(asin)
INGOT_SAME(acos)
INGOT_SAME(atan)
INGOT_SAME(sinh)
INGOT_SAME(cosh)
INGOT_SAME(tanh)
INGOT_SAME(asinh)
INGOT_SAME(acosh)
INGOT_SAME(atanh)
INGOT_SAME(erf)
INGOT_SAME(floor)
INGOT_SAME(ceil)
INGOT_SAME(rint)
INGOT_SAME(trunc)
#undef INGOT_SAME

DEVICE float ingot_sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}
DEVICE double ingot_sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}
DEVICE bool ingot_isnan(float x) {
    return x != x;
}
DEVICE bool ingot_isnan(double x) {
    return x != x;
}
DEVICE bool ingot_isinf(float x) {
    return fabsf(x) == ingot_inf();
}
DEVICE bool ingot_isinf(double x) {
    return fabs(x) == (double)ingot_inf();
}

template <class T>
struct IsSigned {
    static const bool value = (T)-1 < (T)0;
};
DEVICE float ingot_div(float a, float b) {
    return a / b;
}
DEVICE double ingot_div(double a, double b) {
    return a / b;
}
template <class T>
DEVICE T ingot_div(T a, T b) {
    if (b == 0)
        return (T)0;
    if (IsSigned<T>::value && b == (T)-1)
        return (T)(0ull - (u64)a);
    return (T)(a / b);
}
DEVICE float ingot_trunc_mod(float a, float b) {
    return fmodf(a, b);
}
DEVICE double ingot_trunc_mod(double a, double b) {
    return fmod(a, b);
}
template <class T>
DEVICE T ingot_trunc_mod(T a, T b) {
    return b == 0 || (IsSigned<T>::value && b == (T)-1) ? (T)0 : (T)(a % b);
}
/// Has the sign of the divisor.
template <class T>
DEVICE T ingot_floor_mod(T a, T b) {
    T r = ingot_trunc_mod(a, b);
    return r != (T)0 && ((r < (T)0) != (b < (T)0)) ? (T)(r + b) : r;
}
DEVICE float ingot_pow(float a, float b) {
    return powf(a, b);
}
DEVICE double ingot_pow(double a, double b) {
    return pow(a, b);
}
template <class T>
DEVICE T ingot_pow(T a, T b) {
    if (IsSigned<T>::value && b < (T)0) {
        return a == (T)1 ? (T)1 : a == (T)-1 ? ((b & (T)1) != 0 ? a : (T)1) : (T)0;
    }
    u64 r = 1, x = (u64)a;
    for (u64 e = (u64)b; e != 0; e >>= 1) {
        if (e & 1u)
            r *= x;
        x *= x;
    }
    return (T)r;
}
/// a - b where that is negative, else 0. Minima and maxima of 16-bit integers use it, because ptxas
/// spills registers around the packed instructions.
DEVICE i32 shortfall(i32 a, i32 b) {
    return (a - b) & ((a - b) >> 31);
}
template <class T>
DEVICE T ingot_min(T a, T b) {
    if (sizeof(T) == 2)
        return (T)((i32)b + shortfall((i32)a, (i32)b));
    return a < b || a != a ? a : b;
}
template <class T>
DEVICE T ingot_max(T a, T b) {
    if (sizeof(T) == 2)
        return (T)((i32)a - shortfall((i32)a, (i32)b));
    return a > b || a != a ? a : b;
}
DEVICE float ingot_abs(float x) {
    return fabsf(x);
}
DEVICE double ingot_abs(double x) {
    return fabs(x);
}
template <class T>
DEVICE T ingot_abs(T x) {
    return IsSigned<T>::value && x < (T)0 ? (T)(0ull - (u64)x) : x;
}
DEVICE float ingot_sign(float x) {
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}
DEVICE double ingot_sign(double x) {
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}
template <class T>
DEVICE T ingot_sign(T x) {
    return x > (T)0 ? (T)1 : x == (T)0 ? (T)0 : (T)-1;
}
template <class T>
DEVICE T ingot_not(T x) {
    return (T)~x;
}
DEVICE bool ingot_not(bool x) {
    return !x;
}
template <class T>
DEVICE T ingot_shl(T a, T b) {
    return (u64)b > 63u ? (T)0 : (T)((u64)a << (u64)b);
}
/// Shifts the value as 64 bits, sign extended: logical for unsigned types.
template <class T>
DEVICE T ingot_shr(T a, T b) {
    return (u64)b > 63u ? (T)0 : (T)((u64)a >> (u64)b);
}

// --- casts
/// To a signed integer of `bits`: saturates, NaN gives 0.
template <class F>
DEVICE i64 ingot_signed(F v, int bits) {
    if (v != v)
        return 0;
    F limit = (F)((u64)1 << (bits - 1));
    i64 top = (i64)(((u64)1 << (bits - 1)) - 1u);
    return v >= limit ? top : v < -limit ? -top - 1 : (i64)v;
}
/// To an unsigned integer of `bits`: saturates above, wraps below 0, NaN gives 0.
template <class F>
DEVICE u64 ingot_unsigned(F v, int bits) {
    if (v != v)
        return 0;
    F limit = (F)((u64)1 << (bits - 1)) * (F)2;
    u64 top = (~(u64)0) >> (64 - bits);
    return v >= limit ? top : v < (F)0 ? (v <= (F)-9.2e18 ? 0u : (u64)(i64)v & top) : (u64)v;
}
/// The same for 8 bits, with fewer instructions.
DEVICE i32 ingot_signed8(float v) {
    float x = v > 127.0f ? 127.0f : v < -128.0f ? -128.0f : v;
    return v != v ? 0 : (i32)x;
}
DEVICE u32 ingot_unsigned8(float v) {
    // Below the range of i32, floats are multiples of 256.
    return v != v ? 0u : (u32)(i32)(v > 255.0f ? 255.0f : v) & 255u;
}
DEVICE i8 ingot_i4(i64 v) {
    return (i8)((i8)(u8)((u64)v << 4) >> 4);
}
DEVICE u8 ingot_u4(i64 v) {
    return (u8)(v & 15);
}
DEVICE float ingot_f16(float x) {
    return f32_of_f16(f16_of(x));
}
DEVICE float ingot_f16(double x) {
    return f32_of_f16(f16_of(x));
}
DEVICE float ingot_bf16(float x) {
    return __uint_as_float((u32)bf16_of(x) << 16);
}
DEVICE float ingot_bf16(double x) {
    return __uint_as_float((u32)bf16_of_f64(x) << 16);
}
DEVICE float ingot_f8e4m3(float x, bool saturate) {
    return f32_of_f8e4m3(saturate ? f8e4m3_of(x) : f8_round<4, 3>(x, 0x7fu, 0x7fu, false));
}
DEVICE float ingot_f8e5m2(float x, bool saturate) {
    return f32_of_f8e5m2(f8_round<5, 2>(x, saturate ? 0x7bu : 0x7cu, 0x7eu, saturate));
}
DEVICE float ingot_f4e2m1(float x) {
    F4E2M1 r;
    r.bits = f4e2m1_of(x);
    return widen(r);
}

// --- several elements by accesses of up to 16 bytes; pointers are aligned to the whole, or to 16
template <int BYTES>
struct Raw;
template <>
struct Raw<1> {
    typedef u8 Type;
};
template <>
struct Raw<2> {
    typedef u16 Type;
};
template <>
struct Raw<4> {
    typedef u32 Type;
};
template <>
struct Raw<8> {
    typedef u64 Type;
};
template <>
struct Raw<16> {
    typedef uint4 Type;
};
template <class T, int N>
union Bits {
    typename Raw<(int)sizeof(T) * N>::Type raw;
    T v[N];
};
template <class T, int N>
DEVICE void load_pack(T* v, const T* p) {
    const int STEP = (int)sizeof(T) * N > 16 ? 16 / (int)sizeof(T) : N;
#pragma unroll
    for (int n = 0; n < N; n += STEP) {
        Bits<T, STEP> b;
        b.raw = *(const typename Raw<(int)sizeof(T) * STEP>::Type*)(p + n);
#pragma unroll
        for (int i = 0; i < STEP; ++i)
            v[n + i] = b.v[i];
    }
}
template <class T, int N>
DEVICE void store_pack(T* p, const T* v) {
    const int STEP = (int)sizeof(T) * N > 16 ? 16 / (int)sizeof(T) : N;
#pragma unroll
    for (int n = 0; n < N; n += STEP) {
        Bits<T, STEP> b;
#pragma unroll
        for (int i = 0; i < STEP; ++i)
            b.v[i] = v[n + i];
        *(typename Raw<(int)sizeof(T) * STEP>::Type*)(p + n) = b.raw;
    }
}
