// SPDX-License-Identifier: Apache-2.0
// How scalar functions, and bodies made of them, answer to a small change of their operands.
#include "ir/expr.h"
#include "ir/op_facts.h"

#include <algorithm>

namespace ingot {

namespace {

bool is_smooth(const Expr& e, const ExprInstr& i) {
    switch (i.op) {
    case ExprOp::In:
    case ExprOp::Const:
    case ExprOp::Select:
        return true;
    case ExprOp::Cast:
        return !is_float(e.code[static_cast<size_t>(i.args[0])].type) ||
               (is_float(i.to) && bit_width(i.to) >= 16);
#define INGOT_EXPR(Name, text, arity, kind, rounding, identity, cpp, device)                       \
    case ExprOp::Name:                                                                             \
        return Rounding::rounding == Rounding::Smooth;
#include "ir/expr.def"
#undef INGOT_EXPR
    }
    return false;
}

} // namespace

bool is_smooth(const Expr& e) {
    return std::all_of(e.code.begin(), e.code.end(),
                       [&e](const ExprInstr& i) { return is_smooth(e, i); });
}

} // namespace ingot
