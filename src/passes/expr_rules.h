// SPDX-License-Identifier: Apache-2.0
// Simplification of scalar expressions: identities, constants, casts that change nothing.
#pragma once

#include "ir/expr.h"

#include <span>

namespace ingot::passes {

/// Whether every value of `narrow` is exactly a value of `wide`.
bool holds_all(DType wide, DType narrow);
/// An equal expression (signs of zeros apart), no longer than `e`. `stored` are the dtypes of its
/// inputs, `result` that of the map it belongs to.
Expr simplified(const Expr& e, std::span<const DType> stored, DType result);

} // namespace ingot::passes
