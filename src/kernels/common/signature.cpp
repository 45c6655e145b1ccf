// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/signature.h"

namespace ingot::kernels {

Signature& Signature::declare(Kind kind, std::string type, std::string name) {
    kernel_.parameters.push_back({kind, std::move(type), std::move(name)});
    return *this;
}

Signature& Signature::number(Kind kind, std::string type, std::string name, int64_t v) {
    bool long_word = kind == Kind::I64 || kind == Kind::U64;
    long_word ? args_.i64(v) : args_.i32(v);
    return declare(kind, std::move(type), std::move(name));
}

Signature& Signature::pointer(std::string type, std::string name, const Operand& o) {
    args_.pointer(o);
    return declare(Kind::Pointer, std::move(type), std::move(name));
}

Signature& Signature::scratch(std::string type, std::string name, int64_t offset) {
    args_.scratch(offset);
    return declare(Kind::Pointer, std::move(type), std::move(name));
}

Signature& Signature::error_word(std::string name) {
    args_.error_word();
    return declare(Kind::Pointer, "u32*", std::move(name));
}

Signature& Signature::run_state(std::string name) {
    args_.run_state();
    return declare(Kind::Pointer, "u64*", std::move(name));
}

Signature& Signature::u32(std::string name, int64_t v) {
    return number(Kind::U32, "u32", std::move(name), v);
}

Signature& Signature::word(std::string name, uint32_t v) {
    args_.value(v);
    return declare(Kind::U32, "u32", std::move(name));
}

Signature& Signature::i32(std::string name, int64_t v) {
    return number(Kind::I32, "i32", std::move(name), v);
}

Signature& Signature::u64(std::string name, int64_t v) {
    return number(Kind::U64, "u64", std::move(name), v);
}

Signature& Signature::i64(std::string name, int64_t v) {
    return number(Kind::I64, "i64", std::move(name), v);
}

Signature& Signature::f64(std::string name, double v) {
    args_.f64(v);
    return declare(Kind::Other, "double", std::move(name));
}

Signature& Signature::size(std::string name, int64_t v) {
    return number(wide_ ? Kind::U64 : Kind::U32, std::string(size_type()), std::move(name), v);
}

Signature& Signature::offset(std::string name, int64_t v) {
    return wide_ ? i64(std::move(name), v) : i32(std::move(name), v);
}

Signature& Signature::index(std::string name, int64_t v) {
    return number(wide_ ? Kind::I64 : Kind::I32, "I", std::move(name), v);
}

Launch Signature::launch(std::string name, std::string statements) && {
    Launch l;
    kernel_.name = name;
    kernel_.statements = std::move(statements);
    l.entry = std::move(name);
    l.block = kernel_.threads;
    l.args = std::move(args_);
    l.program.uses = {"types", "math", "strided"};
    l.program.kernel = std::move(kernel_);
    return l;
}

} // namespace ingot::kernels
