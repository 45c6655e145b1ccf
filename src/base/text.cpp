// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include "base/error.h"
#include "base/hex.h"
#include "base/printable.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace ingot {

namespace {

template <class T>
void append_number(std::string& out, T v) {
    std::array<char, 40> buffer{};
    auto r = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v);
    out.append(buffer.data(), r.ptr);
}

} // namespace

void append(std::string& out, std::string_view s) {
    out += s;
}

void append(std::string& out, bool v) {
    out += v ? "true" : "false";
}

void append(std::string& out, char v) {
    out += v;
}

void append(std::string& out, float v) {
    append_number(out, v);
}

void append(std::string& out, double v) {
    append_number(out, v);
}

void append_signed(std::string& out, int64_t v) {
    append_number(out, v);
}

void append_unsigned(std::string& out, uint64_t v) {
    append_number(out, v);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
    std::string out;
    for (size_t i = 0; i < parts.size(); ++i) {
        out += i == 0 ? std::string_view() : separator;
        out += parts[i];
    }
    return out;
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
    std::string best;
    size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
    for (const std::string& c : candidates) {
        std::vector<size_t> row(c.size() + 1);
        for (size_t j = 0; j <= c.size(); ++j) {
            row[j] = j;
        }
        for (size_t i = 1; i <= word.size(); ++i) {
            size_t diagonal = row[0];
            row[0] = i;
            for (size_t j = 1; j <= c.size(); ++j) {
                size_t change = diagonal + (word[i - 1] == c[j - 1] ? 0 : 1);
                diagonal = row[j];
                row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
            }
        }
        if (row[c.size()] < best_distance) {
            best_distance = row[c.size()];
            best = c;
        }
    }
    return best;
}

std::string printable(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        auto u = static_cast<unsigned char>(text[i]);
        // U+0080 to U+009F in UTF-8: 0xc2, then the number.
        bool wide = u == 0xc2 && i + 1 < text.size() && (text[i + 1] & 0xe0) == 0x80;
        if ((u >= 0x20 && u != 0x7f && !wide) || u == '\n' || u == '\t') {
            out += text[i];
            continue;
        }
        for (size_t end = i + (wide ? 1 : 0);; ++i) {
            u = static_cast<unsigned char>(text[i]);
            out += "\\x";
            append_hex(out, u);
            if (i == end) {
                break;
            }
        }
    }
    return out;
}

std::string quote(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
        auto u = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (u < 0x20 || u == 0x7f) {
            out += "\\x";
            append_hex(out, u);
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string unquote(std::string_view quoted) {
    require(quoted.size() >= 2 && quoted.front() == '"' && quoted.back() == '"',
            ErrorCode::InvalidArgument, "expected a string in double quotes, got ", quoted);
    std::string_view body = quoted.substr(1, quoted.size() - 2);
    std::string out;
    for (size_t i = 0; i < body.size(); ++i) {
        if (body[i] != '\\') {
            require(body[i] != '"', ErrorCode::InvalidArgument, "unescaped quote in ", quoted);
            out += body[i];
            continue;
        }
        char c = i + 1 < body.size() ? body[++i] : '\0';
        if (c == 'n') {
            out += '\n';
        } else if (c == '"' || c == '\\') {
            out += c;
        } else {
            int high = i + 2 < body.size() ? hex_digit(body[i + 1]) : -1;
            int low = i + 2 < body.size() ? hex_digit(body[i + 2]) : -1;
            require(c == 'x' && high >= 0 && low >= 0, ErrorCode::InvalidArgument,
                    "unknown escape '\\", c, "' in ", quoted);
            out += static_cast<char>(high * 16 + low);
            i += 2;
        }
    }
    return out;
}

} // namespace ingot
