// SPDX-License-Identifier: Apache-2.0
// The signature of a generated kernel: each parameter is declared where its argument is given.
#pragma once

#include "kernels/family.h"

namespace ingot::kernels {

class Signature {
public:
    /// `wide`: sizes, offsets and "I" have 64 bits, else 32.
    explicit Signature(bool wide) : wide_(wide) {}

    /// `type` with its asterisk: "const float*".
    Signature& pointer(std::string type, std::string name, const Operand& o);
    Signature& scratch(std::string type, std::string name, int64_t offset);
    Signature& error_word(std::string name);
    Signature& run_state(std::string name);
    Signature& u32(std::string name, int64_t v);   // below 2^31
    Signature& word(std::string name, uint32_t v); // any u32
    Signature& i32(std::string name, int64_t v);
    Signature& u64(std::string name, int64_t v);
    Signature& i64(std::string name, int64_t v);
    Signature& f64(std::string name, double v);
    Signature& size(std::string name, int64_t v);   // u64 or u32
    Signature& offset(std::string name, int64_t v); // i64 or i32
    Signature& index(std::string name, int64_t v);  // declared as I, a typedef of the text

    bool wide() const { return wide_; }
    std::string_view size_type() const { return wide_ ? "u64" : "u32"; }
    std::string_view offset_type() const { return wide_ ? "i64" : "i32"; }

    /// The kernel's launch, with these statements as its text, and its arguments.
    Launch launch(std::string name, std::string statements) &&;
    /// Marks that an index is divided by sizes that are parameters.
    void set_divides() { kernel_.divides = true; }

private:
    using Kind = KernelParameter::Kind;
    Signature& declare(Kind kind, std::string type, std::string name);
    Signature& number(Kind kind, std::string type, std::string name, int64_t v);

    bool wide_;
    Args args_;
    KernelText kernel_;
};

} // namespace ingot::kernels
