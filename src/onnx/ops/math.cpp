// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic: unary functions, binary operators with broadcasting, Pow, Mod, Clip and
// the variadic Sum, Mean, Min, Max.
#include "onnx/importer.h"

#include <array>

namespace ingot::onnx {

namespace {

template <ExprOp op>
Values unary(NodeContext& c) {
    return {ops::unary(c.g, op, c.in(0))};
}

template <ExprOp op>
Values binary(NodeContext& c) {
    return {ops::binary(c.g, op, c.in(0), c.in(1))};
}

// Opset 6: aligns the second operand with axes of the first from `axis` on, or with its last axes.
template <ExprOp op>
Values legacy(NodeContext& c) {
    Value b = c.in(1);
    int64_t rank = c.rank(0);
    int64_t own = c.rank(1);
    int64_t axis = c.i("axis", rank - own);
    c.ensure(axis >= 0 && axis + own <= rank, "attribute 'axis' is ", axis, " for ", c.type(0),
             " and ", c.type(1));
    Dims dims = c.type(1).dims;
    if (c.i("broadcast", 0) != 0 && axis + own < rank) {
        dims.resize(static_cast<size_t>(rank - axis), Dim(1));
        b = ops::reshape(c.g, b, dims);
    }
    return {ops::binary(c.g, op, c.in(0), b)};
}

Values reciprocal(NodeContext& c) {
    Value one = ops::scalar(c.g, c.dtype(0), 1);
    return {ops::div(c.g, one, c.in(0))};
}

// The exponent may have another type; the result has the base's.
Values pow(NodeContext& c) {
    DType base = c.dtype(0);
    DType exponent = c.dtype(1);
    if (base == exponent) {
        return binary<ExprOp::Pow>(c);
    }
    bool fp = is_float(base) || is_float(exponent);
    bool wide = base == DType::F64 || exponent == DType::F64 || !is_float(base);
    DType t = !fp ? compute_type(base) : wide ? DType::F64 : DType::F32;
    Expr e;
    int x = e.cast(e.in(0, base), t);
    int y = e.cast(e.in(1, exponent), t);
    int z = e.op(ExprOp::Pow, x, y);
    if (t != compute_type(base)) {
        e.cast(z, base);
    }
    return {ops::map(c.g, e, base, std::array{c.in(0), c.in(1)})};
}

Values mod(NodeContext& c) {
    return c.i("fmod", 0) != 0 ? binary<ExprOp::Fmod>(c) : binary<ExprOp::Mod>(c);
}

template <ExprOp op>
Values variadic(NodeContext& c) {
    Value all = c.in(0);
    for (int i = 1; i < c.input_count(); ++i) {
        all = ops::binary(c.g, op, all, c.in(i));
    }
    return {all};
}

Values mean(NodeContext& c) {
    DType t = c.dtype(0);
    Value sum = ops::widen(c.g, c.in(0));
    for (int i = 1; i < c.input_count(); ++i) {
        sum = ops::add(c.g, sum, ops::widen(c.g, c.in(i)));
    }
    return {ops::cast(c.g, ops::div(c.g, sum, static_cast<double>(c.input_count())), t)};
}

Values clip_attributes(NodeContext& c) {
    Value x = c.in(0);
    if (c.has_attribute("min")) {
        x = ops::maximum(c.g, x, c.f("min", 0));
    }
    if (c.has_attribute("max")) {
        x = ops::minimum(c.g, x, c.f("max", 0));
    }
    return {x};
}

Values clip(NodeContext& c) {
    Value x = c.in(0);
    auto limit = [&](int i) {
        c.ensure(c.dtype(i) == c.dtype(0), "the limit is ", c.type(i), ", expected a scalar of ",
                 c.dtype(0));
        return ops::reshape(c.g, c.in(i), {});
    };
    if (c.has(1)) {
        x = ops::maximum(c.g, x, limit(1));
    }
    if (c.has(2)) {
        x = ops::minimum(c.g, x, limit(2));
    }
    return {x};
}

const ImporterRow rows[] = {
    {"", "Abs", 6, unary<ExprOp::Abs>, no_shapes},
    {"", "Acos", 7, unary<ExprOp::Acos>, no_shapes},
    {"", "Acosh", 9, unary<ExprOp::Acosh>, no_shapes},
    {"", "Asin", 7, unary<ExprOp::Asin>, no_shapes},
    {"", "Asinh", 9, unary<ExprOp::Asinh>, no_shapes},
    {"", "Atan", 7, unary<ExprOp::Atan>, no_shapes},
    {"", "Atanh", 9, unary<ExprOp::Atanh>, no_shapes},
    {"", "Ceil", 6, unary<ExprOp::Ceil>, no_shapes},
    {"", "Cos", 7, unary<ExprOp::Cos>, no_shapes},
    {"", "Cosh", 9, unary<ExprOp::Cosh>, no_shapes},
    {"", "Erf", 9, unary<ExprOp::Erf>, no_shapes},
    {"", "Exp", 6, unary<ExprOp::Exp>, no_shapes},
    {"", "Floor", 6, unary<ExprOp::Floor>, no_shapes},
    {"", "Log", 6, unary<ExprOp::Log>, no_shapes},
    {"", "Neg", 6, unary<ExprOp::Neg>, no_shapes},
    {"", "Reciprocal", 6, reciprocal, no_shapes},
    {"", "Round", 11, unary<ExprOp::Round>, no_shapes},
    {"", "Sign", 9, unary<ExprOp::Sign>, no_shapes},
    {"", "Sin", 7, unary<ExprOp::Sin>, no_shapes},
    {"", "Sinh", 9, unary<ExprOp::Sinh>, no_shapes},
    {"", "Sqrt", 6, unary<ExprOp::Sqrt>, no_shapes},
    {"", "Tan", 7, unary<ExprOp::Tan>, no_shapes},
    {"", "Add", 6, legacy<ExprOp::Add>, no_shapes},
    {"", "Sub", 6, legacy<ExprOp::Sub>, no_shapes},
    {"", "Mul", 6, legacy<ExprOp::Mul>, no_shapes},
    {"", "Div", 6, legacy<ExprOp::Div>, no_shapes},
    {"", "Pow", 1, legacy<ExprOp::Pow>, no_shapes},
    {"", "Add", 7, binary<ExprOp::Add>, no_shapes},
    {"", "Sub", 7, binary<ExprOp::Sub>, no_shapes},
    {"", "Mul", 7, binary<ExprOp::Mul>, no_shapes},
    {"", "Div", 7, binary<ExprOp::Div>, no_shapes},
    {"", "Pow", 7, pow, no_shapes},
    {"", "Mod", 10, mod, shape_results},
    {"", "Sum", 6, variadic<ExprOp::Add>, shape_results},
    {"", "Min", 6, variadic<ExprOp::Min>, shape_results},
    {"", "Max", 6, variadic<ExprOp::Max>, shape_results},
    {"", "Mean", 6, mean, shape_results},
    {"", "Clip", 6, clip_attributes, shape_results},
    {"", "Clip", 11, clip, shape_results},
};

} // namespace

extern const ImporterTable math_importers;
const ImporterTable math_importers = rows;

} // namespace ingot::onnx
