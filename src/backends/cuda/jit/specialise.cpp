// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/jit/specialise.h"

#include "base/text.h"

#include <cstdio>
#include <cstring>

namespace ingot::cuda {

namespace {

using kernels::KernelParameter;
using kernels::KernelText;
using kernels::Launch;
using Kind = KernelParameter::Kind;

/// The device type of an integer; "" for other parameters.
std::string_view integer_type(Kind kind) {
    switch (kind) {
    case Kind::I32:
        return "i32";
    case Kind::U32:
        return "u32";
    case Kind::I64:
        return "i64";
    case Kind::U64:
        return "u64";
    case Kind::Pointer:
    case Kind::Other:
        break;
    }
    return {};
}

std::string literal(Kind kind, const std::byte* bytes) {
    uint64_t v = 0;
    bool wide = kind == Kind::I64 || kind == Kind::U64;
    std::memcpy(&v, bytes, wide ? 8 : 4);
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
    return str('(', integer_type(kind), ')', static_cast<const char*>(text), wide ? "ull" : "u");
}

} // namespace

std::optional<std::string> specialised_text(const Launch& l) {
    if (!l.program.kernel || !l.program.kernel->divides) {
        return std::nullopt;
    }
    kernels::Program special = l.program;
    KernelText& k = *special.kernel;
    std::string declare;
    for (size_t i = 0; i < k.parameters.size(); ++i) {
        KernelParameter& p = k.parameters[i];
        std::string_view type = integer_type(p.kind);
        if (!type.empty()) {
            append(declare,
                   str("const ", type, ' ', p.name, " = ",
                       literal(p.kind, l.args.bytes().data() + l.args.offsets()[i]), ";\n"));
            p.type = type;
            p.name += "_argument";
        }
    }
    k.statements = str(declare, '\n', k.statements);
    return kernels::full_text(special);
}

} // namespace ingot::cuda
