// SPDX-License-Identifier: Apache-2.0
#include "onnx/wire.h"

#include "base/error.h"
#include "base/hex.h"

#include <protozero/varint.hpp>

#include <limits>

namespace ingot::onnx {
namespace {

template <class... Args>
[[noreturn]] void fail_at(const std::byte* where, const std::byte* origin, const Args&... args) {
    fail(ErrorCode::InvalidModel, "byte ", static_cast<int64_t>(where - origin), ": ", args...);
}

} // namespace

bool Wire::next() {
    if (at_ == end_) {
        return false;
    }
    start_ = at_;
    name_ = nullptr;
    field_ = 0;
    const uint64_t key = varint();
    wire_type_ = static_cast<uint32_t>(key & 7U);
    if (key > std::numeric_limits<uint32_t>::max() || key >> 3U == 0) {
        fail_at(start_, origin_, "invalid field number ", key >> 3U);
    }
    field_ = static_cast<uint32_t>(key >> 3U);
    if (wire_type_ != wire_varint && wire_type_ != wire_fixed64 && wire_type_ != wire_bytes &&
        wire_type_ != wire_fixed32) {
        fail_at(start_, origin_, "invalid wire type ", wire_type_, " of field ", field_);
    }
    return true;
}

Wire& Wire::once(const char* name) {
    name_ = name;
    const uint64_t bit = 1ULL << (field_ & 63U);
    if ((seen_ & bit) != 0) {
        bad("occurs twice");
    }
    seen_ |= bit;
    return *this;
}

std::span<const std::byte> Wire::bytes() {
    expect(wire_bytes);
    return take(varint());
}

std::string Wire::text() {
    const std::span<const std::byte> b = bytes();
    return {reinterpret_cast<const char*>(b.data()), b.size()};
}

int64_t Wire::integer() {
    expect(wire_varint);
    return static_cast<int64_t>(varint());
}

int Wire::int32() {
    const int64_t v = integer();
    if (v < std::numeric_limits<int32_t>::min() || v > std::numeric_limits<int32_t>::max()) {
        bad(str("is ", v, ", outside 32 bits"));
    }
    return static_cast<int>(v);
}

float Wire::f32() {
    expect(wire_fixed32);
    float v = 0;
    std::memcpy(&v, take(sizeof(v)).data(), sizeof(v));
    return v;
}

void Wire::skip() {
    switch (wire_type_) {
    case wire_varint:
        varint();
        break;
    case wire_fixed64:
        take(8);
        break;
    case wire_bytes:
        take(varint());
        break;
    default:
        take(4);
        break;
    }
}

int64_t Wire::count_varints() {
    if (wire_type_ == wire_varint) {
        varint();
        return 1;
    }
    int64_t count = 0;
    for (const std::byte b : bytes()) {
        count += (b & std::byte{0x80}) == std::byte{0} ? 1 : 0;
    }
    return count;
}

int64_t Wire::count_fixed(size_t width) {
    return static_cast<int64_t>(fixed_values(width).size() / width);
}

void Wire::bad(std::string_view what) const {
    fail_at(start_, origin_, label(), " ", what);
}

uint64_t Wire::varint() {
    const char* p = reinterpret_cast<const char*>(at_);
    try {
        const uint64_t v = protozero::decode_varint(&p, reinterpret_cast<const char*>(end_));
        at_ = reinterpret_cast<const std::byte*>(p);
        return v;
    } catch (const protozero::varint_too_long_exception&) {
        fail_at(at_, origin_, "a number in ", label(), " is longer than 10 bytes");
    } catch (const protozero::exception&) {
        fail_at(at_, origin_, "the data ends inside a number in ", label());
    }
}

std::span<const std::byte> Wire::take(uint64_t length) {
    const auto left = static_cast<uint64_t>(end_ - at_);
    if (length > left) {
        bad(str("declares ", length, " bytes, but ", left, " are left"));
    }
    const std::span<const std::byte> part(at_, static_cast<size_t>(length));
    at_ += length;
    return part;
}

std::span<const std::byte> Wire::fixed_values(size_t width) {
    if (wire_type_ == (width == 4 ? wire_fixed32 : wire_fixed64)) {
        return take(width);
    }
    const std::span<const std::byte> data = bytes();
    if (data.size() % width != 0) {
        bad(str("has ", data.size(), " bytes, not a multiple of ", width));
    }
    return data;
}

void Wire::expect(uint32_t wire_type) const {
    if (wire_type_ != wire_type) {
        bad(str("has wire type ", wire_type_, ", expected ", wire_type));
    }
}

std::string Wire::label() const {
    if (name_ != nullptr) {
        return str("field '", name_, "'");
    }
    return field_ == 0 ? "a field key" : str("field ", field_);
}

std::string peek_text(std::span<const std::byte> message, uint32_t field) {
    try {
        Wire w(message, message.data());
        while (w.next()) {
            if (w.field() == field) {
                return w.text();
            }
            w.skip();
        }
    } catch (const Error&) {
        return {}; // damaged before the name: the caller gives its position instead
    }
    return {};
}

std::string escaped(std::string_view name) {
    constexpr size_t limit = 100;
    std::string out;
    for (size_t i = 0; i < name.size(); ++i) {
        const auto c = static_cast<unsigned char>(name[i]);
        const bool continues = (c & 0xC0U) == 0x80U; // do not cut inside a UTF-8 character
        if (i >= limit && (!continues || i >= limit + 4)) {
            return str(out, "... (", name.size(), " bytes)");
        }
        if (c < 0x20 || c == 0x7f) {
            out += "\\x";
            append_hex(out, c);
        } else {
            out += name[i];
        }
    }
    return out;
}

std::string shown(std::string_view name) {
    return str("'", escaped(name), "'");
}

} // namespace ingot::onnx
