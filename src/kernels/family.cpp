// SPDX-License-Identifier: Apache-2.0
#include "kernels/family.h"

#include "base/error.h"
#include "base/text.h"

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

std::string parameters_text(std::span<const KernelParameter> parameters) {
    std::string out;
    for (const KernelParameter& p : parameters) {
        append(out, str(out.empty() ? "" : ", ", p.type, ' ', p.name));
    }
    return out;
}

std::string statements_text(const KernelText& k, std::string_view number) {
    std::string out = k.statements;
    for (size_t at = out.find(block_number); at != std::string::npos;
         at = out.find(block_number, at + number.size())) {
        out.replace(at, block_number.size(), number);
    }
    return out;
}

std::string generated_text(const Program& p) {
    std::string out = p.defines;
    if (!p.kernel) {
        return out + p.body;
    }
    const KernelText& k = *p.kernel;
    for (const auto& [name, value] : k.constants) {
        append(out, str("#define ", name, ' ', value, '\n'));
    }
    return str(out, p.body, "KERNEL void __launch_bounds__(", k.threads, ") ", k.name, "(",
               parameters_text(k.parameters), ") {\n", statements_text(k, "blockIdx.x"), "}\n");
}

std::string short_text(const Program& p) {
    std::string out(p.family);
    for (std::string_view name : p.uses) {
        append(out, str('\n', name));
    }
    append(out, str('\n', generated_text(p)));
    return out;
}

std::string full_text(const Program& p) {
    std::string generated = generated_text(p);
    std::string_view head = device_file("ptx");
    std::string_view last = p.family.empty() ? std::string_view() : device_file(p.family);
    size_t bytes = head.size() + generated.size() + last.size();
    for (std::string_view name : p.uses) {
        bytes += device_file(name).size();
    }
    std::string out; // some 100 KB, for each launch of a plan
    out.reserve(bytes);
    out += head;
    for (std::string_view name : p.uses) {
        out += device_file(name);
    }
    out += generated;
    out += last;
    return out;
}

const Family& family_of(std::string_view name) {
    for (const FamilyTable* table : all_families()) {
        for (const Family& f : *table) {
            if (f.name == name) {
                return f;
            }
        }
    }
    fail(ErrorCode::Internal, "no family of kernels runs ", name);
}

} // namespace ingot::kernels
