// SPDX-License-Identifier: Apache-2.0
// Bytes as hexadecimal digits: two a byte, the high half first, in lower case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ingot {

inline void append_hex(std::string& out, uint8_t byte) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
}

inline std::string to_hex(std::span<const std::byte> bytes) {
    std::string out;
    for (std::byte b : bytes) {
        append_hex(out, std::to_integer<uint8_t>(b));
    }
    return out;
}

/// The value of a digit that append_hex() writes; -1 for any other character.
inline int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

} // namespace ingot
