// SPDX-License-Identifier: Apache-2.0
// Proto: writes one protobuf message, field by field.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ingot::ort {

class Proto {
public:
    Proto& integer(uint32_t field, int64_t v) {
        key(field, 0);
        varint(static_cast<uint64_t>(v));
        return *this;
    }
    Proto& real(uint32_t field, float v) {
        key(field, 5);
        uint32_t bits = 0;
        std::memcpy(&bits, &v, sizeof(bits));
        for (uint32_t shift = 0; shift < 32; shift += 8) {
            bytes_ += static_cast<char>(bits >> shift);
        }
        return *this;
    }
    Proto& text(uint32_t field, std::string_view v) {
        key(field, 2);
        varint(v.size());
        bytes_ += v;
        return *this;
    }
    Proto& message(uint32_t field, const Proto& v) { return text(field, v.bytes_); }
    const std::string& bytes() const { return bytes_; }

private:
    void key(uint32_t field, uint32_t wire) { varint(field << 3U | wire); }
    void varint(uint64_t v) {
        for (; v >= 128; v >>= 7U) {
            bytes_ += static_cast<char>(v | 128U);
        }
        bytes_ += static_cast<char>(v);
    }
    std::string bytes_;
};

} // namespace ingot::ort
