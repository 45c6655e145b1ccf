// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include "base/error.h"

#include <array>
#include <cmath>

namespace ingot {

namespace {

struct Row {
    std::string_view name;
    int bits;
    bool fp;
    bool integer;
    bool is_signed;
};

constexpr std::array<Row, dtype_count> rows = {{
    {"bool", 8, false, false, false},
    {"i4", 4, false, true, true},
    {"u4", 4, false, true, false},
    {"i8", 8, false, true, true},
    {"u8", 8, false, true, false},
    {"i16", 16, false, true, true},
    {"u16", 16, false, true, false},
    {"i32", 32, false, true, true},
    {"u32", 32, false, true, false},
    {"i64", 64, false, true, true},
    {"u64", 64, false, true, false},
    {"f4e2m1", 4, true, false, true},
    {"f8e4m3", 8, true, false, true},
    {"f8e5m2", 8, true, false, true},
    {"bf16", 16, true, false, true},
    {"f16", 16, true, false, true},
    {"f32", 32, true, false, true},
    {"f64", 64, true, false, true},
}};

const Row& row(DType t) {
    return rows[static_cast<size_t>(t)];
}

// A small binary float format; callers handle infinities and NaN.
struct Format {
    int mantissa; // stored bits
    int bias;
    int max_exponent; // largest biased exponent that holds finite values
};

// Rounds |x| (finite) to the format, nearest even; returns the code without sign. The code may
// exceed the largest finite one: then the value overflowed.
uint32_t round_to(double x, Format f) {
    if (x == 0) {
        return 0;
    }
    int exponent = 0;
    std::frexp(x, &exponent); // x = m * 2^exponent with m in [0.5, 1)
    int e = exponent - 1 + f.bias;
    int shift = e >= 1 ? exponent - 1 - f.mantissa : 1 - f.bias - f.mantissa;
    double scaled = std::ldexp(x, -shift); // exact: a power of two
    double whole = std::nearbyint(scaled);
    if (e >= 1) { // whole is in [2^mantissa, 2^(mantissa+1)]
        return (static_cast<uint32_t>(e) << f.mantissa) +
               (static_cast<uint32_t>(whole) - (1U << f.mantissa));
    }
    return static_cast<uint32_t>(whole);
}

double value_of(uint32_t code, Format f) {
    uint32_t m = code & ((1U << f.mantissa) - 1);
    int e = static_cast<int>(code >> f.mantissa);
    return e == 0
               ? std::ldexp(static_cast<double>(m), 1 - f.bias - f.mantissa)
               : std::ldexp(static_cast<double>(m + (1U << f.mantissa)), e - f.bias - f.mantissa);
}

constexpr Format half{10, 15, 30};
constexpr Format brain{7, 127, 254};
constexpr Format e4m3{3, 7, 15};
constexpr Format e5m2{2, 15, 30};
constexpr Format e2m1{1, 1, 3};

// IEEE-like 16-bit result: overflow to infinity, NaN quiet.
uint16_t ieee16(double x, Format f) {
    auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000U : 0U);
    auto infinity = static_cast<uint16_t>(static_cast<uint32_t>(f.max_exponent + 1) << f.mantissa);
    if (std::isnan(x)) {
        return static_cast<uint16_t>(sign | infinity | (1U << (f.mantissa - 1)));
    }
    double magnitude = std::fabs(x);
    uint32_t code = std::isinf(magnitude) ? infinity : round_to(magnitude, f);
    return static_cast<uint16_t>(sign | (code > infinity ? infinity : code));
}

} // namespace

std::string_view name(DType t) {
    return static_cast<size_t>(t) < rows.size() ? row(t).name : "invalid";
}

std::optional<DType> parse_dtype(std::string_view text) {
    for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].name == text) {
            return static_cast<DType>(i);
        }
    }
    return std::nullopt;
}

int bit_width(DType t) {
    return row(t).bits;
}

bool is_float(DType t) {
    return row(t).fp;
}

bool is_integer(DType t) {
    return row(t).integer;
}

bool is_signed(DType t) {
    return row(t).is_signed;
}

uint16_t f16_from_f64(double x) {
    auto single = static_cast<float>(x);
    bool exact = static_cast<double>(single) == x; // rounded once then too, and faster
    return exact ? f16_from_f32(single) : ieee16(x, half);
}

uint16_t bf16_from_f64(double x) {
    return ieee16(x, brain);
}

void fail_byte_size(DType t, int64_t count) {
    require(count >= 0, ErrorCode::InvalidArgument, count, " elements of ", t,
            " have no size in bytes");
    fail(ErrorCode::OutOfMemory, count, " elements of ", t,
         " have more than the 2^48 bytes that memory can have");
}

uint16_t f16_from_f32(float x) {
    uint32_t u = std::bit_cast<uint32_t>(x);
    uint32_t sign = (u >> 16) & 0x8000U;
    uint32_t a = u & 0x7fffffffU;
    if (a > 0x7f800000U) {
        return static_cast<uint16_t>(sign | 0x7e00U);
    }
    if (a >= 0x47800000U) { // 65536 and above, infinity too
        return static_cast<uint16_t>(sign | 0x7c00U);
    }
    if (a < 0x38800000U) { // below the smallest normal: add a float whose ulp is the f16 step
        float magic = std::bit_cast<float>(a) + 0.5F;
        return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(magic) - 0x3f000000U));
    }
    uint32_t odd = (a >> 13) & 1U;
    a += 0xc8000fffU + odd; // rebias the exponent and round to nearest even
    return static_cast<uint16_t>(sign | (a >> 13));
}

float f32_from_f16(uint16_t bits) {
    uint32_t sign = (bits & 0x8000U) << 16;
    uint32_t a = bits & 0x7fffU;
    if (a >= 0x7c00U) {
        return std::bit_cast<float>(sign | 0x7f800000U | ((a & 0x3ffU) << 13));
    }
    if (a >= 0x400U) {
        return std::bit_cast<float>(sign | ((a << 13) + 0x38000000U));
    }
    float small = static_cast<float>(a) * 5.9604644775390625e-8F; // 2^-24
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(small));
}

uint8_t f8e4m3_from_f32(float x, bool saturate) {
    auto sign = static_cast<uint8_t>(std::signbit(x) ? 0x80U : 0U);
    if (std::isnan(x)) {
        return static_cast<uint8_t>(sign | 0x7fU);
    }
    double a = std::fabs(static_cast<double>(x));
    uint32_t code = std::isinf(a) ? 0x7fU : round_to(a, e4m3);
    if (code >= 0x7fU) {
        code = saturate ? 0x7eU : 0x7fU;
    }
    return static_cast<uint8_t>(sign | code);
}

float f32_from_f8e4m3(uint8_t bits) {
    uint32_t code = bits & 0x7fU;
    auto v = code == 0x7fU ? NAN : static_cast<float>(value_of(code, e4m3));
    return (bits & 0x80U) != 0 ? -v : v;
}

uint8_t f8e5m2_from_f32(float x, bool saturate) {
    auto sign = static_cast<uint8_t>(std::signbit(x) ? 0x80U : 0U);
    if (std::isnan(x)) {
        return static_cast<uint8_t>(sign | 0x7eU);
    }
    double a = std::fabs(static_cast<double>(x));
    uint32_t code = std::isinf(a) ? 0x7cU : round_to(a, e5m2);
    if (code >= 0x7cU) {
        code = saturate ? 0x7bU : 0x7cU;
    }
    return static_cast<uint8_t>(sign | code);
}

float f32_from_f8e5m2(uint8_t bits) {
    return f32_from_f16(static_cast<uint16_t>(bits << 8));
}

uint8_t f4e2m1_from_f32(float x) {
    auto sign = static_cast<uint8_t>(std::signbit(x) ? 8U : 0U);
    double a = std::isnan(x) ? 0.0 : std::fabs(static_cast<double>(x));
    uint32_t code = a >= 6.0 ? 7U : round_to(a, e2m1);
    return static_cast<uint8_t>(sign | (code > 7U ? 7U : code));
}

float f32_from_f4e2m1(uint8_t nibble) {
    auto v = static_cast<float>(value_of(nibble & 7U, e2m1));
    return (nibble & 8U) != 0 ? -v : v;
}

} // namespace ingot
