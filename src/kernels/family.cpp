// SPDX-License-Identifier: Apache-2.0
#include "kernels/family.h"

#include "base/error.h"

#include <cstring>
#include <limits>

namespace ingot::kernels {

Args& Args::raw(const void* data, size_t size, size_t align) {
    size_t at = (bytes_.size() + align - 1) / align * align;
    bytes_.resize(at + size);
    std::memcpy(bytes_.data() + at, data, size);
    offsets_.push_back(static_cast<uint32_t>(at));
    return *this;
}

Args& Args::null() {
    uint64_t nothing = 0;
    return raw(&nothing, sizeof nothing, alignof(uint64_t));
}

Args& Args::pointer(const Operand& o) {
    if (o.buffer == in_scratch) {
        return scratch(o.view.offset * bit_width(o.dtype) / 8);
    }
    null();
    fixups_.push_back(
        {Patch::Buffer, offsets_.back(), o.buffer, o.view.offset * bit_width(o.dtype) / 8, 0});
    return *this;
}

Args& Args::scratch(int64_t offset) {
    null();
    fixups_.push_back({Patch::Scratch, offsets_.back(), -1, offset, 0});
    return *this;
}

Args& Args::error_word() {
    null();
    fixups_.push_back({Patch::ErrorWord, offsets_.back(), -1, 0, 0});
    return *this;
}

Args& Args::run_state() {
    null();
    fixups_.push_back({Patch::RunState, offsets_.back(), -1, 0, 0});
    return *this;
}

Args& Args::map(const Operand& o, const TensorMap& m) {
    struct alignas(64) Encoded {
        std::byte bytes[128];
    };
    value(Encoded{});
    fixups_.push_back({Patch::Map, offsets_.back(), o.buffer,
                       o.view.offset * bit_width(o.dtype) / 8,
                       static_cast<uint32_t>(maps_.size())});
    maps_.push_back(m);
    return *this;
}

Args& Args::i32(int64_t v) {
    require(v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max(),
            ErrorCode::Unsupported, "a kernel argument is ", v, ", which 32 bits do not hold");
    return value(static_cast<int32_t>(v));
}

Args& Args::i64(int64_t v) {
    return value(v);
}

Args& Args::f32(double v) {
    return value(static_cast<float>(v));
}

Args& Args::f64(double v) {
    return value(v);
}

std::string full_text(const Program& p) {
    std::string out(device_file("ptx"));
    for (std::string_view name : p.uses) {
        out += device_file(name);
    }
    out += p.defines;
    out += p.body;
    if (!p.family.empty()) {
        out += device_file(p.family);
    }
    return out;
}

} // namespace ingot::kernels
