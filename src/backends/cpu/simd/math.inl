// SPDX-License-Identifier: Apache-2.0
// Branch-free elementary functions of f32, so that loops over them vectorise. Errors are at most 2
// units in the last place (3 for tanh and sigmoid, 4 for log near 1) with a fused multiply-add.
// Polynomials: minimax fits over the reduced ranges.

#if defined(__FMA__)
inline float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
inline float fma_(float a, float b, float c) { return a * b + c; }
#endif

inline int32_t bits_of(float x) { return __builtin_bit_cast(int32_t, x); }
inline float float_of(int32_t i) { return __builtin_bit_cast(float, i); }
inline float abs_(float x) { return float_of(bits_of(x) & 0x7fffffff); }
inline float with_sign(float magnitude, float sign) {
    return float_of(bits_of(magnitude) | (bits_of(sign) & static_cast<int32_t>(0x80000000U)));
}

/// exp(c) = 2^n * (1 + q), with |r| <= ln(2)/2 and q = exp(r) - 1.
struct ReducedExp {
    float q;
    int32_t n;
};
inline ReducedExp reduced_exp(float c) {
    constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    float t = fma_(c, 1.44269504088896341f, magic);
    float n = t - magic;
    float r = fma_(n, -0.693359375f, c);
    r = fma_(n, 2.12194440e-4f, r);
    float p = 1.381446724e-03f;
    p = fma_(p, r, 8.368780836e-03f);
    p = fma_(p, r, 4.166839272e-02f);
    p = fma_(p, r, 1.666651964e-01f);
    p = fma_(p, r, 4.999999404e-01f);
    return {fma_(p * r, r, r), bits_of(t) - bits_of(magic)};
}
/// 2^n for n in [-126, 128]; 2^128 is infinite.
inline float power_of_two(int32_t n) { return float_of((n + 127) << 23); }

/// 2^n is applied in two halves, so that results are correct from the smallest denormal to the
/// largest float. NaN passes both limits.
inline float exp_(float x) {
    float c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;
    ReducedExp e = reduced_exp(c);
    int32_t half = e.n >> 1;
    return (e.q + 1.0f) * power_of_two(half) * power_of_two(e.n - half);
}

inline float log_(float x) {
    constexpr int32_t root_half = 0x3f3504f3;
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;  // denormals
    int32_t shift = x < 1.17549435e-38f ? -23 : 0;
    int32_t i = bits_of(scaled) - root_half;
    int32_t e = i >> 23;
    float m = float_of((i & 0x7fffff) + root_half);
    float n = static_cast<float>(e + shift);
    float f = m - 1.0f;
    float p = 8.325733989e-02f;
    p = fma_(p, f, -1.606864780e-01f);
    p = fma_(p, f, 1.357223392e-01f);
    p = fma_(p, f, -1.175360829e-01f);
    p = fma_(p, f, 1.389353126e-01f);
    p = fma_(p, f, -1.669558585e-01f);
    p = fma_(p, f, 2.002001405e-01f);
    p = fma_(p, f, -2.499970943e-01f);
    p = fma_(p, f, 3.333303630e-01f);
    float q = f * f;
    float y = fma_(n, -2.12194440e-4f, q * f * p);
    y = fma_(q, -0.5f, y);
    y = fma_(n, 0.693359375f, f + y);
    y = x > 3.402823466e38f ? x : y;
    y = x == 0.0f ? -__builtin_inff() : y;
    return x >= 0.0f ? y : __builtin_nanf("");
}

/// (exp(2a) - 1) / (exp(2a) + 1) with a = |x|.
inline float tanh_(float x) {
    float a = abs_(x);
    a = a > 10.0f ? 10.0f : a;
    ReducedExp e = reduced_exp(a + a);
    float power = power_of_two(e.n);
    float above_one = fma_(power, e.q, power - 1.0f);
    return with_sign(above_one / (above_one + 2.0f), x);
}

inline float erf_(float x) {
    float a = abs_(x);
    float s = x * x;
    float p = -5.976895918e-04f;
    p = fma_(p, s, 4.990980960e-03f);
    p = fma_(p, s, -2.676556818e-02f);
    p = fma_(p, s, 1.128180251e-01f);
    p = fma_(p, s, -3.761249483e-01f);
    p = fma_(p, s, 1.283791512e-01f);
    float small = fma_(p, x, x);
    float t = a > 3.95f ? 3.95f : a;
    float q = 2.109496927e-05f;
    q = fma_(q, t, -4.344617482e-04f);
    q = fma_(q, t, 4.171059001e-03f);
    q = fma_(q, t, -2.511941828e-02f);
    q = fma_(q, t, 1.082800776e-01f);
    q = fma_(q, t, 6.333469152e-01f);
    q = fma_(q, t, 1.129514933e+00f);
    q = fma_(q, t, -1.746832859e-04f);
    float large = 1.0f - exp_(-q);
    float y = a < 0.925f ? small : with_sign(large, x);
    return x == x ? y : x;
}

/// Below -88.4, where results are denormal, 0.
inline float sigmoid_(float x) {
    float c = x < -89.0f ? 89.0f : -x;
    c = c < -88.0f ? -88.0f : c;
    ReducedExp e = reduced_exp(c);
    return 1.0f / fma_(e.q + 1.0f, power_of_two(e.n), 1.0f);
}
