// SPDX-License-Identifier: Apache-2.0
// ExprPart: the instructions of an expression that lead to one of them, as an expression.
#pragma once

#include "ir/expr.h"

#include <map>
#include <vector>

namespace ingot::cpu {

class ExprPart {
public:
    /// Instruction `known` (if any) is input 0 of the part, with elements of type `stored`. The
    /// expression outlives the part.
    explicit ExprPart(const Expr& e, int known = -1, DType stored = DType::F32);

    /// Appends instruction i and all that it reads; returns its index in the body.
    int take(int i);

    Expr body;
    std::vector<int> inputs; // of the whole expression; -1 for `known`

private:
    const Expr& e_;
    std::map<int, int> done_;
};

} // namespace ingot::cpu
