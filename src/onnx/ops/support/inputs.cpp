// SPDX-License-Identifier: Apache-2.0
#include "onnx/ops/support/inputs.h"

#include "base/error.h"
#include "onnx/data_type.h"

namespace ingot::onnx {

DType dtype_attribute(const NodeContext& c, std::string_view name, DType fallback) {
    if (!c.has_attribute(name)) {
        return fallback;
    }
    int64_t number = c.i(name);
    c.ensure(number >= 0 && number <= INT32_MAX, "attribute '", name, "' is ", number,
             ", expected a data type");
    auto t = dtype_of(static_cast<int>(number));
    if (!t) {
        c.refuse(RefusalKind::DataType, "element type ", data_type_name(static_cast<int>(number)),
                 " is not supported");
    }
    return *t;
}

Value to_i64(ingot::Graph& g, Value v) {
    return ops::cast(g, v, DType::I64);
}

Value to_scalar(ingot::Graph& g, Value v) {
    return ops::reshape(g, v, {});
}

Value size_scalar(ingot::Graph& g, const Dim& d, DType t) {
    return ops::cast(g, ops::dim_scalar(g, d), t);
}

Value element(ingot::Graph& g, Value list, int64_t i) {
    return to_scalar(g, ops::slice(g, list, 0, i, 1));
}

int64_t list_length(const NodeContext& c, int i) {
    const Type& t = c.type(i);
    c.ensure(t.rank() <= 1, "input ", i, " is ", t, ", expected a list (rank 1)");
    if (t.rank() == 0) {
        return 1;
    }
    if (!t.dims[0].is_const()) {
        c.refuse(RefusalKind::Dynamic, "the number of elements of input ", i, ", ", t,
                 ", is not known before the run, so the rank of the result is not");
    }
    return t.dims[0].value();
}

Value list_input(const NodeContext& c, int i, int64_t count) {
    const Type t = c.type(i);
    bool fits = t.rank() == 0 ? count == 1 : t.rank() == 1;
    fits = fits && (t.rank() == 0 || !t.dims[0].is_const() || t.dims[0].is_const(count));
    c.ensure(fits && is_integer(t.dtype), "input ", i, " is ", t, ", expected ", count,
             count == 1 ? " integer" : " integers");
    return ops::reshape(c.g, to_i64(c.g, c.in(i)), {Dim(count)});
}

std::optional<std::vector<int64_t>> known_ints(const NodeContext& c, int i) {
    auto t = c.maybe_constant(i);
    if (!t || t->rank() > 1 || is_float(t->dtype())) {
        return std::nullopt;
    }
    std::vector<int64_t> out;
    for (int64_t k = 0; k < t->count(); ++k) {
        out.push_back(t->get_i64(k));
    }
    return out;
}

Dims sizes_input(const NodeContext& c, int i, int64_t count) {
    if (count == 0) {
        return {};
    }
    Dims sizes = ops::dims_from(c.g, list_input(c, i, count));
    for (const Dim& d : sizes) {
        c.ensure(!d.is_const() || d.value() >= 0, "input ", i, " has ", d, ", expected a size");
    }
    return sizes;
}

Dim size_input(const NodeContext& c, int i) {
    auto t = c.maybe_constant(i); // any type, as OneHot permits
    Dim size = 0;
    if (t && t->count() == 1) {
        size = t->get_i64(0);
    } else {
        Value scalar = to_scalar(c.g, to_i64(c.g, c.in(i)));
        size = ops::dims_from(c.g, scalar)[0];
    }
    c.ensure(!size.is_const() || size.value() >= 0, "input ", i, " is ", size, ", expected a size");
    return size;
}

Axes read_axes(const NodeContext& c, std::string_view attribute, int input) {
    Axes a;
    if (!attribute.empty() && c.has_attribute(attribute)) {
        a.given = true;
        a.known = c.ints(attribute);
    } else if (c.has(input)) {
        a.given = true;
        a.count = list_length(c, input);
        a.known = a.count == 0 ? std::vector<int64_t>{} : known_ints(c, input);
        if (!a.known) {
            a.value = ops::reshape(c.g, to_i64(c.g, c.in(input)), {Dim(a.count)});
        }
    }
    if (a.known) {
        a.count = static_cast<int64_t>(a.known->size());
    }
    return a;
}

Value axis_flags(ingot::Graph& g, Value axes, int64_t rank) {
    Value wrapped = ops::wrap_indices(g, axes, rank);
    Value column = ops::unsqueeze(g, wrapped, {1});
    return ops::reduce_max(g, ops::equal(g, column, ops::iota(g, DType::I64, {Dim(rank)}, 0)), {0});
}

Value true_positions(ingot::Graph& g, Value flags) {
    Value found = g.add1(nonzero_def, NonZero{g.fresh_symbol()}, {flags});
    return ops::reshape(g, found, {ops::dims(g, found)[1]});
}

Value unflagged(ingot::Graph& g, Value flags, int64_t count) {
    return ops::reshape(g, true_positions(g, ops::logical_not(g, flags)), {Dim(count)});
}

AroundAxis around_axis(ingot::Graph& g, const Dims& dims, Value axis) {
    auto rank = static_cast<int64_t>(dims.size());
    Value at = ops::reshape(g, ops::wrap_indices(g, axis, rank), {Dim(1)});
    Value index = ops::iota(g, DType::I64, {Dim(rank)}, 0);
    Value sizes = ops::dims_tensor(g, dims);
    Value one = ops::scalar_i64(g, DType::I64, 1);
    auto product_where = [&](Value flags) {
        return ops::reduce(g, "prod", ops::select(g, flags, sizes, one), {0}, true);
    };
    Values parts = {product_where(ops::less(g, index, at)), ops::gather(g, sizes, at, 0),
                    product_where(ops::less(g, at, index))};
    Dims bound = ops::dims_from(g, ops::concat(g, parts, 0));
    return {bound[0], bound[1], bound[2]};
}

Dim product_of(const Dims& dims, size_t from, size_t to) {
    Dim p = 1;
    for (size_t i = from; i < to; ++i) {
        p = p * dims[i];
    }
    return p;
}

namespace {

/// Whether v holds the coordinates along an axis, as coordinate() builds them.
bool counts_positions(const ingot::Graph& g, Value v) {
    const ingot::Node* n = g.producer(v);
    while (n != nullptr && n->is(reshape_def)) {
        n = g.producer(n->inputs[0]);
    }
    return n != nullptr && n->is(iota_def);
}

Value is_inside(ingot::Graph& g, Value at, const Dim& size) {
    Value low = ops::binary(g, ExprOp::Le, ops::scalar_i64(g, DType::I64, 0), at);
    return ops::binary(g, ExprOp::And, low, ops::less(g, at, ops::dim_scalar(g, size)));
}

} // namespace

Value row_major_index(ingot::Graph& g, std::span<const Value> coordinates, const Dims& dims) {
    CHECK(coordinates.size() == dims.size(), coordinates.size(), " coordinates of ", dims);
    Value sum;
    Value inside;
    Dim stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        Value at = to_i64(g, coordinates[i]);
        if (i > 0 && !counts_positions(g, coordinates[i])) {
            Value here = is_inside(g, at, dims[i]);
            inside = inside.valid() ? ops::binary(g, ExprOp::And, inside, here) : here;
        }
        if (!stride.is_const(1)) {
            at = ops::mul(g, at, ops::dim_scalar(g, stride));
        }
        sum = sum.valid() ? ops::add(g, sum, at) : at;
        stride = stride * dims[i];
    }
    if (inside.valid()) {
        sum = ops::select(g, inside, sum, ops::scalar_i64(g, DType::I64, -1));
    }
    return sum.valid() ? sum : ops::scalar_i64(g, DType::I64, 0);
}

Value coordinate(ingot::Graph& g, const Dims& dims, size_t axis) {
    Dims flat(dims.size(), Dim(1));
    flat[axis] = dims[axis];
    return ops::reshape(g, ops::iota(g, DType::I64, {dims[axis]}, 0), flat);
}

void require_inference(const NodeContext& c, int ratio, int training_mode) {
    if (!c.has(training_mode)) {
        return;
    }
    auto is = [](const ingot::Tensor& t, double v) { return t.count() == 1 && t.get_f64(0) == v; };
    auto known = c.has(ratio) ? c.maybe_constant(ratio) : std::nullopt;
    if (!is(c.constant(training_mode), 0) && !(known && is(*known, 0))) {
        c.refuse(RefusalKind::Input, "training_mode is set; only inference is supported");
    }
}

} // namespace ingot::onnx
