// SPDX-License-Identifier: Apache-2.0
// A canonical form of expressions: equal kernels for equal work.
#pragma once

#include "ir/expr.h"

namespace ingot::plan {

struct CanonicalExpr {
    Expr body;
    std::vector<int> inputs; // the old index of each new input
};
/// Orders the operands of commutative instructions (those that depend on input `leading` first,
/// then computed ones, then the rest in their old order), and instructions and inputs by first use;
/// `leading` becomes input 0 (-1: none). Unused inputs come last.
CanonicalExpr canonical(const Expr& e, int input_count, int leading);

} // namespace ingot::plan
