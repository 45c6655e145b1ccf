// SPDX-License-Identifier: Apache-2.0
// Loops for the scalar functions and conversions that have vector forms.

template <class T>
struct Unsigned {
    using type = T;
};
template <>
struct Unsigned<int32_t> {
    using type = uint32_t;
};
template <>
struct Unsigned<int64_t> {
    using type = uint64_t;
};
template <class T>
inline T add_(T a, T b) {
    using U = typename Unsigned<T>::type;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
}
template <class T>
inline T sub_(T a, T b) {
    using U = typename Unsigned<T>::type;
    return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
}
template <class T>
inline T mul_(T a, T b) {
    using U = typename Unsigned<T>::type;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
}

// One struct per function; `of` computes one lane.
#define INGOT_LANE(Name, R, expression)                                                            \
    template <class T>                                                                             \
    struct Name {                                                                                  \
        using Result = R;                                                                          \
        static R of([[maybe_unused]] T a, [[maybe_unused]] T b) {                                  \
            return static_cast<R>(expression);                                                     \
        }                                                                                          \
    };
INGOT_LANE(Add, T, add_(a, b))
INGOT_LANE(Sub, T, sub_(a, b))
INGOT_LANE(Mul, T, mul_(a, b))
INGOT_LANE(DivF, T, a / b)
INGOT_LANE(Min, T, (a < b || a != a) ? a : b)
INGOT_LANE(Max, T, (a > b || a != a) ? a : b)
INGOT_LANE(Neg, T, sub_(T(0), a))
INGOT_LANE(NegF, T, -a)
INGOT_LANE(Abs, T, a < T(0) ? sub_(T(0), a) : a)
INGOT_LANE(AbsF, T, sizeof(T) == 4 ? __builtin_fabsf(static_cast<float>(a))
                                   : __builtin_fabs(static_cast<double>(a)))
INGOT_LANE(SignF, T, a > T(0) ? T(1) : a < T(0) ? T(-1) : a)
INGOT_LANE(SqrtF32, T, __builtin_sqrtf(a))
INGOT_LANE(SqrtF64, T, __builtin_sqrt(a))
INGOT_LANE(ExpF, T, exp_(a))
INGOT_LANE(LogF, T, log_(a))
INGOT_LANE(TanhF, T, tanh_(a))
INGOT_LANE(ErfF, T, erf_(a))
INGOT_LANE(SigmoidF, T, sigmoid_(a))
INGOT_LANE(FloorF, T, __builtin_floorf(a))
INGOT_LANE(CeilF, T, __builtin_ceilf(a))
INGOT_LANE(RoundF, T, __builtin_rintf(a))
INGOT_LANE(TruncF, T, __builtin_truncf(a))
INGOT_LANE(Eq, uint8_t, a == b)
INGOT_LANE(Lt, uint8_t, a < b)
INGOT_LANE(Le, uint8_t, a <= b)
INGOT_LANE(IsNan, uint8_t, a != a)
INGOT_LANE(And, T, a & b)
INGOT_LANE(Or, T, a | b)
INGOT_LANE(Xor, T, a ^ b)
INGOT_LANE(NotBool, T, a == 0)
#undef INGOT_LANE

template <class T, class F>
void unary(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<typename F::Result*>(out);
    const auto* a = static_cast<const T*>(x);
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        r[i] = F::of(a[i], a[i]);
    }
}

template <class T, class F>
void binary(void* out, const void* x, const void* y, const void*, int64_t n) {
    auto* r = static_cast<typename F::Result*>(out);
    const auto* a = static_cast<const T*>(x);
    const auto* b = static_cast<const T*>(y);
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        r[i] = F::of(a[i], b[i]);
    }
}

template <class T>
void select_loop(void* out, const void* c, const void* x, const void* y, int64_t n) {
    auto* r = static_cast<T*>(out);
    const auto* condition = static_cast<const uint8_t*>(c);
    const auto* a = static_cast<const T*>(x);
    const auto* b = static_cast<const T*>(y);
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        r[i] = condition[i] != 0 ? a[i] : b[i];
    }
}

template <class From, class To>
void plain_convert(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<To*>(out);
    const auto* a = static_cast<const From*>(x);
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        r[i] = static_cast<To>(a[i]);
    }
}

/// f32 to 8-bit and 32-bit integers: truncates, saturates above the range and, for signed types,
/// below it. NaN gives 0.
template <class To>
void saturating_convert(void* out, const void* x, float low, float high, To top, int64_t n) {
    auto* r = static_cast<To*>(out);
    const auto* a = static_cast<const float*>(x);
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        float v = a[i] == a[i] ? a[i] : 0.0f;
        float c = v < low ? low : v;
        auto whole = static_cast<int32_t>(c >= high ? 0.0f : c);
        r[i] = c >= high ? top : static_cast<To>(whole);
    }
}

void f32_to_i32(void* out, const void* x, const void*, const void*, int64_t n) {
    saturating_convert<int32_t>(out, x, -2147483648.0f, 2147483648.0f, 2147483647, n);
}
void f32_to_i8(void* out, const void* x, const void*, const void*, int64_t n) {
    saturating_convert<int8_t>(out, x, -128.0f, 128.0f, 127, n);
}

/// Negative values wrap like a conversion through a wide integer.
void f32_to_u8(void* out, const void* x, const void*, const void*, int64_t n) {
    saturating_convert<uint8_t>(out, x, -2147483648.0f, 256.0f, 255, n);
}

template <class To, bool shifted>
void quantize(void* out, const void* x, const void* scale, const void* zero, int64_t n) {
    constexpr float low = std::is_signed_v<To> ? -128.0f : 0.0f;
    auto* r = static_cast<To*>(out);
    const auto* a = static_cast<const float*>(x);
    const auto* s = static_cast<const float*>(scale);
    const auto* z = static_cast<const float*>(zero);
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        float v = __builtin_rintf(a[i] / s[i]) + (shifted ? z[i] : 0.0f);
        if constexpr (std::is_signed_v<To>) {
            v = v == v ? v : 0.0f;
        }
        v = v > low ? v : low;  // NaN becomes the 0 of unsigned types
        v = v > low + 255.0f ? low + 255.0f : v;
        r[i] = static_cast<To>(static_cast<int32_t>(v));
    }
}

void centred_sums(void* out, const void* x, const void* y, const void* z, int64_t n) {
    auto* r = static_cast<float*>(out);
    const auto* a = static_cast<const uint32_t*>(x);
    const auto* b = static_cast<const uint32_t*>(y);
    const auto* c = static_cast<const uint32_t*>(z);
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        r[i] = static_cast<float>(static_cast<int32_t>(a[i] - b[i] * c[i]));
    }
}

#if defined(__AVX512BW__)
using ByteVector = char __attribute__((vector_size(64)));
/// The entry at index `at` of a row of 16 in each lane; 0 for an index of more than 15.
inline ByteVector entry_of_row(ByteVector row, ByteVector at) {
    auto top = _mm512_adds_epu8((__m512i)at, _mm512_set1_epi8(0x70));
    return (ByteVector)_mm512_shuffle_epi8((__m512i)row, top);
}
#elif defined(__AVX2__)
using ByteVector = char __attribute__((vector_size(32)));
/// The entry at index `at` of a row of 16 in each lane; 0 for an index of more than 15.
inline ByteVector entry_of_row(ByteVector row, ByteVector at) {
    auto top = _mm256_adds_epu8((__m256i)at, _mm256_set1_epi8(0x70));
    return (ByteVector)_mm256_shuffle_epi8((__m256i)row, top);
}
#endif

void lookup(void* out, const void* x, const void* table, const void*, int64_t n) {
    auto* r = static_cast<uint8_t*>(out);
    const auto* a = static_cast<const uint8_t*>(x);
    const auto* t = static_cast<const uint8_t*>(table);
    int64_t i = 0;
#if defined(__AVX2__)
    // A shuffle gives 0 where its index has the top bit, which other rows' indices get by the
    // saturated addition.
    constexpr auto width = static_cast<int64_t>(sizeof(ByteVector));
    if (n >= width) {
        ByteVector rows[16];
        for (int64_t k = 0; k < 16; ++k) {
            for (int64_t b = 0; b < width; b += 16) {
                __builtin_memcpy(reinterpret_cast<char*>(&rows[k]) + b, t + 16 * k, 16);
            }
        }
        for (; i + width <= n; i += width) {
            ByteVector at;
            __builtin_memcpy(&at, a + i, sizeof at);
            ByteVector found = {};
            for (const ByteVector& row : rows) {
                found |= entry_of_row(row, at);
                at -= 16;
            }
            __builtin_memcpy(r + i, &found, sizeof found);
        }
    }
#endif
    for (; i < n; ++i) {
        r[i] = t[a[i]];
    }
}

void bf16_to_f32(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<int32_t*>(out);
    const auto* a = static_cast<const uint16_t*>(x);
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        r[i] = static_cast<int32_t>(static_cast<uint32_t>(a[i]) << 16);
    }
}

void f32_to_bf16(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<uint16_t*>(out);
    const auto* a = static_cast<const uint32_t*>(x);
    INGOT_VECTORIZE
    for (int64_t i = 0; i < n; ++i) {
        uint32_t u = a[i];
        uint32_t rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
        uint32_t nan = (u >> 16) | 0x40U;
        r[i] = static_cast<uint16_t>((u & 0x7fffffffU) > 0x7f800000U ? nan : rounded);
    }
}

#if defined(__F16C__)
using Half8 = short __attribute__((vector_size(16)));
using Float8 = float __attribute__((vector_size(32)));

void f16_to_f32(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<float*>(out);
    const auto* a = static_cast<const uint16_t*>(x);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        Half8 h;
        __builtin_memcpy(&h, a + i, sizeof h);
        Float8 f = __builtin_ia32_vcvtph2ps256(h);
        __builtin_memcpy(r + i, &f, sizeof f);
    }
    Half8 h = {};
    __builtin_memcpy(&h, a + i, static_cast<size_t>(n - i) * 2);
    Float8 f = __builtin_ia32_vcvtph2ps256(h);
    __builtin_memcpy(r + i, &f, static_cast<size_t>(n - i) * 4);
}

void f32_to_f16(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<uint16_t*>(out);
    const auto* a = static_cast<const float*>(x);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        Float8 f;
        __builtin_memcpy(&f, a + i, sizeof f);
        Half8 h = __builtin_ia32_vcvtps2ph256(f, 0);
        __builtin_memcpy(r + i, &h, sizeof h);
    }
    Float8 f = {};
    __builtin_memcpy(&f, a + i, static_cast<size_t>(n - i) * 4);
    Half8 h = __builtin_ia32_vcvtps2ph256(f, 0);
    __builtin_memcpy(r + i, &h, static_cast<size_t>(n - i) * 2);
}
#endif

struct MapRow {
    ExprOp op;
    DType type;
    MapLoop loop;
};

#define INGOT_NUMBER_ROWS(D, T)                                                                    \
    {ExprOp::Add, D, binary<T, Add<T>>}, {ExprOp::Sub, D, binary<T, Sub<T>>},                      \
        {ExprOp::Mul, D, binary<T, Mul<T>>}, {ExprOp::Min, D, binary<T, Min<T>>},                  \
        {ExprOp::Max, D, binary<T, Max<T>>}, {ExprOp::Eq, D, binary<T, Eq<T>>},                    \
        {ExprOp::Lt, D, binary<T, Lt<T>>}, {ExprOp::Le, D, binary<T, Le<T>>},                      \
        {ExprOp::Select, D, select_loop<T>}
#define INGOT_FLOAT_ROWS(D, T, Sqrt_)                                                              \
    {ExprOp::Div, D, binary<T, DivF<T>>}, {ExprOp::Neg, D, unary<T, NegF<T>>},                     \
        {ExprOp::Abs, D, unary<T, AbsF<T>>}, {ExprOp::Sign, D, unary<T, SignF<T>>},                \
        {ExprOp::Sqrt, D, unary<T, Sqrt_<T>>}, {ExprOp::IsNan, D, unary<T, IsNan<T>>}
#define INGOT_INTEGER_ROWS(D, T)                                                                   \
    {ExprOp::Neg, D, unary<T, Neg<T>>}, {ExprOp::Abs, D, unary<T, Abs<T>>},                        \
        {ExprOp::And, D, binary<T, And<T>>}, {ExprOp::Or, D, binary<T, Or<T>>},                    \
        {ExprOp::Xor, D, binary<T, Xor<T>>}
#define INGOT_BOOL_ROWS(D)                                                                         \
    {ExprOp::And, D, binary<uint8_t, And<uint8_t>>}, {ExprOp::Or, D, binary<uint8_t, Or<uint8_t>>}, \
        {ExprOp::Xor, D, binary<uint8_t, Xor<uint8_t>>},                                           \
        {ExprOp::Not, D, unary<uint8_t, NotBool<uint8_t>>},                                        \
        {ExprOp::Eq, D, binary<uint8_t, Eq<uint8_t>>},                                             \
        {ExprOp::Select, D, select_loop<uint8_t>}

const MapRow map_rows[] = {
    INGOT_NUMBER_ROWS(DType::F32, float),
    INGOT_NUMBER_ROWS(DType::F64, double),
    INGOT_NUMBER_ROWS(DType::I32, int32_t),
    INGOT_NUMBER_ROWS(DType::I64, int64_t),
    INGOT_FLOAT_ROWS(DType::F32, float, SqrtF32),
    INGOT_FLOAT_ROWS(DType::F64, double, SqrtF64),
    INGOT_INTEGER_ROWS(DType::I32, int32_t),
    INGOT_INTEGER_ROWS(DType::I64, int64_t),
    INGOT_BOOL_ROWS(DType::Bool),
    {ExprOp::Exp, DType::F32, unary<float, ExpF<float>>},
    {ExprOp::Log, DType::F32, unary<float, LogF<float>>},
    {ExprOp::Sin, DType::F32, sin_f32},
    {ExprOp::Cos, DType::F32, cos_f32},
    {ExprOp::Tan, DType::F32, tan_f32},
    {ExprOp::Atan, DType::F32, atan_f32},
    {ExprOp::Tanh, DType::F32, unary<float, TanhF<float>>},
    {ExprOp::Erf, DType::F32, unary<float, ErfF<float>>},
    {ExprOp::Sigmoid, DType::F32, unary<float, SigmoidF<float>>},
    {ExprOp::Floor, DType::F32, unary<float, FloorF<float>>},
    {ExprOp::Ceil, DType::F32, unary<float, CeilF<float>>},
    {ExprOp::Round, DType::F32, unary<float, RoundF<float>>},
    {ExprOp::Trunc, DType::F32, unary<float, TruncF<float>>},
};

struct ConvertRow {
    DType from;
    DType to;
    MapLoop loop;
};

const ConvertRow convert_rows[] = {
    {DType::BF16, DType::F32, bf16_to_f32},
    {DType::F32, DType::BF16, f32_to_bf16},
#if defined(__F16C__)
    {DType::F16, DType::F32, f16_to_f32},
    {DType::F32, DType::F16, f32_to_f16},
#endif
    {DType::F32, DType::I32, f32_to_i32},
    {DType::F32, DType::I8, f32_to_i8},
    {DType::F32, DType::U8, f32_to_u8},
    {DType::F32, DType::F64, plain_convert<float, double>},
    {DType::F64, DType::F32, plain_convert<double, float>},
    {DType::I32, DType::F32, plain_convert<int32_t, float>},
    {DType::I64, DType::F32, plain_convert<int64_t, float>},
    {DType::I8, DType::F32, plain_convert<int8_t, float>},
    {DType::U8, DType::F32, plain_convert<uint8_t, float>},
    {DType::Bool, DType::F32, plain_convert<uint8_t, float>},
    {DType::I32, DType::I64, plain_convert<int32_t, int64_t>},
    {DType::I64, DType::I32, plain_convert<int64_t, int32_t>},
    {DType::I8, DType::I32, plain_convert<int8_t, int32_t>},
    {DType::U8, DType::I32, plain_convert<uint8_t, int32_t>},
    {DType::I32, DType::I8, plain_convert<int32_t, int8_t>},
    {DType::I32, DType::U8, plain_convert<int32_t, uint8_t>},
};

MapLoop find_map(ExprOp op, DType type) {
    for (const MapRow& r : map_rows) {
        if (r.op == op && r.type == type) {
            return r.loop;
        }
    }
    return nullptr;
}

MapLoop find_quantize(DType to, bool shifted) {
    if (to == DType::I8) {
        return shifted ? quantize<int8_t, true> : quantize<int8_t, false>;
    }
    return shifted ? quantize<uint8_t, true> : quantize<uint8_t, false>;
}

MapLoop find_convert(DType from, DType to) {
    for (const ConvertRow& r : convert_rows) {
        if (r.from == from && r.to == to) {
            return r.loop;
        }
    }
    return nullptr;
}
