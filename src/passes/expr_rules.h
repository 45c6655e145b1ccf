// SPDX-License-Identifier: Apache-2.0
// Simplification of scalar expressions: identities, constant folding, casts without effect.
#pragma once

#include "ir/dim.h"
#include "ir/expr.h"

#include <span>

namespace ingot::passes {

/// Whether every value of `narrow` is exactly a value of `wide`.
bool holds_all(DType wide, DType narrow);
/// Facts about an input of an expression: its stored dtype, and bounds of integers.
struct InputFacts {
    DType dtype = DType::F32;
    Interval range{INT64_MIN, INT64_MAX};
};
/// An equal expression (signs of zeros apart), no longer than `e`; `result` is the dtype of the map
/// it belongs to.
Expr simplified(const Expr& e, std::span<const InputFacts> inputs, DType result);

} // namespace ingot::passes
