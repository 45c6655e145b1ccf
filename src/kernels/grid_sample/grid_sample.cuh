// SPDX-License-Identifier: Apache-2.0
// Positions along one axis of a sampled image: neighbours and their weights, from a coordinate in
// -1 to 1. The formulas are those of ops/grid_sample.cpp, in f32. Any coordinate, NaN too, gives
// indices inside the axis.
constexpr int sample_nearest = 0;
constexpr int sample_linear = 1;
constexpr int sample_cubic = 2;
constexpr int pad_zeros = 0;
constexpr int pad_border = 1;
constexpr int pad_reflection = 2;

template <int T>
struct AxisTaps {
    i32 at[T];
    float weight[T];
};

/// x within 0 and last; 0 for NaN.
DEVICE float clamped_position(float x, float last) {
    return fminf(x > 0.0f ? x : 0.0f, last);
}

/// Folds x back and forth between the borders of an axis.
template <bool ALIGN>
DEVICE float reflected_position(float x, float size) {
    const float low = ALIGN ? 0.0f : -0.5f;
    const float range = fmaxf(ALIGN ? size - 1.0f : size, 1.0f);
    const float distance = fabsf(x - low);
    const float turns = floorf(distance / range);
    // Rounded, as by the op's expansion: far away that decides the result.
    const float rest = distance - __fmul_rn(turns, range);
    const bool odd = turns - 2.0f * floorf(turns * 0.5f) > 0.5f;
    return (odd ? range - rest : rest) + low;
}

template <int MODE, int PADDING, bool ALIGN>
DEVICE float sample_position(float coordinate, float size) {
    float x = coordinate + 1.0f;
    x = ALIGN ? x * 0.5f * (size - 1.0f) : (__fmul_rn(x, size) - 1.0f) * 0.5f;
    if (MODE == sample_nearest)
        x = rintf(x);
    if (MODE == sample_cubic || PADDING == pad_zeros)
        return x;
    return PADDING == pad_border ? clamped_position(x, size - 1.0f)
                                 : reflected_position<ALIGN>(x, size);
}

DEVICE float cubic_sample_weight(float d) {
    const float a = -0.75f;
    d = fabsf(d);
    const float inner = ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f;
    const float outer = ((a * d - 5.0f * a) * d + 8.0f * a) * d - 4.0f * a;
    return d > 1.0f ? outer : inner;
}

/// Tap k is at the integral position `at`.
template <int PADDING, bool ALIGN, int T>
DEVICE void set_tap(AxisTaps<T>& taps, int k, float at, float weight, i32 size) {
    const float last = (float)size - 1.0f;
    float inside = PADDING == pad_reflection ? reflected_position<ALIGN>(at, (float)size) : at;
    inside = clamped_position(inside, last);
    taps.at[k] = min((i32)inside, size - 1); // `last` may be rounded up
    taps.weight[k] = PADDING != pad_zeros || inside == at ? weight : 0.0f;
}

template <int MODE, int PADDING, bool ALIGN, int T>
DEVICE void set_taps(AxisTaps<T>& taps, float coordinate, i32 size) {
    const float x = sample_position<MODE, PADDING, ALIGN>(coordinate, (float)size);
    if (MODE == sample_nearest) {
        set_tap<PADDING, ALIGN>(taps, 0, x, 1.0f, size);
        return;
    }
    const float low = floorf(x);
    const float fraction = x - low;
#pragma unroll
    for (int k = 0; k < T; ++k) {
        const int offset = MODE == sample_linear ? k : k - 1;
        float weight = k == 0 ? 1.0f - fraction : fraction;
        if (MODE == sample_cubic)
            weight = cubic_sample_weight(fraction - (float)offset);
        set_tap<PADDING, ALIGN>(taps, k, low + (float)offset, weight, size);
    }
}
