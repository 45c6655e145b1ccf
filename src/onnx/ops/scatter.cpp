// SPDX-License-Identifier: Apache-2.0
// Writing by index: ScatterElements (and Scatter, its old name), ScatterND, TensorScatter.
#include "onnx/ops/support/inputs.h"

namespace ingot::onnx {

namespace {

std::string reduction(NodeContext& c) {
    std::string fn = c.s("reduction", "none");
    c.ensure(fn == "none" || fn == "add" || fn == "mul" || fn == "min" || fn == "max",
             "attribute 'reduction' is '", fn, "', expected none, add, mul, min or max");
    return fn;
}

// Scatters elements of the flattened updates to row-major indices of the flattened x.
Value scatter_flat(ingot::Graph& g, Value x, Value index, Value updates, const std::string& fn) {
    const Dims dims = ops::dims(g, x);
    Value flat =
        ops::scatter(g, ops::flatten(g, x), ops::flatten(g, index), ops::flatten(g, updates), fn);
    return ops::reshape(g, flat, dims);
}

Values scatter_elements(NodeContext& c) {
    const Dims data = c.type(0).dims;
    const Dims at = c.type(1).dims;
    c.ensure(data.size() == at.size() && !data.empty() && c.type(2).dims.size() == at.size(),
             "the inputs are ", c.type(0), ", ", c.type(1), " and ", c.type(2),
             ", expected equal ranks of at least 1");
    auto axis = static_cast<size_t>(normalize_axis(c.i("axis", 0), c.rank(0)));
    Values coordinates;
    for (size_t i = 0; i < data.size(); ++i) {
        coordinates.push_back(i == axis ? ops::wrap_indices(c.g, to_i64(c.g, c.in(1)), data[i])
                                        : coordinate(c.g, at, i));
    }
    Value index = ops::broadcast_to(c.g, row_major_index(c.g, coordinates, data), at);
    return {scatter_flat(c.g, c.in(0), index, c.in(2), reduction(c))};
}

Values scatter_nd(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Dims data = c.type(0).dims;
    const Dims at = c.type(1).dims;
    c.ensure(!data.empty() && !at.empty(), "the inputs are ", c.type(0), " and ", c.type(1),
             ", expected ranks of at least 1");
    if (!at.back().is_const()) {
        c.refuse(RefusalKind::Dynamic, "the last size of the indices, ", c.type(1),
                 ", is not known before the run");
    }
    int64_t k = at.back().value();
    c.ensure(k <= c.rank(0), "the indices name ", k, " axes of ", c.type(0));
    auto last = static_cast<int64_t>(at.size()) - 1;
    Values coordinates;
    for (int64_t i = 0; i < k; ++i) {
        Value part = ops::squeeze(g, ops::slice(g, to_i64(g, c.in(1)), last, i, 1), {last});
        coordinates.push_back(ops::wrap_indices(g, part, data[static_cast<size_t>(i)]));
    }
    Dims outer(data.begin(), data.begin() + k);
    Dim tuples = product_of(at, 0, at.size() - 1);
    Value index =
        ops::broadcast_to(g, row_major_index(g, coordinates, outer), {at.begin(), at.end() - 1});
    Dims rows(data.begin() + k, data.end());
    rows.insert(rows.begin(), product(outer));
    Dims updates = rows;
    updates[0] = tuples;
    Value flat = ops::scatter(g, ops::reshape(g, c.in(0), rows), ops::reshape(g, index, {tuples}),
                              ops::reshape(g, c.in(2), updates), reduction(c));
    return {ops::reshape(g, flat, data)};
}

// Writes update into the cache at write_indices[batch] along one axis.
Values tensor_scatter(NodeContext& c) {
    ingot::Graph& g = c.g;
    std::string mode = c.s("mode", "linear");
    c.ensure(mode == "linear" || mode == "circular", "attribute 'mode' is '", mode,
             "', expected linear or circular");
    const Dims cache = c.type(0).dims;
    const Dims update = c.type(1).dims;
    c.ensure(cache.size() == update.size() && cache.size() >= 2, "the inputs are ", c.type(0),
             " and ", c.type(1), ", expected equal ranks of at least 2");
    auto axis = static_cast<size_t>(normalize_axis(c.i("axis", -2), c.rank(0)));
    c.ensure(axis != 0, "attribute 'axis' names the batch axis");
    Dims outer(cache.begin(), cache.begin() + static_cast<int64_t>(axis) + 1);
    Dims written(update.begin(), update.begin() + static_cast<int64_t>(axis) + 1);
    Values coordinates;
    for (size_t i = 0; i < axis; ++i) {
        coordinates.push_back(coordinate(g, written, i));
    }
    Value position = coordinate(g, written, axis);
    if (c.has(2)) {
        Dims per_batch(written.size(), Dim(1));
        per_batch[0] = written[0];
        position = ops::add(g, position, ops::reshape(g, to_i64(g, c.in(2)), per_batch));
    }
    if (mode == "circular") {
        position = ops::binary(g, ExprOp::Mod, position, ops::dim_scalar(g, cache[axis]));
    }
    coordinates.push_back(position);
    Value index = ops::broadcast_to(g, row_major_index(g, coordinates, outer), written);
    Dims rows(cache.begin() + static_cast<int64_t>(axis) + 1, cache.end());
    rows.insert(rows.begin(), product(outer));
    Dims new_rows = rows;
    new_rows[0] = product(written);
    Value flat = ops::scatter(g, ops::reshape(g, c.in(0), rows), ops::flatten(g, index),
                              ops::reshape(g, c.in(1), new_rows), "none");
    return {ops::reshape(g, flat, cache)};
}

const ImporterRow rows[] = {
    {"", "Scatter", 9, scatter_elements, no_shapes},
    {"", "ScatterElements", 11, scatter_elements, no_shapes},
    {"", "ScatterND", 11, scatter_nd, no_shapes},
    {"", "TensorScatter", 24, tensor_scatter, no_shapes},
};

} // namespace

extern const ImporterTable scatter_importers;
const ImporterTable scatter_importers = rows;

} // namespace ingot::onnx
