// SPDX-License-Identifier: Apache-2.0
// Element types, and scalar structs for those that C++ lacks.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ingot {

/// Element type of a tensor. The numbers are part of the engine format: append only.
enum class DType : uint8_t {
    Bool = 0,
    I4 = 1,
    U4 = 2,
    I8 = 3,
    U8 = 4,
    I16 = 5,
    U16 = 6,
    I32 = 7,
    U32 = 8,
    I64 = 9,
    U64 = 10,
    F4E2M1 = 11,
    F8E4M3 = 12,
    F8E5M2 = 13,
    BF16 = 14,
    F16 = 15,
    F32 = 16,
    F64 = 17,
};
inline constexpr int dtype_count = 18;

/// Short name as the IR text prints it: "f32", "i64", "bool", "f8e4m3", ...
std::string_view name(DType t);
/// Inverse of `name`; nullopt for anything else.
std::optional<DType> parse_dtype(std::string_view text);
/// Width of one element in bits: 4 for the packed types, else a multiple of 8.
int bit_width(DType t);
bool is_float(DType t);
bool is_integer(DType t);      // Bool is neither integer nor float
bool is_signed(DType t);       // floats and signed integers
inline bool is_byte(DType t) { // integers of 8 bits
    return t == DType::I8 || t == DType::U8;
}
inline bool is_half(DType t) {
    return t == DType::F16 || t == DType::BF16;
}
inline bool is_packed(DType t) {
    return bit_width(t) < 8;
}
/// Upper bound on the bytes of a tensor or of an allocation: a 48-bit address space. A few such
/// sizes can be added, or converted to bits, without overflow.
inline constexpr int64_t most_tensor_bytes = int64_t{1} << 48;
/// Upper bound on the elements of a tensor, reached by the 4-bit types.
inline constexpr int64_t most_tensor_elements = 2 * most_tensor_bytes;
[[noreturn]] void fail_byte_size(DType t, int64_t count);
/// Bytes of `count` elements stored densely; packed types round up to a whole byte. Every size of
/// memory that comes from a shape is computed here. Errors: OutOfMemory above most_tensor_bytes,
/// InvalidArgument below 0.
inline int64_t byte_size(DType t, int64_t count) {
    if (count < 0 || count > most_tensor_elements) [[unlikely]] {
        fail_byte_size(t, count);
    }
    int64_t bytes = (count * bit_width(t) + 7) / 8;
    if (bytes > most_tensor_bytes) [[unlikely]] {
        fail_byte_size(t, count);
    }
    return bytes;
}

// Conversions between f32 and the small floats: round to nearest even. f16, bf16 and E5M2 overflow
// to infinity; E4M3 (no infinity) saturates only when asked for, else gives NaN as ONNX's Cast with
// saturate=0 does; E2M1 always saturates.
uint16_t f16_from_f32(float x);
float f32_from_f16(uint16_t bits);
uint8_t f8e4m3_from_f32(float x, bool saturate = true);
float f32_from_f8e4m3(uint8_t bits);
uint8_t f8e5m2_from_f32(float x, bool saturate = true);
float f32_from_f8e5m2(uint8_t bits);
uint8_t f4e2m1_from_f32(float x); // in the low nibble
float f32_from_f4e2m1(uint8_t nibble);
inline uint16_t bf16_from_f32(float x) {
    uint32_t u = std::bit_cast<uint32_t>(x);
    if ((u & 0x7fffffffU) > 0x7f800000U) {
        return static_cast<uint16_t>((u >> 16) | 0x40U);
    }
    return static_cast<uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
}
inline float f32_from_bf16(uint16_t bits) {
    return std::bit_cast<float>(uint32_t{bits} << 16);
}
// f64 is rounded once, not through f32.
uint16_t f16_from_f64(double x);
uint16_t bf16_from_f64(double x);

struct f16 {
    uint16_t bits = 0;
    f16() = default;
    explicit f16(float x) : bits(f16_from_f32(x)) {}
    explicit f16(double x) : bits(f16_from_f64(x)) {}
    explicit operator float() const { return f32_from_f16(bits); }
    explicit operator double() const { return static_cast<double>(f32_from_f16(bits)); }
};

struct bf16 {
    uint16_t bits = 0;
    bf16() = default;
    explicit bf16(float x) : bits(bf16_from_f32(x)) {}
    explicit bf16(double x) : bits(bf16_from_f64(x)) {}
    explicit operator float() const { return f32_from_bf16(bits); }
    explicit operator double() const { return static_cast<double>(f32_from_bf16(bits)); }
};

struct f8e4m3 {
    uint8_t bits = 0;
};

struct f8e5m2 {
    uint8_t bits = 0;
};

} // namespace ingot
