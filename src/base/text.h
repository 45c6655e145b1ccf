// SPDX-License-Identifier: Apache-2.0
// str(...): joins values into a string. Cheap to include; no locale; shortest round-trip floats.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ingot {

void append(std::string& out, std::string_view s);
void append(std::string& out, bool v);
void append(std::string& out, char v);
void append(std::string& out, float v);
void append(std::string& out, double v);
void append_signed(std::string& out, int64_t v);
void append_unsigned(std::string& out, uint64_t v);
inline void append(std::string& out, const char* s) {
    append(out, std::string_view(s));
}
inline void append(std::string& out, const std::string& s) {
    append(out, std::string_view(s));
}
template <std::signed_integral T>
void append(std::string& out, T v) {
    append_signed(out, static_cast<int64_t>(v));
}
template <std::unsigned_integral T>
void append(std::string& out, T v) {
    append_unsigned(out, static_cast<uint64_t>(v));
}

/// Anything with a `name(x)` (enums) or `to_text(x)` (Dim, Type, ...) prints through it.
template <class T>
requires(!std::is_arithmetic_v<T>) && requires(const T& v) {
    { name(v) } -> std::convertible_to<std::string_view>;
}
void append(std::string& out, const T& v) {
    append(out, std::string_view(name(v)));
}
template <class T>
requires(!std::is_arithmetic_v<T>) && requires(const T& v) {
    { to_text(v) } -> std::same_as<std::string>;
}
void append(std::string& out, const T& v) {
    append(out, std::string_view(to_text(v)));
}
/// Lists print as "[a,b,c]".
template <class T>
void append(std::string& out, std::span<const T> list) {
    out += '[';
    for (size_t i = 0; i < list.size(); ++i) {
        if (i != 0) {
            out += ',';
        }
        append(out, list[i]);
    }
    out += ']';
}
template <class T>
void append(std::string& out, const std::vector<T>& list) {
    append(out, std::span<const T>(list));
}

template <class... Args>
std::string str(const Args&... args) {
    std::string out;
    (append(out, args), ...);
    return out;
}

/// Joins with a separator: join({"a","b"}, ", ").
std::string join(std::span<const std::string> parts, std::string_view separator);
/// The candidate nearest to `word` by edit distance (at most a third of its length away), or "".
std::string nearest(std::string_view word, std::span<const std::string> candidates);
/// `text` in double quotes with \", \\, \n and \xNN escapes, and back. unquote throws on bad input.
std::string quote(std::string_view text);
std::string unquote(std::string_view quoted);

} // namespace ingot
