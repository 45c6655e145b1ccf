// SPDX-License-Identifier: Apache-2.0
// A cursor over one protobuf message, based on protozero's varint decoder. Lengths are 64 bits wide
// (pbf_reader truncates them to 32), wire types are checked instead of asserted, and every error
// has the byte offset in the file. Allocates only the requested strings.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace ingot::onnx {

class Wire {
public:
    /// `origin`, the first byte of the file, is the zero of offsets in messages.
    Wire(std::span<const std::byte> message, const std::byte* origin)
        : at_(message.data()), end_(message.data() + message.size()), origin_(origin) {}

    /// Moves to the next field; false at the end. The previous value must have been read or
    /// skipped.
    bool next();
    uint32_t field() const { return field_; }

    /// Names the current field for messages: call one of these before each getter. `once` also
    /// refuses a second occurrence (field numbers below 64).
    Wire& once(const char* name);
    Wire& repeated(const char* name) {
        name_ = name;
        return *this;
    }

    // Consumes and returns the value of the current field. An unexpected wire type is an error.
    std::span<const std::byte> bytes();
    std::string text();
    int64_t integer();
    int int32();
    float f32();
    void skip();

    /// A repeated field of varints, packed or not: f(uint64_t) for each.
    template <class F>
    void each_varint(const F& f);
    /// A repeated field of float or double, packed or not: f(T) for each.
    template <class T, class F>
    void each_fixed(const F& f);
    /// The number of elements that each_varint or each_fixed would visit; consumes the field.
    int64_t count_varints();
    int64_t count_fixed(size_t width);

    /// Fails with the offset of the current field, its label and `what`.
    [[noreturn]] void bad(std::string_view what) const;

private:
    uint64_t varint();
    std::span<const std::byte> take(uint64_t length);
    std::span<const std::byte> fixed_values(size_t width);
    void expect(uint32_t wire_type) const;
    std::string label() const;

    const std::byte* at_;
    const std::byte* end_;
    const std::byte* origin_;
    const std::byte* start_ = nullptr; // of the current field, its key included
    const char* name_ = nullptr;
    uint32_t field_ = 0;
    uint32_t wire_type_ = 0;
    uint64_t seen_ = 0;
};

/// The first occurrence of a text field in a possibly damaged message; "" when absent. For names in
/// errors.
std::string peek_text(std::span<const std::byte> message, uint32_t field);
/// A name from a file, safe for messages: control characters escaped, shortened.
std::string escaped(std::string_view name);
/// The same in single quotes.
std::string shown(std::string_view name);

inline constexpr uint32_t wire_varint = 0;
inline constexpr uint32_t wire_fixed64 = 1;
inline constexpr uint32_t wire_bytes = 2;
inline constexpr uint32_t wire_fixed32 = 5;

template <class F>
void Wire::each_varint(const F& f) {
    if (wire_type_ == wire_varint) {
        f(varint());
        return;
    }
    const std::span<const std::byte> packed = bytes();
    Wire part(packed, origin_);
    part.name_ = name_;
    part.field_ = field_;
    part.start_ = start_;
    while (part.at_ != part.end_) {
        f(part.varint());
    }
}

template <class T, class F>
void Wire::each_fixed(const F& f) {
    const std::span<const std::byte> data = fixed_values(sizeof(T));
    for (size_t i = 0; i < data.size(); i += sizeof(T)) {
        T v;
        std::memcpy(&v, data.data() + i, sizeof(T));
        f(v);
    }
}

} // namespace ingot::onnx
