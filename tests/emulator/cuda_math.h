// SPDX-License-Identifier: Apache-2.0
// CUDA's functions of floats for the host; a part of cuda_host.h.
#pragma once

#define INGOT_MATH1(name)                                                                          \
    extern "C" double name(double) noexcept;                                                       \
    extern "C" float name##f(float) noexcept;                                                      \
    inline float name(float x) {                                                                   \
        return name##f(x);                                                                         \
    }
INGOT_MATH1(sqrt)
INGOT_MATH1(cbrt)
INGOT_MATH1(exp)
INGOT_MATH1(exp2)
INGOT_MATH1(expm1)
INGOT_MATH1(log)
INGOT_MATH1(log2)
INGOT_MATH1(log10)
INGOT_MATH1(log1p)
INGOT_MATH1(sin)
INGOT_MATH1(cos)
INGOT_MATH1(tan)
INGOT_MATH1(asin)
INGOT_MATH1(acos)
INGOT_MATH1(atan)
INGOT_MATH1(sinh)
INGOT_MATH1(cosh)
INGOT_MATH1(tanh)
INGOT_MATH1(asinh)
INGOT_MATH1(acosh)
INGOT_MATH1(atanh)
INGOT_MATH1(erf)
INGOT_MATH1(erfc)
INGOT_MATH1(tgamma)
INGOT_MATH1(lgamma)
INGOT_MATH1(floor)
INGOT_MATH1(ceil)
INGOT_MATH1(trunc)
INGOT_MATH1(round)
INGOT_MATH1(rint)
INGOT_MATH1(nearbyint)
INGOT_MATH1(fabs)
#undef INGOT_MATH1
#define INGOT_MATH2(name)                                                                          \
    extern "C" double name(double, double) noexcept;                                               \
    extern "C" float name##f(float, float) noexcept;                                               \
    inline float name(float x, float y) {                                                          \
        return name##f(x, y);                                                                      \
    }
INGOT_MATH2(pow)
INGOT_MATH2(fmod)
INGOT_MATH2(remainder)
INGOT_MATH2(fmin)
INGOT_MATH2(fmax)
INGOT_MATH2(atan2)
INGOT_MATH2(copysign)
INGOT_MATH2(hypot)
INGOT_MATH2(fdim)
INGOT_MATH2(nextafter)
#undef INGOT_MATH2
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
inline float fma(float a, float b, float c) {
    return fmaf(a, b, c);
}
inline float rsqrtf(float x) {
    return (float)(1.0 / sqrt((double)x));
}
inline double rsqrt(double x) {
    return 1.0 / sqrt(x);
}
inline float rsqrt(float x) {
    return rsqrtf(x);
}
inline float exp10f(float x) {
    return powf(10.0f, x);
}
inline float fdividef(float a, float b) {
    return a / b;
}
inline bool isnan(float x) {
    return x != x;
}
inline bool isnan(double x) {
    return x != x;
}
inline bool isinf(float x) {
    return __builtin_isinf(x) != 0;
}
inline bool isinf(double x) {
    return __builtin_isinf(x) != 0;
}
inline bool isfinite(float x) {
    return __builtin_isfinite(x) != 0;
}
inline bool isfinite(double x) {
    return __builtin_isfinite(x) != 0;
}
inline bool signbit(float x) {
    return __builtin_signbit(x) != 0;
}
inline bool signbit(double x) {
    return __builtin_signbit(x) != 0;
}
inline float __expf(float x) {
    return expf(x);
}
inline float __logf(float x) {
    return logf(x);
}
inline float __log2f(float x) {
    return log2f(x);
}
inline float __exp10f(float x) {
    return exp10f(x);
}
inline float __sinf(float x) {
    return sinf(x);
}
inline float __cosf(float x) {
    return cosf(x);
}
inline float __tanf(float x) {
    return tanf(x);
}
inline float __powf(float x, float y) {
    return powf(x, y);
}
inline float __fdividef(float a, float b) {
    return a / b;
}
inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __fsqrt_rn(float x) {
    return sqrtf(x);
}
inline float __frsqrt_rn(float x) {
    return rsqrtf(x);
}
inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fsub_rn(float a, float b) {
    return a - b;
}
inline float __fmul_rn(float a, float b) {
    return a * b;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
inline double __dadd_rn(double a, double b) {
    return a + b;
}
inline double __dsub_rn(double a, double b) {
    return a - b;
}
inline double __dmul_rn(double a, double b) {
    return a * b;
}
inline double __ddiv_rn(double a, double b) {
    return a / b;
}
inline double __fma_rn(double a, double b, double c) {
    return fma(a, b, c);
}
inline float __saturatef(float x) {
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}
