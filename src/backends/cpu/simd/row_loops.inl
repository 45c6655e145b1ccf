// SPDX-License-Identifier: Apache-2.0
// Reductions and updates of rows of f32, with sixteen partial results for any vector width, so that
// all variants add in the same order.

using Lanes = float __attribute__((vector_size(64)));
typedef Lanes LanesMemory __attribute__((aligned(4), may_alias));
constexpr int64_t lanes = 16;

inline Lanes load_lanes(const float* p) { return *reinterpret_cast<const LanesMemory*>(p); }

inline float sum_lanes(const Lanes& v) {
    float part[lanes];
    __builtin_memcpy(part, &v, sizeof v);
    for (int64_t step = lanes / 2; step > 0; step /= 2) {
        for (int64_t i = 0; i < step; ++i) {
            part[i] += part[i + step];
        }
    }
    return part[0];
}

float row_sum(const float* x, int64_t n) {
    Lanes a = {};
    Lanes b = {};
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        a += load_lanes(x + i);
        b += load_lanes(x + i + lanes);
    }
    a += b;
    float rest = 0;
    for (; i + lanes <= n; i += lanes) {
        a += load_lanes(x + i);
    }
    for (; i < n; ++i) {
        rest += x[i];
    }
    return sum_lanes(a) + rest;
}

float row_sum_squares(const float* x, float mean, int64_t n) {
    Lanes a = {};
    Lanes b = {};
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        Lanes u = load_lanes(x + i) - mean;
        Lanes v = load_lanes(x + i + lanes) - mean;
        a += u * u;
        b += v * v;
    }
    float rest = 0;
    for (; i < n; ++i) {
        float d = x[i] - mean;
        rest += d * d;
    }
    return sum_lanes(a + b) + rest;
}

template <bool least, class V>
inline V extreme(V a, V b) {
    return (least ? a < b : a > b) ? a : b;
}

/// The largest of x, or with `least` the least; NaN when one is NaN. Four chains hide the latency
/// of a comparison; NaN, which they may lose, is looked for beside them.
template <bool least>
float row_extreme(const float* x, int64_t n) {
    float best = least ? __builtin_inff() : -__builtin_inff();
    int64_t i = 0;
    bool nan = false;
    if (n >= lanes) {
        Lanes m = load_lanes(x);
        Lanes m1 = m;
        Lanes m2 = m;
        Lanes m3 = m;
        auto bad = m != m;
        for (i = lanes; i + 4 * lanes <= n; i += 4 * lanes) {
            Lanes v = load_lanes(x + i);
            Lanes v1 = load_lanes(x + i + lanes);
            Lanes v2 = load_lanes(x + i + 2 * lanes);
            Lanes v3 = load_lanes(x + i + 3 * lanes);
            bad |= (v != v) | (v1 != v1) | (v2 != v2) | (v3 != v3);
            m = extreme<least>(v, m);
            m1 = extreme<least>(v1, m1);
            m2 = extreme<least>(v2, m2);
            m3 = extreme<least>(v3, m3);
        }
        for (; i + lanes <= n; i += lanes) {
            Lanes v = load_lanes(x + i);
            bad |= v != v;
            m = extreme<least>(v, m);
        }
        m = extreme<least>(extreme<least>(m, m1), extreme<least>(m2, m3));
        float part[lanes];
        int32_t flags[lanes];
        __builtin_memcpy(part, &m, sizeof m);
        __builtin_memcpy(flags, &bad, sizeof bad);
        int32_t any = 0;
        for (int k = 0; k < lanes; ++k) {
            best = extreme<least>(part[k], best);
            any |= flags[k];
        }
        nan = any != 0;
    }
    for (; i < n; ++i) {
        nan = nan || x[i] != x[i];
        best = extreme<least>(x[i], best);
    }
    return nan ? __builtin_nanf("") : best;
}

float row_dot(const float* x, const float* y, int64_t n) {
    Lanes a = {};
    Lanes b = {};
    int64_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        a += load_lanes(x + i) * load_lanes(y + i);
        b += load_lanes(x + i + lanes) * load_lanes(y + i + lanes);
    }
    float rest = 0;
    for (; i < n; ++i) {
        rest += x[i] * y[i];
    }
    return sum_lanes(a + b) + rest;
}

float row_exp_sum(float* out, const float* x, float scale, float shift, int64_t n) {
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        out[i] = exp_(x[i] * scale - shift);
    }
    return row_sum(out, n);
}

void row_scale(float* out, const float* x, float factor, int64_t n) {
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        out[i] = x[i] * factor;
    }
}

void row_normalize(float* out, const float* x, float mean, float factor, const float* weight,
                   const float* bias, int64_t n) {
    if (weight != nullptr && bias != nullptr) {
        INGOT_VECTORIZE
        for (int64_t i = 0; i < n; ++i) {
            out[i] = (x[i] - mean) * factor * weight[i] + bias[i];
        }
    } else if (weight != nullptr) {
        INGOT_VECTORIZE
        for (int64_t i = 0; i < n; ++i) {
            out[i] = (x[i] - mean) * factor * weight[i];
        }
    } else {
        INGOT_VECTORIZE
        for (int64_t i = 0; i < n; ++i) {
            out[i] = (x[i] - mean) * factor + (bias != nullptr ? bias[i] : 0.0f);
        }
    }
}

void row_add_scaled(float* y, const float* x, float factor, int64_t n) {
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        y[i] += x[i] * factor;
    }
}

void row_multiply_add(float* y, const float* a, const float* b, int64_t n) {
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        y[i] += a[i] * b[i];
    }
}

/// Blocks of this many sums stay in registers over all taps.
constexpr int64_t byte_block = 4 * tile_width;

template <class X>
void byte_taps_of(int32_t* y, const X* x, const int64_t* taps, int64_t count, const int16_t* w,
                  int64_t n) {
    int64_t begin = 0;
    for (; begin + byte_block <= n; begin += byte_block) {
        uint32_t sums[byte_block] = {};
        for (int64_t t = 0; t < count; ++t) {
            const X* from = x + taps[t] + begin;
            const int16_t* by = w + t * n + begin;
            INGOT_VECTORIZE
            for (int64_t i = 0; i < byte_block; ++i) {
                sums[i] += static_cast<uint32_t>(static_cast<int32_t>(from[i]) * by[i]);
            }
        }
        for (int64_t i = 0; i < byte_block; ++i) {
            y[begin + i] = static_cast<int32_t>(sums[i]);
        }
    }
    uint32_t sums[byte_block] = {};
    for (int64_t t = 0; t < count; ++t) {
        const X* from = x + taps[t] + begin;
        const int16_t* by = w + t * n + begin;
        INGOT_VECTORIZE
        for (int64_t i = 0; i < n - begin; ++i) {
            sums[i] += static_cast<uint32_t>(static_cast<int32_t>(from[i]) * by[i]);
        }
    }
    for (int64_t i = 0; i < n - begin; ++i) {
        y[begin + i] = static_cast<int32_t>(sums[i]);
    }
}

void row_byte_taps(int32_t* y, const void* x, bool x_signed, const int64_t* taps, int64_t count,
                   const int16_t* w, int64_t n) {
    if (x_signed) {
        byte_taps_of(y, static_cast<const int8_t*>(x), taps, count, w, n);
    } else {
        byte_taps_of(y, static_cast<const uint8_t*>(x), taps, count, w, n);
    }
}
