// SPDX-License-Identifier: Apache-2.0
// Det, and Inverse of com.microsoft: Gaussian elimination with row pivoting, one loop iteration per
// column.
#include "onnx/ops/support/inputs.h"

#include <memory>

namespace ingot::onnx {

namespace {

// Swaps rows `a` and `b` [batch] of x [batch, n, n].
Value exchanged(ingot::Graph& g, Value x, Value a, Value b) {
    const Dims dims = ops::dims(g, x);
    Value row = ops::iota(g, DType::I64, {Dim(1), dims[1]}, 1);
    Value first = ops::reshape(g, a, {Dim(1), Dim(1)});
    Value second = ops::unsqueeze(g, b, {1});
    Value lower = ops::select(g, ops::equal(g, row, second), first, row);
    Value from = ops::select(g, ops::equal(g, row, first), second, lower);
    Values coordinates = {coordinate(g, {dims[0], dims[1]}, 0), from};
    Value index = row_major_index(g, coordinates, {dims[0], dims[1]});
    Value rows = ops::reshape(g, x, {dims[0] * dims[1], dims[2]});
    return ops::reshape(g, ops::gather(g, rows, ops::flatten(g, index), 0), dims);
}

struct Pivot {
    Value x;    // with the pivot's row at row k
    Value from; // i64 [batch]: the row where the pivot was
    Value row;  // [batch, columns]
    Value at;   // [batch]: the pivot
};

// The largest element of column k in rows k and below of x [batch, n, columns].
Pivot pivot_of(ingot::Graph& g, Value x, Value k) {
    Value row = ops::iota(g, DType::I64, {Dim(1), ops::dims(g, x)[1]}, 1);
    Value size = ops::unary(g, ExprOp::Abs, ops::gather(g, x, k, 2));
    Value open = ops::binary(g, ExprOp::Le, k, row);
    Value candidates = ops::select(g, open, size, ops::scalar(g, g.type(x).dtype, -1));
    Pivot p;
    p.from = ops::arg_reduce(g, "max", candidates, 1);
    p.x = exchanged(g, x, k, p.from);
    p.row = ops::gather(g, p.x, k, 1);
    p.at = ops::gather(g, p.row, k, 1);
    return p;
}

// One column: (k, condition, x [batch, n, n], determinant [batch]).
ingot::Graph eliminate_column(const ingot::Graph& outer, const Type& type) {
    ingot::Graph g = outer.sibling("eliminate_column");
    const Dims dims = type.dims;
    Value k = g.add_input("k", {DType::I64, {}});
    g.add_input("condition", {DType::Bool, {}});
    Value x = g.add_input("x", type);
    Value det = g.add_input("determinant", {type.dtype, {dims[0]}});
    Value row = ops::iota(g, DType::I64, {Dim(1), dims[1]}, 1);

    Pivot p = pivot_of(g, x, k);
    Value same = ops::equal(g, p.from, k);
    Value sign =
        ops::select(g, same, ops::scalar(g, type.dtype, 1), ops::scalar(g, type.dtype, -1));

    Value zero = ops::scalar(g, type.dtype, 0);
    Value singular = ops::equal(g, p.at, zero);
    Value divisor = ops::select(g, singular, ops::scalar(g, type.dtype, 1), p.at);
    Value column = ops::div(g, ops::gather(g, p.x, k, 2), ops::unsqueeze(g, divisor, {1}));
    Value factor = ops::select(g, ops::less(g, k, row), column, zero);
    Value update = ops::mul(g, ops::unsqueeze(g, factor, {2}), ops::unsqueeze(g, p.row, {1}));

    g.add_output("condition", ops::scalar_i64(g, DType::Bool, 1));
    g.add_output("x", ops::sub(g, p.x, update));
    g.add_output("determinant", ops::mul(g, ops::mul(g, det, p.at), sign));
    return g;
}

// One column of Gauss-Jordan elimination: (k, condition, x [batch, n, 2n]). The left half becomes
// the identity, and what was the identity on the right the inverse; that of a singular matrix has
// infinities and NaN.
ingot::Graph reduce_column(const ingot::Graph& outer, const Type& type) {
    ingot::Graph g = outer.sibling("reduce_column");
    Value k = g.add_input("k", {DType::I64, {}});
    g.add_input("condition", {DType::Bool, {}});
    Pivot p = pivot_of(g, g.add_input("x", type), k);
    Value scaled = ops::div(g, p.row, ops::unsqueeze(g, p.at, {1}));
    scaled = ops::unsqueeze(g, scaled, {1});
    Value factor = ops::unsqueeze(g, ops::gather(g, p.x, k, 2), {2});
    Value others = ops::sub(g, p.x, ops::mul(g, factor, scaled));
    Value row = ops::iota(g, DType::I64, {Dim(1), type.dims[1], Dim(1)}, 1);
    g.add_output("condition", ops::scalar_i64(g, DType::Bool, 1));
    g.add_output("x", ops::select(g, ops::equal(g, row, k), scaled, others));
    return g;
}

// [batch..., n, n]
void check_square(const NodeContext& c) {
    c.ensure(c.rank(0) >= 2, "input 0 is ", c.type(0), ", expected matrices");
    const Dims dims = c.type(0).dims;
    const Dim& n = dims.back();
    c.ensure(!n.is_const() || !dims[dims.size() - 2].is_const() || n == dims[dims.size() - 2],
             "input 0 is ", c.type(0), ", expected square matrices");
}

Values det(NodeContext& c) {
    ingot::Graph& g = c.g;
    check_square(c);
    const Dims dims = c.type(0).dims;
    const Dim& n = dims.back();
    Dims batch(dims.begin(), dims.end() - 2);
    Value x = ops::reshape(g, ops::widen(g, c.in(0)), {product(batch), n, n});
    const Type type = g.type(x);
    Loop l;
    l.body = std::make_shared<const ingot::Graph>(eliminate_column(g, type));
    l.carried = 2;
    l.count = n;
    Values in = {ops::dim_scalar(g, n), ops::scalar_i64(g, DType::Bool, 1), x,
                 ops::full(g, type.dtype, {product(batch)}, 1)};
    Value y = g.add(loop_def, std::move(l), in)[1];
    return {ops::cast(g, ops::reshape(g, y, batch), c.dtype(0))};
}

Values inverse(NodeContext& c) {
    ingot::Graph& g = c.g;
    check_square(c);
    const Dims dims = c.type(0).dims;
    const Dim& n = dims.back();
    Dim batch = product_of(dims, 0, dims.size() - 2);
    Value x = ops::reshape(g, ops::widen(g, c.in(0)), {batch, n, n});
    DType t = g.type(x).dtype;
    Value diagonal = ops::equal(g, coordinate(g, {n, n}, 0), coordinate(g, {n, n}, 1));
    Value identity = ops::broadcast_to(g, ops::cast(g, diagonal, t), {batch, n, n});
    Values halves = {x, identity};
    Value both = ops::concat(g, halves, 2);
    Loop l;
    l.body = std::make_shared<const ingot::Graph>(reduce_column(g, g.type(both)));
    l.carried = 1;
    l.count = n;
    Values in = {ops::dim_scalar(g, n), ops::scalar_i64(g, DType::Bool, 1), both};
    Value y = ops::slice(g, g.add(loop_def, std::move(l), in)[0], 2, n, n);
    return {ops::cast(g, ops::reshape(g, y, dims), c.dtype(0))};
}

const ImporterRow rows[] = {
    {"", "Det", 11, det, no_shapes},
    {"com.microsoft", "Inverse", 1, inverse, no_shapes},
};

} // namespace

extern const ImporterTable determinant_importers;
const ImporterTable determinant_importers = rows;

} // namespace ingot::onnx
