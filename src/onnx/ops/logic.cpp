// SPDX-License-Identifier: Apache-2.0
// Comparisons, logic, bits, tests for NaN and infinity, and Where.
#include "onnx/importer.h"

#include <array>

namespace ingot::onnx {

namespace {

template <ExprOp op>
Values compare(NodeContext& c) {
    return {ops::binary(c.g, op, c.in(0), c.in(1))};
}

template <ExprOp op>
Values swapped(NodeContext& c) {
    return {ops::binary(c.g, op, c.in(1), c.in(0))};
}

template <ExprOp op>
Values logical(NodeContext& c) {
    for (int i = 0; i < c.input_count(); ++i) {
        c.ensure(c.dtype(i) == DType::Bool, "input ", i, " is ", c.type(i), ", expected bool");
    }
    return op == ExprOp::Not ? Values{ops::unary(c.g, op, c.in(0))} : compare<op>(c);
}

template <ExprOp op>
Values bitwise(NodeContext& c) {
    c.ensure(is_integer(c.dtype(0)), "input 0 is ", c.type(0), ", expected integers");
    return op == ExprOp::Not ? Values{ops::unary(c.g, op, c.in(0))} : compare<op>(c);
}

// An arithmetic right shift of negative numbers: not(not(x) >> n).
Values bit_shift(NodeContext& c) {
    std::string direction = c.s("direction", "");
    c.ensure(direction == "LEFT" || direction == "RIGHT", "attribute 'direction' is '", direction,
             "', expected LEFT or RIGHT");
    DType t = c.dtype(0);
    c.ensure(is_integer(t) && c.dtype(1) == t, "the inputs are ", c.type(0), " and ", c.type(1),
             ", expected integers of one type");
    if (direction == "LEFT") {
        return compare<ExprOp::Shl>(c);
    }
    if (!is_signed(t)) {
        return compare<ExprOp::Shr>(c);
    }
    Expr e;
    int x = e.in(0, t);
    int n = e.in(1, t);
    int negative = e.op(ExprOp::Lt, x, e.constant_i64(t, 0));
    int flipped = e.select(negative, e.op(ExprOp::Not, x), x);
    int shifted = e.op(ExprOp::Shr, flipped, n);
    e.select(negative, e.op(ExprOp::Not, shifted), shifted);
    return {ops::map(c.g, e, t, std::array{c.in(0), c.in(1)})};
}

Values is_inf(NodeContext& c) {
    bool negative = c.i("detect_negative", 1) != 0;
    bool positive = c.i("detect_positive", 1) != 0;
    DType t = c.dtype(0);
    Expr e;
    int x = e.in(0, t);
    int inf = e.op(ExprOp::IsInf, x);
    int below = e.op(ExprOp::Lt, x, e.constant(t, 0));
    if (negative && !positive) {
        e.op(ExprOp::And, inf, below);
    } else if (positive && !negative) {
        e.op(ExprOp::And, inf, e.op(ExprOp::Not, below));
    } else if (!positive && !negative) {
        e.op(ExprOp::And, inf, e.op(ExprOp::Not, inf));
    } else {
        return {ops::unary(c.g, ExprOp::IsInf, c.in(0))};
    }
    return {ops::map(c.g, e, DType::Bool, std::array{c.in(0)})};
}

Values is_nan(NodeContext& c) {
    return {ops::unary(c.g, ExprOp::IsNan, c.in(0))};
}

Values where(NodeContext& c) {
    return {ops::select(c.g, c.in(0), c.in(1), c.in(2))};
}

const ImporterRow rows[] = {
    {"", "Equal", 7, compare<ExprOp::Eq>, no_shapes},
    {"", "Less", 7, compare<ExprOp::Lt>, no_shapes},
    {"", "LessOrEqual", 12, compare<ExprOp::Le>, shape_results},
    {"", "Greater", 7, swapped<ExprOp::Lt>, no_shapes},
    {"", "GreaterOrEqual", 12, swapped<ExprOp::Le>, shape_results},
    {"", "And", 7, logical<ExprOp::And>, no_shapes},
    {"", "Or", 7, logical<ExprOp::Or>, no_shapes},
    {"", "Xor", 7, logical<ExprOp::Xor>, no_shapes},
    {"", "Not", 1, logical<ExprOp::Not>, no_shapes},
    {"", "BitwiseAnd", 18, bitwise<ExprOp::And>, no_shapes},
    {"", "BitwiseOr", 18, bitwise<ExprOp::Or>, no_shapes},
    {"", "BitwiseXor", 18, bitwise<ExprOp::Xor>, no_shapes},
    {"", "BitwiseNot", 18, bitwise<ExprOp::Not>, no_shapes},
    {"", "BitShift", 11, bit_shift, no_shapes},
    {"", "IsInf", 10, is_inf, no_shapes},
    {"", "IsNaN", 9, is_nan, no_shapes},
    {"", "Where", 9, where, no_shapes},
};

} // namespace

extern const ImporterTable logic_importers;
const ImporterTable logic_importers = rows;

} // namespace ingot::onnx
