// SPDX-License-Identifier: Apache-2.0
// Trigonometry of f32, computed in f64: polynomials (minimax fits) with relative errors below 1e-11,
// so that all but a few results in ten thousand are the nearest float.

#if defined(__clang__)
#define INGOT_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#else
#define INGOT_VECTORIZE _Pragma("GCC ivdep")
#endif

namespace {

inline int64_t bits_of(double x) { return __builtin_bit_cast(int64_t, x); }
inline double double_of(int64_t i) { return __builtin_bit_cast(double, i); }
inline int32_t magnitude_of(float x) { return __builtin_bit_cast(int32_t, x) & 0x7fffffff; }

constexpr int32_t reduced_below = 0x49800000;  // 2^20 as bits
constexpr double half_pi = 1.5707963267948966;

/// x = quarter * pi/2 + rest, |rest| <= pi/4; only the last two bits of quarter are meant.
struct Angle {
    double rest;
    int64_t quarter;
};

/// For |x| < 2^20: products with the first two parts of pi/2, of 33 bits each, are exact.
inline Angle reduce(double x) {
    constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
    double t = x * 0.6366197723675814 + magic;
    double n = t - magic;
    double rest = ((x - n * 1.5707963267341256) - n * 6.077100506303966e-11) -
                  n * 2.0222662487959506e-21;
    return {rest, bits_of(t)};
}

/// For any finite float: multiplies the mantissa by the bits of 2/pi that make no multiple of four.
inline Angle reduce_far(float x) {
    // 0, then the first 320 bits of 2/pi
    constexpr uint64_t two_by_pi[] = {0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
                                      0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0};
    int32_t exponent = (magnitude_of(x) >> 23) - 150;  // x = mantissa * 2^exponent
    auto mantissa = static_cast<uint64_t>((magnitude_of(x) & 0x7fffff) | 0x800000);
    // 128 bits of 2/pi; the first has the weight 2^(1 - exponent).
    int32_t first = 64 + exponent - 2;
    int32_t word = first / 64;
    int32_t shift = first % 64;
    uint64_t high = two_by_pi[word] << shift;
    uint64_t low = two_by_pi[word + 1] << shift;
    if (shift != 0) {
        high |= two_by_pi[word + 1] >> (64 - shift);
        low |= two_by_pi[word + 2] >> (64 - shift);
    }
    __extension__ using Wide = unsigned __int128;
    auto product = static_cast<uint64_t>((mantissa * ((static_cast<Wide>(high) << 64) | low)) >> 64);
    // Its first two bits are the quarter; rounding makes the rest a signed fraction.
    uint64_t quarter = (product + (uint64_t{1} << 61)) >> 62;
    auto fraction = static_cast<int64_t>(product - (quarter << 62));
    double rest = static_cast<double>(fraction) * (half_pi / 4611686018427387904.0);  // 2^62
    bool negative = x < 0.0f;
    return {negative ? -rest : rest,
            static_cast<int64_t>(negative ? uint64_t{0} - quarter : quarter)};
}

inline double sine(double r) {
    double s = r * r;
    double p = 2.7182744710714855e-06;
    p = p * s - 0.00019839330997020277;
    p = p * s + 0.008333329374122865;
    p = p * s - 0.1666666664152687;
    return r * (p * s + 1.0);
}

inline double cosine(double r) {
    double s = r * r;
    double p = -2.7209893031363443e-07;
    p = p * s + 2.4799515891301586e-05;
    p = p * s - 0.0013888883738040654;
    p = p * s + 0.04166666662265286;
    return (p * s - 0.5) * s + 1.0;
}

inline double sine_at(Angle a, int64_t quarters) {
    int64_t quarter = a.quarter + quarters;
    double y = (quarter & 1) != 0 ? cosine(a.rest) : sine(a.rest);
    return double_of(bits_of(y) ^ static_cast<int64_t>(static_cast<uint64_t>(quarter & 2) << 62));
}

struct Sin {
    static double of(Angle a) { return sine_at(a, 0); }
};
struct Cos {
    static double of(Angle a) { return sine_at(a, 1); }
};
struct Tan {
    static double of(Angle a) {
        double s = sine(a.rest);
        double c = cosine(a.rest);
        bool odd = (a.quarter & 1) != 0;
        return (odd ? -c : s) / (odd ? s : c);
    }
};

/// Elements one by one, some of which are far from zero, infinite or no numbers.
template <class F>
__attribute__((noinline)) void far_angles(float* out, const float* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        int32_t magnitude = magnitude_of(x[i]);
        if (magnitude >= 0x7f800000) {
            out[i] = x[i] - x[i];
        } else {
            Angle a = magnitude < reduced_below ? reduce(static_cast<double>(x[i]))
                                                : reduce_far(x[i]);
            out[i] = static_cast<float>(F::of(a));
        }
    }
}

template <class F>
void periodic(void* out, const void* x, int64_t n) {
    constexpr int64_t block = 256;
    for (int64_t begin = 0; begin < n; begin += block) {
        int64_t count = n - begin < block ? n - begin : block;
        auto* r = static_cast<float*>(out) + begin;
        const auto* a = static_cast<const float*>(x) + begin;
        int32_t largest = 0;
        for (int64_t i = 0; i < count; ++i) {
            int32_t magnitude = magnitude_of(a[i]);
            largest = magnitude > largest ? magnitude : largest;
        }
        if (largest >= reduced_below) {
            far_angles<F>(r, a, count);
            continue;
        }
        INGOT_VECTORIZE
        for (int64_t i = 0; i < count; ++i) {
            r[i] = static_cast<float>(F::of(reduce(static_cast<double>(a[i]))));
        }
    }
}

/// atan(t) for 0 <= t <= 1.
inline double arc_tangent(double t) {
    double s = t * t;
    double p = 0.00044919245765490866;
    p = p * s - 0.003377213462334606;
    p = p * s + 0.01191097228843482;
    p = p * s - 0.026745845342112037;
    p = p * s + 0.0443667970040002;
    p = p * s - 0.060686774537549996;
    p = p * s + 0.07515378024236992;
    p = p * s - 0.09054953049199382;
    p = p * s + 0.11106369669122923;
    p = p * s - 0.1428534334761844;
    p = p * s + 0.199999853335107;
    p = p * s - 0.33333333130225345;
    return t * (p * s + 1.0);
}

}  // namespace

void sin_f32(void* out, const void* x, const void*, const void*, int64_t n) {
    periodic<Sin>(out, x, n);
}
void cos_f32(void* out, const void* x, const void*, const void*, int64_t n) {
    periodic<Cos>(out, x, n);
}
void tan_f32(void* out, const void* x, const void*, const void*, int64_t n) {
    periodic<Tan>(out, x, n);
}

void atan_f32(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<float*>(out);
    const auto* a = static_cast<const float*>(x);
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        double v = static_cast<double>(a[i]);
        double m = __builtin_fabs(v);
        double p = arc_tangent(m > 1.0 ? 1.0 / m : m);
        double y = m > 1.0 ? half_pi - p : p;
        r[i] = static_cast<float>(__builtin_copysign(y, v));
    }
}
