// SPDX-License-Identifier: Apache-2.0
// Loops for every scalar function and conversion without a vector form, generated from expr.def.
#include "backends/cpu/expr_program.h"
#include "ir/expr_math.h"

#include <array>
#include <cmath>
#include <limits>

namespace ingot::cpu {

namespace {

/// Integers compute in the widest type of their signedness; bool as 0 and 1.
template <class T>
using Wide = std::conditional_t<
    std::is_floating_point_v<T>, T,
    std::conditional_t<std::is_same_v<T, bool>, int64_t,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>>;

template <class T, class W>
T narrow(W v) {
    if constexpr (std::is_same_v<T, bool>) {
        return v != W(0);
    } else {
        return static_cast<T>(v);
    }
}

using namespace expr_math;

// One struct per row of expr.def.
#define INGOT_EXPR(Name, text, arity, row_kind, rounding, identity, cpp, device)                   \
    template <class T>                                                                             \
    struct Name##Loop {                                                                            \
        static constexpr bool valid =                                                              \
            ExprKind::row_kind == ExprKind::Arith || ExprKind::row_kind == ExprKind::Compare ||    \
            ((ExprKind::row_kind == ExprKind::Float ||                                             \
              ExprKind::row_kind == ExprKind::Classify) &&                                         \
             std::is_floating_point_v<T>) ||                                                       \
            (ExprKind::row_kind == ExprKind::Bits && !std::is_floating_point_v<T>);                \
        static void run(void* out, const void* x, const void* y, const void*, int64_t n) {         \
            if constexpr (valid) {                                                                 \
                constexpr bool test = ExprKind::row_kind == ExprKind::Compare ||                   \
                                      ExprKind::row_kind == ExprKind::Classify;                    \
                using R = std::conditional_t<test, bool, T>;                                       \
                auto* r = static_cast<R*>(out);                                                    \
                const auto* p = static_cast<const T*>(x);                                          \
                [[maybe_unused]] const auto* q = static_cast<const T*>(y);                         \
                for (int64_t i = 0; i < n; ++i) {                                                  \
                    [[maybe_unused]] auto a = static_cast<Wide<T>>(p[i]);                          \
                    [[maybe_unused]] auto b = (arity) > 1 ? static_cast<Wide<T>>(q[i]) : a;        \
                    r[i] = narrow<R>(cpp);                                                         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    };
#include "ir/expr.def"
#undef INGOT_EXPR

/// Logical not of a bool, which is not the bitwise complement.
void not_bool(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<bool*>(out);
    const auto* a = static_cast<const bool*>(x);
    for (int64_t i = 0; i < n; ++i) {
        r[i] = !a[i];
    }
}

template <class T>
void select_loop(void* out, const void* c, const void* x, const void* y, int64_t n) {
    auto* r = static_cast<T*>(out);
    const auto* condition = static_cast<const bool*>(c);
    const auto* a = static_cast<const T*>(x);
    const auto* b = static_cast<const T*>(y);
    for (int64_t i = 0; i < n; ++i) {
        r[i] = condition[i] ? a[i] : b[i];
    }
}

struct LoopRow {
    ExprOp op;
    MapLoop loop;
};

template <class T>
MapLoop loop_for(ExprOp op) {
    static const LoopRow rows[] = {
#define INGOT_EXPR(Name, text, arity, row_kind, rounding, identity, cpp, device)                   \
    {ExprOp::Name, Name##Loop<T>::valid ? Name##Loop<T>::run : nullptr},
#include "ir/expr.def"
#undef INGOT_EXPR
        {ExprOp::Select, select_loop<T>},
    };
    for (const LoopRow& r : rows) {
        if (r.op == op) {
            return r.loop;
        }
    }
    return nullptr;
}

/// Calls f with a value of the C++ type that holds a compute type.
template <class F>
auto with_compute_type(DType t, const F& f) {
    switch (t) {
    case DType::F32:
        return f(float{});
    case DType::F64:
        return f(double{});
    case DType::Bool:
        return f(bool{});
    case DType::I8:
        return f(int8_t{});
    case DType::U8:
        return f(uint8_t{});
    case DType::I16:
        return f(int16_t{});
    case DType::U16:
        return f(uint16_t{});
    case DType::I32:
        return f(int32_t{});
    case DType::U32:
        return f(uint32_t{});
    case DType::I64:
        return f(int64_t{});
    default:
        return f(uint64_t{});
    }
}

// --- conversions ---------------------------------------------------------------------------------

/// Truncates; saturates above the range and, for signed types, below it; NaN gives 0.
template <class To, class From>
To integer_from(From v) {
    if (!(v == v)) {
        return 0;
    }
    using Limits = std::numeric_limits<To>;
    auto high = std::ldexp(From(1), Limits::digits);
    if (v >= high) {
        return Limits::max();
    }
    if constexpr (std::is_signed_v<To>) {
        return v < -high ? Limits::min() : static_cast<To>(v);
    } else if (v < From(0)) {
        return v <= From(-9.3e18) ? To(0) : static_cast<To>(static_cast<int64_t>(v));
    } else {
        return static_cast<To>(v);
    }
}

template <class To, class From>
To convert(From v) {
    if constexpr (std::is_same_v<To, bool>) {
        return v != From(0);
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        return integer_from<To>(v);
    } else {
        return static_cast<To>(v);
    }
}

template <class From, class To>
void convert_loop(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<To*>(out);
    const auto* a = static_cast<const From*>(x);
    for (int64_t i = 0; i < n; ++i) {
        r[i] = convert<To>(a[i]);
    }
}

/// Wraps the value of an 8-bit register to 4 bits.
template <class From, bool is_signed>
void to_nibble(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<uint8_t*>(out);
    const auto* a = static_cast<const From*>(x);
    for (int64_t i = 0; i < n; ++i) {
        int64_t v = 0;
        if constexpr (std::is_floating_point_v<From>) {
            constexpr From high = is_signed ? From(8) : From(16);
            v = a[i] >= high                ? static_cast<int64_t>(high) - 1
                : is_signed && a[i] < -high ? -8
                                            : static_cast<int64_t>(convert<int64_t>(a[i]));
        } else {
            v = static_cast<int64_t>(a[i] & 15);
        }
        v &= 15;
        r[i] = static_cast<uint8_t>(is_signed && v > 7 ? v - 16 : v);
    }
}

template <class From>
float to_float(From v) {
    return static_cast<float>(v);
}

float round_f16(float v) {
    return f32_from_f16(f16_from_f32(v));
}
float round_f16(double v) {
    return f32_from_f16(f16_from_f64(v));
}
float round_bf16(float v) {
    return f32_from_bf16(bf16_from_f32(v));
}
float round_bf16(double v) {
    return f32_from_bf16(bf16_from_f64(v));
}

/// Rounds to a small float and back to f32, the type of the instruction.
template <class From, DType to, bool saturate>
void round_loop(void* out, const void* x, const void*, const void*, int64_t n) {
    using Exact = std::conditional_t<std::is_same_v<From, float>, float, double>;
    auto* r = static_cast<float*>(out);
    const auto* a = static_cast<const From*>(x);
    for (int64_t i = 0; i < n; ++i) {
        auto v = static_cast<Exact>(a[i]);
        if constexpr (to == DType::F16) {
            r[i] = round_f16(v);
        } else if constexpr (to == DType::BF16) {
            r[i] = round_bf16(v);
        } else if constexpr (to == DType::F8E4M3) {
            r[i] = f32_from_f8e4m3(f8e4m3_from_f32(static_cast<float>(v), saturate));
        } else if constexpr (to == DType::F8E5M2) {
            r[i] = f32_from_f8e5m2(f8e5m2_from_f32(static_cast<float>(v), saturate));
        } else {
            r[i] = f32_from_f4e2m1(f4e2m1_from_f32(static_cast<float>(v)));
        }
    }
}

template <class From>
MapLoop rounding_for(DType to, bool saturate) {
    switch (to) {
    case DType::F16:
        return round_loop<From, DType::F16, false>;
    case DType::BF16:
        return round_loop<From, DType::BF16, false>;
    case DType::F8E4M3:
        return saturate ? round_loop<From, DType::F8E4M3, true>
                        : round_loop<From, DType::F8E4M3, false>;
    case DType::F8E5M2:
        return saturate ? round_loop<From, DType::F8E5M2, true>
                        : round_loop<From, DType::F8E5M2, false>;
    case DType::F4E2M1:
        return round_loop<From, DType::F4E2M1, false>;
    case DType::I4:
        return to_nibble<From, true>;
    case DType::U4:
        return to_nibble<From, false>;
    default:
        return nullptr;
    }
}

template <float (*from_bits)(uint8_t)>
void load_byte_float(void* out, const void* x, const void*, const void*, int64_t n) {
    static const std::array<float, 256> table = [] {
        std::array<float, 256> t{};
        for (size_t i = 0; i < t.size(); ++i) {
            t[i] = from_bits(static_cast<uint8_t>(i));
        }
        return t;
    }();
    auto* r = static_cast<float*>(out);
    const auto* a = static_cast<const uint8_t*>(x);
    for (int64_t i = 0; i < n; ++i) {
        r[i] = table[a[i]];
    }
}

template <class Bits, float (*from_bits)(Bits)>
void load_float(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<float*>(out);
    const auto* a = static_cast<const Bits*>(x);
    for (int64_t i = 0; i < n; ++i) {
        r[i] = from_bits(a[i]);
    }
}

template <class Bits, Bits (*to_bits)(float)>
void store_float(void* out, const void* x, const void*, const void*, int64_t n) {
    auto* r = static_cast<Bits*>(out);
    const auto* a = static_cast<const float*>(x);
    for (int64_t i = 0; i < n; ++i) {
        r[i] = to_bits(a[i]);
    }
}

uint8_t e4m3_bits(float v) {
    return f8e4m3_from_f32(v, true);
}
uint8_t e5m2_bits(float v) {
    return f8e5m2_from_f32(v, !std::isinf(v)); // a cast that saturates has left none
}

} // namespace

MapLoop map_loop(ExprOp op, DType type) {
    if (MapLoop fast = vector_loops().map(op, type)) {
        return fast;
    }
    if (op == ExprOp::Not && type == DType::Bool) {
        return not_bool;
    }
    return with_compute_type(type, [op](auto t) { return loop_for<decltype(t)>(op); });
}

MapLoop cast_loop(DType from, DType to, bool saturate) {
    return with_compute_type(from, [=](auto f) -> MapLoop {
        using From = decltype(f);
        if (MapLoop rounding = rounding_for<From>(to, saturate)) {
            return rounding;
        }
        if (MapLoop fast = vector_loops().convert(from, to)) {
            return fast;
        }
        return with_compute_type(to,
                                 [](auto t) -> MapLoop { return convert_loop<From, decltype(t)>; });
    });
}

MapLoop load_loop(DType stored) {
    switch (stored) {
    case DType::F16:
    case DType::BF16:
        if (MapLoop fast = vector_loops().convert(stored, DType::F32)) {
            return fast;
        }
        return load_float<uint16_t, f32_from_f16>;
    case DType::F8E4M3:
        return load_byte_float<f32_from_f8e4m3>;
    case DType::F8E5M2:
        return load_byte_float<f32_from_f8e5m2>;
    default:
        return nullptr;
    }
}

MapLoop store_loop(DType stored) {
    switch (stored) {
    case DType::F16:
    case DType::BF16:
        if (MapLoop fast = vector_loops().convert(DType::F32, stored)) {
            return fast;
        }
        return store_float<uint16_t, f16_from_f32>;
    case DType::F8E4M3:
        return store_float<uint8_t, e4m3_bits>;
    case DType::F8E5M2:
        return store_float<uint8_t, e5m2_bits>;
    default:
        return nullptr;
    }
}

} // namespace ingot::cpu
