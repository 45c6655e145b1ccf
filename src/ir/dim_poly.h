// SPDX-License-Identifier: Apache-2.0
// The representation of a symbolic Dim, and the integer arithmetic of sizes: for src/ir/dim*.cpp
// only.
#pragma once

#include "ir/dim.h"

namespace ingot {

enum class AtomKind { Symbol, FloorDiv, Min, Max };

// An atom is a symbol or a function of two expressions; `key` is its text and decides equality.
struct Atom {
    AtomKind kind = AtomKind::Symbol;
    std::string key;
    Dim a;
    Dim b;
};
using AtomPtr = std::shared_ptr<const Atom>;

struct Term {
    int64_t coefficient = 1;
    std::vector<AtomPtr> factors; // sorted by key
};

struct Dim::Poly {
    int64_t constant = 0;
    std::vector<Term> terms; // sorted by factors, no zero coefficients
    std::string key;
    static const Poly* of(const Dim& d) { return d.poly_.get(); }
};

// Errors: Unsupported on overflow; InvalidArgument for a division by zero.
int64_t mul_or_fail(int64_t a, int64_t b);
int64_t add_or_fail(int64_t a, int64_t b);
int64_t floor_div_int(int64_t a, int64_t b);

} // namespace ingot
