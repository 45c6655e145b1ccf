// SPDX-License-Identifier: Apache-2.0
// Reading by index: Gather, GatherElements, GatherND, Compress, NonZero, OneHot, ReverseSequence.
#include "onnx/ops/support/inputs.h"

namespace ingot::onnx {

namespace {

Values gather(NodeContext& c) {
    return {ops::gather_wrapped(c.g, c.in(0), c.in(1), c.i("axis", 0))};
}

// Row-major indices into data of the elements selected by `indices` along one axis.
Value element_index(ingot::Graph& g, const Dims& data, Value indices, size_t axis) {
    const Dims at = ops::dims(g, indices);
    Values coordinates;
    for (size_t i = 0; i < data.size(); ++i) {
        coordinates.push_back(i == axis ? ops::wrap_indices(g, to_i64(g, indices), data[i])
                                        : coordinate(g, at, i));
    }
    return ops::broadcast_to(g, row_major_index(g, coordinates, data), at);
}

Values gather_elements(NodeContext& c) {
    const Dims data = c.type(0).dims;
    c.ensure(c.rank(0) == c.rank(1) && !data.empty(), "the inputs are ", c.type(0), " and ",
             c.type(1), ", expected equal ranks of at least 1");
    auto axis = static_cast<size_t>(normalize_axis(c.i("axis", 0), c.rank(0)));
    Value index = element_index(c.g, data, c.in(1), axis);
    return {ops::gather(c.g, ops::flatten(c.g, c.in(0)), index, 0)};
}

// Row-major indices of slices: indices [..., k] are coordinates in axes batch..batch+k-1; the
// leading `batch` axes of indices and data correspond.
Value slice_index(ingot::Graph& g, const Dims& data, Value indices, size_t batch, size_t k) {
    Dims at = ops::dims(g, indices);
    at.pop_back();
    auto last = static_cast<int64_t>(at.size());
    Values coordinates;
    for (size_t i = 0; i < batch; ++i) {
        coordinates.push_back(coordinate(g, at, i));
    }
    for (size_t i = 0; i < k; ++i) {
        Value part = ops::slice(g, to_i64(g, indices), last, static_cast<int64_t>(i), 1);
        coordinates.push_back(ops::wrap_indices(g, ops::squeeze(g, part, {last}), data[batch + i]));
    }
    Dims outer(data.begin(), data.begin() + static_cast<int64_t>(batch + k));
    return row_major_index(g, coordinates, outer);
}

// The number of coordinates per index tuple.
size_t tuple_size(NodeContext& c, int input, size_t batch) {
    const Type& t = c.type(input);
    c.ensure(t.rank() >= 1, "input ", input, " is ", t, ", expected rank 1 or more");
    if (!t.dims.back().is_const()) {
        c.refuse(RefusalKind::Dynamic, "the last size of input ", input, ", ", t,
                 ", is not known before the run, so the rank of the result is not");
    }
    int64_t k = t.dims.back().value();
    c.ensure(k + static_cast<int64_t>(batch) <= c.rank(0), "the indices name ", k, " axes after ",
             batch, " batch axes of ", c.type(0));
    return static_cast<size_t>(k);
}

Values gather_nd(NodeContext& c) {
    const Dims data = c.type(0).dims;
    int64_t batch = c.i("batch_dims", 0);
    c.ensure(batch >= 0 && batch < c.rank(0) && batch < c.rank(1), "attribute 'batch_dims' is ",
             batch, " for ", c.type(0), " and ", c.type(1));
    auto b = static_cast<size_t>(batch);
    size_t k = tuple_size(c, 1, b);
    Value index = slice_index(c.g, data, c.in(1), b, k);
    Dims rows(data.begin() + static_cast<int64_t>(b + k), data.end());
    rows.insert(rows.begin(), product_of(data, 0, b + k));
    return {ops::gather(c.g, ops::reshape(c.g, c.in(0), rows), index, 0)};
}

Values compress(NodeContext& c) {
    c.ensure(c.rank(1) == 1 && c.dtype(1) == DType::Bool, "the condition is ", c.type(1),
             ", expected a list of bool");
    Value index = true_positions(c.g, c.in(1));
    bool flat = !c.has_attribute("axis");
    Value x = flat ? ops::flatten(c.g, c.in(0)) : c.in(0);
    return {ops::gather(c.g, x, index, flat ? 0 : c.i("axis"))};
}

Values nonzero(NodeContext& c) {
    return {c.g.add1(nonzero_def, NonZero{c.g.fresh_symbol()}, {c.in(0)})};
}

Values one_hot(NodeContext& c) {
    int64_t rank = c.rank(0) + 1;
    int64_t axis = normalize_axis(c.i("axis", -1), rank);
    c.ensure(c.rank(2) == 1, "the values are ", c.type(2), ", expected [off, on]");
    Dim depth = size_input(c, 1);
    Value index = ops::wrap_indices(c.g, to_i64(c.g, c.in(0)), depth);
    Dims classes(static_cast<size_t>(rank), Dim(1));
    classes[static_cast<size_t>(axis)] = depth;
    Value position = ops::reshape(c.g, ops::iota(c.g, DType::I64, {depth}, 0), classes);
    Value hot = ops::equal(c.g, ops::unsqueeze(c.g, index, {axis}), position);
    Value off = element(c.g, c.in(2), 0);
    Value on = element(c.g, c.in(2), 1);
    return {ops::select(c.g, hot, on, off)};
}

// Step t of sequence b reads step length[b] - 1 - t while t < length[b].
Values reverse_sequence(NodeContext& c) {
    int64_t time = normalize_axis(c.i("time_axis", 0), c.rank(0));
    int64_t batch = normalize_axis(c.i("batch_axis", 1), c.rank(0));
    c.ensure(c.rank(0) >= 2 && time + batch == 1, "time_axis is ", time, " and batch_axis ", batch,
             ", expected 0 and 1 in either order");
    const Dims dims = c.type(0).dims;
    Dims outer(dims.begin(), dims.begin() + 2);
    Value t = coordinate(c.g, outer, static_cast<size_t>(time));
    Value length = ops::unsqueeze(c.g, to_i64(c.g, c.in(1)), {time});
    Value mirrored = ops::sub(c.g, ops::sub(c.g, length, t), 1.0);
    Value from = ops::select(c.g, ops::less(c.g, t, length), mirrored, t);
    Value b = coordinate(c.g, outer, static_cast<size_t>(batch));
    Values coordinates = time == 0 ? Values{from, b} : Values{b, from};
    Value index = row_major_index(c.g, coordinates, outer);
    Dims rows(dims.begin() + 1, dims.end());
    rows[0] = outer[0] * outer[1];
    Value y = ops::gather(c.g, ops::reshape(c.g, c.in(0), rows), ops::flatten(c.g, index), 0);
    return {ops::reshape(c.g, y, dims)};
}

const ImporterRow rows[] = {
    {"", "Gather", 1, gather, no_shapes},
    {"", "GatherElements", 11, gather_elements, no_shapes},
    {"", "GatherND", 11, gather_nd, no_shapes},
    {"com.microsoft", "GatherND", 1, gather_nd, no_shapes},
    {"", "Compress", 9, compress, no_shapes},
    {"", "NonZero", 9, nonzero, no_shapes},
    {"", "OneHot", 9, one_hot, shape_inputs({1})},
    {"", "ReverseSequence", 10, reverse_sequence, no_shapes},
};

} // namespace

extern const ImporterTable gather_importers;
const ImporterTable gather_importers = rows;

} // namespace ingot::onnx
