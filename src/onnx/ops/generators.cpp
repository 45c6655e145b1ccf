// SPDX-License-Identifier: Apache-2.0
// Tensors made only from sizes and attributes: Constant, ConstantOfShape, EyeLike, Range; and
// Trilu, which masks with such a tensor.
#include "base/error.h"
#include "onnx/import_run.h"
#include "onnx/ops/support/inputs.h"

#include <cmath>

namespace ingot::onnx {

namespace {

// Scatters the values into zeros, so that importing stores and allocates nothing dense.
Value sparse_constant(NodeContext& c, const SparseTensor& s) {
    const Dims dims(s.dims.begin(), s.dims.end());
    Value values = ops::constant(c.g, tensor_from(s.values));
    Value indices = to_i64(c.g, ops::constant(c.g, tensor_from(s.indices)));
    if (c.g.type(indices).rank() == 2) {
        Values coordinates;
        for (size_t i = 0; i < dims.size(); ++i) {
            Value column = ops::slice(c.g, indices, 1, static_cast<int64_t>(i), 1);
            coordinates.push_back(ops::squeeze(c.g, column, {1}));
        }
        indices = row_major_index(c.g, coordinates, dims);
    }
    Value zeros = ops::full(c.g, c.g.type(values).dtype, {product(dims)}, 0);
    return ops::reshape(c.g, ops::scatter(c.g, zeros, indices, values, "none"), dims);
}

Values constant(NodeContext& c) {
    c.ensure(c.node.attributes.size() == 1, "there are ", c.node.attributes.size(),
             " attributes, expected one that gives the value");
    const Attribute& a = c.node.attributes[0];
    if (a.name == "value" && a.type == AttributeType::Tensor) {
        return {ops::constant(c.g, tensor_from(a.t))};
    }
    if (a.name == "sparse_value" && a.sparse_tensor != nullptr) {
        return {sparse_constant(c, *a.sparse_tensor)};
    }
    if (a.name == "value_float") {
        return {ops::scalar(c.g, DType::F32, c.f(a.name, 0))};
    }
    if (a.name == "value_int") {
        return {ops::scalar_i64(c.g, DType::I64, c.i(a.name))};
    }
    if (a.name == "value_ints") {
        return {ops::i64_list(c.g, c.ints(a.name))};
    }
    if (a.name == "value_floats") {
        std::vector<double> v = c.floats(a.name);
        Shape shape{static_cast<int64_t>(v.size())};
        return {ops::constant(c.g, ingot::Tensor::of<double>(DType::F32, shape, v))};
    }
    if (a.name == "value_string" || a.name == "value_strings") {
        c.refuse(RefusalKind::DataType, "string tensors are not supported");
    }
    c.refuse(RefusalKind::Attribute, "attribute '", a.name, "' of type ", name(a.type),
             " gives no tensor");
}

Values constant_of_shape(NodeContext& c) {
    int64_t rank = list_length(c, 0);
    Dims dims = sizes_input(c, 0, rank);
    const Attribute* a = c.attribute("value");
    if (a == nullptr) {
        return {ops::full(c.g, DType::F32, dims, 0)};
    }
    c.ensure(a->type == AttributeType::Tensor, "attribute 'value' has type ", name(a->type),
             ", expected tensor");
    ingot::Tensor value = tensor_from(a->t);
    c.ensure(value.count() == 1, "attribute 'value' is ", value.type(), ", expected one element");
    return {ops::broadcast_to(c.g, ops::constant(c.g, value.reshaped({})), dims)};
}

// row + offset for each row and column; equals the column index on the diagonal.
Value rows_of(ingot::Graph& g, const Dims& dims) {
    return coordinate(g, {dims[dims.size() - 2], dims[dims.size() - 1]}, 0);
}

Value columns_of(ingot::Graph& g, const Dims& dims) {
    return coordinate(g, {dims[dims.size() - 2], dims[dims.size() - 1]}, 1);
}

Values eye_like(NodeContext& c) {
    c.ensure(c.rank(0) == 2, "input 0 is ", c.type(0), ", expected rank 2");
    const Dims dims = c.type(0).dims;
    DType t = dtype_attribute(c, "dtype", c.dtype(0));
    Value shifted = ops::add(c.g, rows_of(c.g, dims), static_cast<double>(c.i("k", 0)));
    Value on = ops::equal(c.g, shifted, columns_of(c.g, dims));
    return {ops::cast(c.g, on, t)};
}

Values trilu(NodeContext& c) {
    c.ensure(c.rank(0) >= 2, "input 0 is ", c.type(0), ", expected rank 2 or more");
    const Dims dims = c.type(0).dims;
    Value k = c.has(1) ? to_scalar(c.g, to_i64(c.g, c.in(1))) : ops::scalar_i64(c.g, DType::I64, 0);
    Value diagonal = ops::add(c.g, rows_of(c.g, dims), k);
    Value column = columns_of(c.g, dims);
    bool upper = c.i("upper", 1) != 0;
    Value kept = upper ? ops::binary(c.g, ExprOp::Le, diagonal, column)
                       : ops::binary(c.g, ExprOp::Le, column, diagonal);
    Value zero = ops::scalar(c.g, c.dtype(0), 0);
    return {ops::select(c.g, kept, c.in(0), zero)};
}

// --- Range -------------------------------------------------------------------------------------

// max(ceil((limit - start) / delta), 0) as i64, on tensors.
Value range_count(ingot::Graph& g, Value start, Value limit, Value delta) {
    Value count;
    if (is_float(g.type(start).dtype)) { // in f64, as ONNX Runtime and NumPy do
        auto wide = [&](Value v) { return ops::cast(g, v, DType::F64); };
        Value steps = ops::div(g, ops::sub(g, wide(limit), wide(start)), wide(delta));
        count = ops::cast(g, ops::unary(g, ExprOp::Ceil, steps), DType::I64);
    } else {
        Value distance = ops::sub(g, limit, start);
        Value round_up = ops::sub(g, delta, ops::unary(g, ExprOp::Sign, delta));
        count = ops::div(g, ops::add(g, distance, round_up), delta);
    }
    return ops::maximum(g, count, 0.0);
}

std::optional<Dim> known_scalar(const NodeContext& c, int i) {
    auto d = is_float(c.dtype(i)) ? std::nullopt : ops::known_dims(c.g, c.in(i));
    return d && d->size() == 1 ? std::optional((*d)[0]) : std::nullopt;
}

// com.microsoft's Range may leave the step out.
std::optional<Dim> known_step(const NodeContext& c) {
    return c.has(2)               ? known_scalar(c, 2)
           : is_float(c.dtype(0)) ? std::nullopt
                                  : std::optional(Dim(1));
}

Dim range_size(NodeContext& c, Value start, Value limit, Value delta) {
    auto from = known_scalar(c, 0);
    auto to = known_scalar(c, 1);
    auto by = known_step(c);
    if (from && to && by && by->is_const()) {
        c.ensure(!by->is_const(0), "the step is 0");
        return max(ceil_div(*to - *from, *by), 0);
    }
    return ops::dims_from(c.g, range_count(c.g, start, limit, delta))[0];
}

Values range(NodeContext& c) {
    DType t = c.dtype(0);
    DType wide = compute_type(t);
    auto scalar = [&](int i) {
        c.ensure(c.dtype(i) == t, "input ", i, " is ", c.type(i), ", expected a scalar of ", t);
        Value v = to_scalar(c.g, ops::cast(c.g, c.in(i), wide));
        return is_float(t) ? v : to_i64(c.g, v);
    };
    Value start = scalar(0);
    Value limit = scalar(1);
    Value delta = c.has(2) ? scalar(2) : ops::scalar(c.g, is_float(t) ? wide : DType::I64, 1);
    Dim n = range_size(c, start, limit, delta);
    Value index = ops::iota(c.g, c.g.type(start).dtype, {n}, 0);
    auto by = known_step(c);
    auto from = known_scalar(c, 0);
    Value scaled = by && by->is_const(1) ? index : ops::mul(c.g, index, delta);
    Value all = from && from->is_const(0) ? scaled : ops::add(c.g, scaled, start);
    return {ops::cast(c.g, all, t)};
}

const ImporterRow rows[] = {
    {"", "Constant", 1, constant, no_shapes},
    {"", "ConstantOfShape", 9, constant_of_shape, shape_inputs({0})},
    {"", "EyeLike", 9, eye_like, no_shapes},
    {"", "Range", 11, range, shape_inputs({0, 1, 2})},
    {"com.microsoft", "Range", 1, range, shape_inputs({0, 1, 2})},
    {"", "Trilu", 14, trilu, no_shapes},
    {"com.microsoft", "Trilu", 1, trilu, no_shapes},
};

} // namespace

extern const ImporterTable generators_importers;
const ImporterTable generators_importers = rows;

} // namespace ingot::onnx
