// SPDX-License-Identifier: Apache-2.0
// Numbers: constants of one element, which scales and zero points of a quantisation are.
#pragma once

#include "ir/graph.h"

namespace ingot::cpu {

/// The constant, if it has one element; else null.
inline const Tensor* number(const Graph& g, Value v) {
    const Tensor* t = g.constant(v);
    return t != nullptr && t->count() == 1 ? t : nullptr;
}

/// Appends the number to an expression; returns its instruction.
inline int add_number(Expr& e, const Tensor& t) {
    return is_float(t.dtype()) ? e.constant(t.dtype(), t.get_f64(0))
                               : e.constant_i64(t.dtype(), t.get_i64(0));
}

} // namespace ingot::cpu
