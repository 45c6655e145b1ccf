// SPDX-License-Identifier: Apache-2.0
// One form for expressions that compute the same: equal kernels for equal work.
#pragma once

#include "ir/expr.h"

namespace ingot::plan {

struct CanonicalExpr {
    Expr body;
    std::vector<int> inputs; // the old index of each new input
};
/// Orders the operands of commutative instructions (those that depend on input `leading` first,
/// then computed ones, then the rest as they stood), the instructions by first use, and the inputs
/// likewise; `leading` becomes input 0 (-1: none does). Inputs without a use come last.
CanonicalExpr canonical(const Expr& e, int input_count, int leading);

} // namespace ingot::plan
