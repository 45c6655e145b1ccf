// SPDX-License-Identifier: Apache-2.0
// Unique of ONNX and of com.microsoft: sorts the rows, makes each run of equal rows a group, and,
// for unsorted results, orders the groups by their first members.
#include "onnx/ops/support/inputs.h"

#include <memory>

namespace ingot::onnx {

namespace {

// The permutation that sorts the rows of x [n, m]: a stable sort by each column from the last to
// the first, in a loop.
Value row_order(ingot::Graph& g, Value x) {
    const Dims dims = ops::dims(g, x);
    ingot::Graph body = g.sibling("sort_by_column");
    Value i = body.add_input("i", {DType::I64, {}});
    body.add_input("condition", {DType::Bool, {}});
    Value order = body.add_input("order", {DType::I64, {dims[0]}});
    Value rows = body.add_input("rows", g.type(x));
    Value last = ops::dim_scalar(body, dims[1] - Dim(1));
    Value column = ops::gather(body, rows, ops::sub(body, last, i), 1);
    Value by_column = ops::sort(body, ops::gather(body, column, order, 0), 0, false)[1];
    body.add_output("condition", ops::scalar_i64(body, DType::Bool, 1));
    body.add_output("order", ops::gather(body, order, by_column, 0));

    Loop loop;
    loop.body = std::make_shared<const ingot::Graph>(std::move(body));
    loop.carried = 1;
    loop.count = dims[1];
    Values in = {ops::dim_scalar(g, dims[1]), ops::scalar_i64(g, DType::Bool, 1),
                 ops::iota(g, DType::I64, {dims[0]}, 0), x};
    return g.add(loop_def, std::move(loop), in)[0];
}

// bool [n]: whether a row of x [n, m] (or an element of x [n]) differs from the previous one.
Value starts_of_groups(ingot::Graph& g, Value x, bool nan_equals_nan) {
    const Dims dims = ops::dims(g, x);
    Value index = ops::iota(g, DType::I64, {dims[0]}, 0);
    Value before = ops::gather(g, x, ops::maximum(g, ops::sub(g, index, 1.0), 0.0), 0);
    Value same = ops::equal(g, x, before);
    if (nan_equals_nan && is_float(g.type(x).dtype)) {
        Value nan = ops::binary(g, ExprOp::And, ops::unary(g, ExprOp::IsNan, x),
                                ops::unary(g, ExprOp::IsNan, before));
        same = ops::binary(g, ExprOp::Or, same, nan);
    }
    if (dims.size() == 2) {
        same = ops::reduce(g, "min", same, {1});
    }
    Value first = ops::binary(g, ExprOp::Eq, index, 0.0);
    return ops::binary(g, ExprOp::Or, first, ops::logical_not(g, same));
}

struct Groups {
    Value first;   // i64 [count]: the index in x of the group's first member
    Value inverse; // i64 [n]: the group of each row of x
    Value counts;  // i64 [count]
};

Groups grouped(ingot::Graph& g, Value sorted, Value order, bool nan_equals_nan = true) {
    const Dim n = ops::dims(g, sorted)[0];
    Value starts = starts_of_groups(g, sorted, nan_equals_nan);
    Value run = ops::scan(g, Scan{"sum", 0, false, false}, ops::cast(g, starts, DType::I64));
    Value group = ops::sub(g, run, 1.0);
    Value at = true_positions(g, starts);
    Value zeros = ops::full(g, DType::I64, {n}, 0);
    Groups r;
    r.first = ops::gather(g, order, at, 0);
    r.inverse = ops::scatter(g, zeros, order, group, "none");
    Value none = ops::full(g, DType::I64, {ops::dims(g, at)[0]}, 0);
    r.counts = ops::scatter(g, none, group, ops::full(g, DType::I64, {n}, 1), "add");
    return r;
}

// Renumbers the groups by their first occurrence.
Groups by_occurrence(ingot::Graph& g, const Groups& r) {
    const Dim count = ops::dims(g, r.first)[0];
    Values sorted = ops::sort(g, r.first, 0, false);
    Value zeros = ops::full(g, DType::I64, {count}, 0);
    Value rank = ops::scatter(g, zeros, sorted[1], ops::iota(g, DType::I64, {count}, 0), "none");
    return {sorted[0], ops::gather(g, rank, r.inverse, 0), ops::gather(g, r.counts, sorted[1], 0)};
}

Values unique(NodeContext& c) {
    ingot::Graph& g = c.g;
    bool by_axis = c.has_attribute("axis");
    int64_t axis = by_axis ? normalize_axis(c.i("axis"), c.rank(0)) : 0;
    Value x = by_axis ? c.in(0) : ops::flatten(g, c.in(0));
    DType t = c.dtype(0);
    Value keys = t == DType::Bool ? ops::cast(g, x, DType::U8) : x;
    Value order;
    Value sorted;
    if (g.type(x).rank() == 1) {
        Values s = ops::sort(g, keys, 0, false);
        sorted = s[0];
        order = s[1];
    } else {
        std::vector<int64_t> front = {axis};
        for (int64_t i = 0; i < c.rank(0); ++i) {
            if (i != axis) {
                front.push_back(i);
            }
        }
        keys = ops::permute(g, keys, front);
        const Dims dims = ops::dims(g, keys);
        keys = ops::reshape(g, keys, {dims[0], product_of(dims, 1, dims.size())});
        order = row_order(g, keys);
        sorted = ops::gather(g, keys, order, 0);
    }
    Groups r = grouped(g, sorted, order);
    if (c.i("sorted", 1) == 0) {
        r = by_occurrence(g, r);
    }
    return {ops::gather(g, x, r.first, axis), r.first, r.inverse, r.counts};
}

// com.microsoft's: x of rank 1, in order of occurrence; each NaN is a value of its own.
Values unique_in_order(NodeContext& c) {
    c.ensure(c.rank(0) == 1, "input 0 is ", c.type(0), ", expected rank 1");
    Values s = ops::sort(c.g, c.in(0), 0, false);
    Groups r = by_occurrence(c.g, grouped(c.g, s[0], s[1], false));
    return {ops::gather(c.g, c.in(0), r.first, 0), r.inverse, r.counts};
}

const ImporterRow rows[] = {
    {"", "Unique", 11, unique, no_shapes},
    {"com.microsoft", "Unique", 1, unique_in_order, no_shapes},
};

} // namespace

extern const ImporterTable unique_importers;
const ImporterTable unique_importers = rows;

} // namespace ingot::onnx
