// SPDX-License-Identifier: Apache-2.0
// Every code of every small float, encoded and decoded. The reference is exact arithmetic on the
// fields of the format: a code's value from ldexp, and rounding decided at the midpoints between
// neighbours.
#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>

namespace ingot {
namespace {

struct Format {
    int exponent_bits;
    int mantissa_bits;
    int bias;
    uint32_t largest; // code of the largest finite value
    uint32_t sign_bit;
};

constexpr Format f16_format{5, 10, 15, 0x7bff, 0x8000};
constexpr Format bf16_format{8, 7, 127, 0x7f7f, 0x8000};
constexpr Format e4m3_format{4, 3, 7, 0x7e, 0x80};
constexpr Format e5m2_format{5, 2, 15, 0x7b, 0x80};
constexpr Format e2m1_format{2, 1, 1, 0x7, 0x8};

/// Value of a code without sign, as if the exponent range had no end.
double value(const Format& f, uint32_t code) {
    uint32_t mantissa = code & ((1U << f.mantissa_bits) - 1);
    int exponent = static_cast<int>(code >> f.mantissa_bits);
    if (exponent == 0) {
        return std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
    }
    return std::ldexp(mantissa + (1U << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
}

using Encode = std::function<uint32_t(double)>;
using Decode = std::function<double(uint32_t)>;

void expect_decodes(const Format& f, const Decode& decode) {
    for (uint32_t code = 0; code <= f.largest; ++code) {
        ASSERT_EQ(decode(code), value(f, code)) << "code " << code;
        double negative = decode(code | f.sign_bit);
        ASSERT_EQ(negative, -value(f, code)) << "code " << code;
        ASSERT_TRUE(std::signbit(negative)) << "code " << code;
    }
}

/// Exact values, midpoints between neighbours (to even), and the inputs adjacent to the midpoints
/// in T, the type of the inputs.
template <class T>
void expect_encodes(const Format& f, const Encode& encode) {
    constexpr T far = std::numeric_limits<T>::infinity();
    for (uint32_t code = 0; code < f.largest; ++code) {
        double low = value(f, code);
        double high = value(f, code + 1);
        double middle = (low + high) / 2;
        auto tie = static_cast<T>(middle);
        ASSERT_EQ(static_cast<double>(tie), middle) << "the midpoint must be an input";
        uint32_t even = code % 2 == 0 ? code : code + 1;
        for (uint32_t sign : {0U, f.sign_bit}) {
            double s = sign == 0 ? 1 : -1;
            ASSERT_EQ(encode(s * low), sign | code) << low;
            ASSERT_EQ(encode(s * middle), sign | even) << middle;
            ASSERT_EQ(encode(s * static_cast<double>(std::nextafter(tie, -far))), sign | code);
            ASSERT_EQ(encode(s * static_cast<double>(std::nextafter(tie, far))), sign | (code + 1));
        }
    }
}

/// The smallest value that no longer rounds to the largest finite code: halfway to the next code's
/// value.
double overflow_edge(const Format& f) {
    return (value(f, f.largest) + value(f, f.largest + 1)) / 2;
}

TEST(dtype, f16_decodes_every_code) {
    auto decode = [](uint32_t c) {
        return static_cast<double>(f32_from_f16(static_cast<uint16_t>(c)));
    };
    expect_decodes(f16_format, decode);
    EXPECT_EQ(decode(0x7c00), std::numeric_limits<double>::infinity());
    EXPECT_EQ(decode(0xfc00), -std::numeric_limits<double>::infinity());
    for (uint32_t code = 0x7c01; code <= 0x7fff; ++code) {
        ASSERT_TRUE(std::isnan(decode(code))) << code;
        ASSERT_TRUE(std::isnan(decode(code | 0x8000U))) << code;
    }
}

TEST(dtype, f16_encodes_to_nearest_even) {
    auto from32 = [](double x) -> uint32_t { return f16_from_f32(static_cast<float>(x)); };
    auto from64 = [](double x) -> uint32_t { return f16_from_f64(x); };
    expect_encodes<float>(f16_format, from32);
    expect_encodes<double>(f16_format, from64);
    double edge = overflow_edge(f16_format);
    ASSERT_EQ(edge, 65520.0);
    for (const Encode& encode : {Encode(from32), Encode(from64)}) {
        EXPECT_EQ(encode(65519.99609375), 0x7bffU);
        EXPECT_EQ(encode(edge), 0x7c00U);
        EXPECT_EQ(encode(-edge), 0xfc00U);
        EXPECT_EQ(encode(1e30), 0x7c00U);
        EXPECT_EQ(encode(std::numeric_limits<double>::infinity()), 0x7c00U);
        EXPECT_EQ(encode(-std::numeric_limits<double>::infinity()), 0xfc00U);
        EXPECT_EQ(encode(1e-30), 0U);
        EXPECT_EQ(encode(-1e-30), 0x8000U);
        uint32_t nan = encode(std::numeric_limits<double>::quiet_NaN());
        EXPECT_TRUE(std::isnan(f32_from_f16(static_cast<uint16_t>(nan))));
    }
}

TEST(dtype, bf16_every_code_and_tie) {
    auto decode = [](uint32_t c) {
        return static_cast<double>(f32_from_bf16(static_cast<uint16_t>(c)));
    };
    expect_decodes(bf16_format, decode);
    auto from32 = [](double x) -> uint32_t { return bf16_from_f32(static_cast<float>(x)); };
    auto from64 = [](double x) -> uint32_t { return bf16_from_f64(x); };
    expect_encodes<float>(bf16_format, from32);
    expect_encodes<double>(bf16_format, from64);
    double edge = overflow_edge(bf16_format);
    for (const Encode& encode : {Encode(from32), Encode(from64)}) {
        EXPECT_EQ(encode(std::nextafter(static_cast<float>(edge), 0.0F)), 0x7f7fU);
        EXPECT_EQ(encode(edge), 0x7f80U);
        EXPECT_EQ(encode(-edge), 0xff80U);
        uint32_t nan = encode(std::numeric_limits<double>::quiet_NaN());
        EXPECT_TRUE(std::isnan(f32_from_bf16(static_cast<uint16_t>(nan))));
    }
    EXPECT_EQ(bf16_from_f64(1e300), 0x7f80U);
    // A NaN whose payload lies in the dropped bits alone must not become infinity.
    EXPECT_TRUE(std::isnan(f32_from_bf16(bf16_from_f32(std::bit_cast<float>(0x7f800001U)))));
}

TEST(dtype, f64_is_rounded_once) {
    // Just above a tie of the small format, by less than f32 resolves: through f32 this would first
    // become the tie and then go down to the even neighbour.
    EXPECT_EQ(f16_from_f64(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)), 0x3c01U);
    EXPECT_EQ(f16_from_f32(static_cast<float>(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40))),
              0x3c00U);
    EXPECT_EQ(bf16_from_f64(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)), 0x3f81U);
    EXPECT_EQ(f16(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)).bits, 0x3c01U);
    EXPECT_EQ(bf16(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)).bits, 0x3f81U);
}

TEST(dtype, f8e4m3_every_code_and_tie) {
    auto decode = [](uint32_t c) {
        return static_cast<double>(f32_from_f8e4m3(static_cast<uint8_t>(c)));
    };
    expect_decodes(e4m3_format, decode);
    EXPECT_TRUE(std::isnan(decode(0x7f)));
    EXPECT_TRUE(std::isnan(decode(0xff)));
    for (bool saturate : {false, true}) {
        auto encode = [&](double x) -> uint32_t {
            return f8e4m3_from_f32(static_cast<float>(x), saturate);
        };
        expect_encodes<float>(e4m3_format, encode);
        uint32_t over = saturate ? 0x7e : 0x7f;
        EXPECT_EQ(encode(448.0), 0x7eU);
        EXPECT_EQ(encode(464.0), 0x7eU); // the tie with the code of NaN: 448 is even
        EXPECT_EQ(encode(464.5), over);
        EXPECT_EQ(encode(-464.5), 0x80U | over);
        EXPECT_EQ(encode(std::numeric_limits<double>::infinity()), over);
        uint32_t nan = encode(std::numeric_limits<double>::quiet_NaN());
        EXPECT_EQ(nan & 0x7fU, 0x7fU);
    }
}

TEST(dtype, f8e5m2_every_code_and_tie) {
    auto decode = [](uint32_t c) {
        return static_cast<double>(f32_from_f8e5m2(static_cast<uint8_t>(c)));
    };
    expect_decodes(e5m2_format, decode);
    EXPECT_EQ(decode(0x7c), std::numeric_limits<double>::infinity());
    EXPECT_EQ(decode(0xfc), -std::numeric_limits<double>::infinity());
    for (uint32_t code : {0x7dU, 0x7eU, 0x7fU, 0xfdU, 0xfeU, 0xffU}) {
        EXPECT_TRUE(std::isnan(decode(code))) << code;
    }
    for (bool saturate : {false, true}) {
        auto encode = [&](double x) -> uint32_t {
            return f8e5m2_from_f32(static_cast<float>(x), saturate);
        };
        expect_encodes<float>(e5m2_format, encode);
        uint32_t over = saturate ? 0x7b : 0x7c;
        EXPECT_EQ(encode(57344.0), 0x7bU);
        EXPECT_EQ(encode(61439.0), 0x7bU);
        EXPECT_EQ(encode(61440.0), over); // the tie with infinity, which is even
        EXPECT_EQ(encode(-1e9), 0x80U | over);
        EXPECT_EQ(encode(std::numeric_limits<double>::infinity()), over);
        uint32_t nan = encode(std::numeric_limits<double>::quiet_NaN());
        EXPECT_TRUE(std::isnan(decode(nan)));
    }
}

TEST(dtype, f4e2m1_every_code_and_tie) {
    auto decode = [](uint32_t c) {
        return static_cast<double>(f32_from_f4e2m1(static_cast<uint8_t>(c)));
    };
    expect_decodes(e2m1_format, decode);
    EXPECT_EQ(decode(7), 6.0);
    auto encode = [](double x) -> uint32_t { return f4e2m1_from_f32(static_cast<float>(x)); };
    expect_encodes<float>(e2m1_format, encode);
    EXPECT_EQ(encode(7.0), 7U);
    EXPECT_EQ(encode(1e9), 7U);
    EXPECT_EQ(encode(-1e9), 15U);
    EXPECT_EQ(encode(std::numeric_limits<double>::infinity()), 7U);
}

TEST(dtype, names_parse_back) {
    for (int i = 0; i < dtype_count; ++i) {
        auto t = static_cast<DType>(i);
        EXPECT_EQ(parse_dtype(name(t)), t) << name(t);
    }
    EXPECT_EQ(name(DType::F8E4M3), "f8e4m3");
    EXPECT_EQ(parse_dtype("f31"), std::nullopt);
    EXPECT_EQ(parse_dtype(""), std::nullopt);
    EXPECT_EQ(parse_dtype("F32"), std::nullopt);
}

TEST(dtype, kinds_and_widths_follow_the_name) {
    for (int i = 0; i < dtype_count; ++i) {
        auto t = static_cast<DType>(i);
        std::string n(name(t));
        bool fp = n[0] == 'f' || n.starts_with("bf");
        EXPECT_EQ(is_float(t), fp) << n;
        EXPECT_EQ(is_integer(t), n[0] == 'i' || n[0] == 'u') << n;
        EXPECT_EQ(is_signed(t), fp || n[0] == 'i') << n;
        size_t digits = n.find_first_of("0123456789");
        int bits = digits == std::string::npos ? 8 : std::stoi(n.substr(digits));
        EXPECT_EQ(bit_width(t), bits) << n;
        EXPECT_EQ(is_packed(t), bits == 4) << n;
    }
}

TEST(dtype, packed_sizes_round_up) {
    EXPECT_EQ(byte_size(DType::I4, 0), 0);
    EXPECT_EQ(byte_size(DType::I4, 1), 1);
    EXPECT_EQ(byte_size(DType::U4, 2), 1);
    EXPECT_EQ(byte_size(DType::F4E2M1, 7), 4);
    EXPECT_EQ(byte_size(DType::Bool, 3), 3);
    EXPECT_EQ(byte_size(DType::F64, 3), 24);
}

} // namespace
} // namespace ingot
