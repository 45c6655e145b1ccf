// SPDX-License-Identifier: Apache-2.0
// Simplification of scalar expressions: identities, constant folding, casts without effect.
#pragma once

#include "ir/dim.h"
#include "ir/expr.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace ingot::passes {

/// Whether every value of `narrow` is exactly a value of `wide`.
bool holds_all(DType wide, DType narrow);
/// Facts about an input of an expression: its stored dtype, and bounds of integers.
struct InputFacts {
    DType dtype = DType::F32;
    Interval range{INT64_MIN, INT64_MAX};
    bool operator==(const InputFacts&) const = default;
};
/// An equal expression (signs of zeros apart), no longer than `e`; `result` is the dtype of the map
/// it belongs to.
Expr simplified(const Expr& e, std::span<const InputFacts> inputs, DType result);

/// Remembers what simplified() gave: a model has few distinct expressions.
class SimplifiedBodies {
public:
    /// Valid until the next call.
    const Expr& of(const Expr& e, std::span<const InputFacts> inputs, DType result);

private:
    struct Entry {
        Expr from;
        std::vector<InputFacts> inputs;
        DType result = DType::F32;
        Expr to;
    };
    std::unordered_map<uint64_t, Entry> entries_; // by hash; of two with one hash, the later
};

} // namespace ingot::passes
