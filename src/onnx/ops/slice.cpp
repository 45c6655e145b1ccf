// SPDX-License-Identifier: Apache-2.0
// Slice in all forms. If the bounds are known sizes during import (numbers or symbols), the
// result's sizes are expressions; else they are computed on tensors and bound at run time.
#include "base/error.h"
#include "ir/value_reads.h"
#include "onnx/ops/support/inputs.h"

namespace ingot::onnx {

namespace {

// Exporters write these for "to the end" and "from the beginning".
constexpr int64_t far = INT32_MAX;

struct Range {
    Dim start;
    Dim size;
};

// A bound counted from the beginning, before clamping. A symbolic bound counts from the end only if
// it is negative for all sizes of at least 1.
Dim from_beginning(const Dim& v, const Dim& size) {
    if (v.is_const()) {
        return v.value() < 0 ? v + size : v;
    }
    std::set<std::string, std::less<>> symbols;
    v.collect_symbols(symbols);
    Bounds bounds;
    for (const std::string& s : symbols) {
        bounds[s] = {1, INT64_MAX};
    }
    return v.bounds(bounds).high < 0 ? v + size : v;
}

bool is_far(const Dim& v, bool above) {
    return v.is_const() && (above ? v.value() >= far : v.value() <= -far);
}

Range forward(const Dim& size, const Dim& start, const Dim& end, int64_t step) {
    Dim last = is_far(end, true)    ? size
               : is_far(end, false) ? Dim(0)
                                    : min(max(from_beginning(end, size), 0), size);
    Dim first = is_far(start, true)    ? size
                : is_far(start, false) ? Dim(0)
                                       : from_beginning(start, size);
    // Elements from max(first, 0) to last: min(last - first, last) is equal and stays simple.
    Dim count = max(min(last - first, last), 0);
    return {max(first, 0), ceil_div(count, step)};
}

Range backward(const Dim& size, const Dim& start, const Dim& end, int64_t step) {
    Dim top = size - Dim(1);
    Dim first = is_far(start, false) ? Dim(0) : from_beginning(start, size);
    first = is_far(start, true) || first == top ? top : min(max(first, 0), top);
    Dim last = is_far(end, false) ? Dim(-1) : from_beginning(end, size);
    last = is_far(end, true) || last == top ? top : min(max(last, -1), top);
    Dim count = max(first - last, 0);
    return {first, step == INT64_MIN ? min(count, 1) : ceil_div(count, -step)};
}

// The slice of one axis from entry i of the lists, when all are known.
std::optional<Range> known_range(const std::array<HostRef, 2>& lists, size_t i, const Dim& size,
                                 int64_t step) {
    Dims bounds;
    for (const HostRef& h : lists) {
        if (h == nullptr || !h->elements[i] || h->elements[i]->denominator != 1) {
            return std::nullopt;
        }
        const Dim& d = h->elements[i]->numerator;
        std::set<std::string, std::less<>> symbols;
        d.collect_symbols(symbols);
        for (const std::string& s : symbols) {
            if (s.starts_with('~')) {
                return std::nullopt;
            }
        }
        bounds.push_back(d);
    }
    return step > 0 ? forward(size, bounds[0], bounds[1], step)
                    : backward(size, bounds[0], bounds[1], step);
}

// Lists of one element per sliced axis, as tensors.
struct Lists {
    Value starts;
    Value ends;
    Value steps;
    Value sizes; // of the axes
};

struct RunTime {
    Value starts;
    Value counts;
    Value steps;
};

// The same arithmetic on tensors. All values are first clamped to [-size-1, size+1] to avoid
// overflow.
RunTime clamped(ingot::Graph& g, const Lists& l) {
    using ops::add;
    using ops::maximum;
    using ops::minimum;
    using ops::sub;
    Value limit = add(g, l.sizes, 1.0);
    Value opposite = ops::unary(g, ExprOp::Neg, limit);
    Value step = maximum(g, minimum(g, l.steps, limit), opposite);
    Value backwards = ops::binary(g, ExprOp::Lt, step, 0.0);
    Value lowest = ops::select(g, backwards, ops::scalar_i64(g, DType::I64, -1),
                               ops::scalar_i64(g, DType::I64, 0));
    Value highest = add(g, l.sizes, lowest);
    auto wrapped = [&](Value v) {
        Value near = maximum(g, minimum(g, v, limit), opposite);
        Value negative = ops::binary(g, ExprOp::Lt, near, 0.0);
        return ops::select(g, negative, add(g, near, l.sizes), near);
    };
    Value start = minimum(g, maximum(g, wrapped(l.starts), 0.0), highest);
    Value end = minimum(g, maximum(g, wrapped(l.ends), lowest), highest);
    Value distance = sub(g, end, start);
    Value round_up = sub(g, step, ops::unary(g, ExprOp::Sign, step)); // truncation becomes ceiling
    Value count = ops::div(g, add(g, distance, round_up), step);
    return {start, maximum(g, count, 0.0), step};
}

// One list per axis of x instead of one per sliced axis.
Lists spread(ingot::Graph& g, Lists l, Value axes, const Dims& dims) {
    auto rank = static_cast<int64_t>(dims.size());
    Value at = ops::wrap_indices(g, axes, rank);
    l.sizes = ops::dims_tensor(g, dims);
    l.starts = ops::scatter(g, ops::full(g, DType::I64, {Dim(rank)}, 0), at, l.starts, "none");
    l.ends = ops::scatter(g, l.sizes, at, l.ends, "none");
    l.steps = ops::scatter(g, ops::full(g, DType::I64, {Dim(rank)}, 1), at, l.steps, "none");
    return l;
}

// x[start + step * i] along an axis, for a step known only at run time.
Value strided(ingot::Graph& g, Value x, int64_t axis, const Dim& count, Value start, Value step) {
    Value index = ops::iota(g, DType::I64, {count}, 0);
    return ops::gather(g, x, ops::add(g, ops::mul(g, index, step), start), axis);
}

struct Request {
    std::vector<int64_t> axes;
    std::optional<std::vector<int64_t>> steps; // when known
    Lists lists;                               // steps and sizes only when tensors are needed
};

Lists complete(ingot::Graph& g, const Request& r, const Dims& dims) {
    Lists l = r.lists;
    if (!l.steps.valid()) {
        l.steps = ops::i64_list(g, *r.steps);
    }
    if (!l.sizes.valid()) {
        Dims sizes;
        for (int64_t a : r.axes) {
            sizes.push_back(dims[static_cast<size_t>(a)]);
        }
        l.sizes = ops::dims_tensor(g, sizes);
    }
    return l;
}

Value slice_known(NodeContext& c, const Request& r) {
    ingot::Graph& g = c.g;
    const Dims dims = c.type(0).dims;
    Slice s{Dims(dims.size(), Dim(0)), dims, std::vector<int64_t>(dims.size(), 1)};
    std::array<HostRef, 2> hosts = {g.host(r.lists.starts), g.host(r.lists.ends)};
    ValueReads::note(g, r.lists.starts);
    ValueReads::note(g, r.lists.ends);
    std::vector<int64_t> open;
    for (size_t i = 0; i < r.axes.size(); ++i) {
        auto axis = static_cast<size_t>(r.axes[i]);
        s.steps[axis] = (*r.steps)[i];
        if (auto range = known_range(hosts, i, dims[axis], s.steps[axis])) {
            s.starts[axis] = range->start;
            s.sizes[axis] = range->size;
        } else {
            open.push_back(static_cast<int64_t>(i));
        }
    }
    if (!open.empty()) {
        Value chosen = ops::i64_list(g, open);
        RunTime t = clamped(g, complete(g, r, dims));
        Dims starts = ops::dims_from(g, ops::gather(g, t.starts, chosen, 0), true);
        Dims counts = ops::dims_from(g, ops::gather(g, t.counts, chosen, 0));
        for (size_t k = 0; k < open.size(); ++k) {
            auto axis = static_cast<size_t>(r.axes[static_cast<size_t>(open[k])]);
            s.starts[axis] = starts[k];
            s.sizes[axis] = counts[k];
        }
    }
    bool whole = s.sizes == dims;
    for (size_t i = 0; whole && i < dims.size(); ++i) {
        whole = s.starts[i].is_const(0) && s.steps[i] == 1;
    }
    return whole ? c.in(0) : g.add1(slice_def, std::move(s), {c.in(0)});
}

Value slice_run_time(NodeContext& c, const Request& r) {
    RunTime t = clamped(c.g, complete(c.g, r, c.type(0).dims));
    Dims counts = ops::dims_from(c.g, t.counts);
    Value x = c.in(0);
    for (size_t i = 0; i < r.axes.size(); ++i) {
        auto at = static_cast<int64_t>(i);
        x = strided(c.g, x, r.axes[i], counts[i], element(c.g, t.starts, at),
                    element(c.g, t.steps, at));
    }
    return x;
}

std::vector<int64_t> first_axes(int64_t count) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < count; ++i) {
        out.push_back(i);
    }
    return out;
}

Values slice_attributes(NodeContext& c) {
    std::vector<int64_t> starts = c.ints("starts");
    std::vector<int64_t> ends = c.ints("ends");
    c.ensure(starts.size() == ends.size(), "attributes 'starts' and 'ends' have ", starts.size(),
             " and ", ends.size(), " elements");
    auto count = static_cast<int64_t>(starts.size());
    std::vector<int64_t> axes = c.has_attribute("axes") ? c.ints("axes") : first_axes(count);
    c.ensure(axes.size() == starts.size(), "attribute 'axes' has ", axes.size(),
             " elements, expected ", count);
    Request r;
    r.axes = normalize_axes(axes, c.rank(0));
    r.steps = std::vector<int64_t>(starts.size(), 1);
    r.lists = {ops::i64_list(c.g, starts), ops::i64_list(c.g, ends), Value{}, Value{}};
    return {slice_known(c, r)};
}

Values slice_inputs(NodeContext& c) {
    const Dims dims = c.type(0).dims;
    int64_t count = list_length(c, 1);
    Axes axes = read_axes(c, "", 3);
    c.ensure(!axes.given || axes.count == count, "the axes are ", axes.count, ", expected ", count);
    Request r;
    if (!axes.value.valid()) {
        r.axes = normalize_axes(axes.given ? *axes.known : first_axes(count), c.rank(0));
    }
    r.steps = c.has(4) ? known_ints(c, 4) : std::vector<int64_t>(static_cast<size_t>(count), 1);
    if (count == 0) {
        return {c.in(0)};
    }
    r.lists = {list_input(c, 1, count), list_input(c, 2, count),
               r.steps ? Value{} : list_input(c, 4, count), Value{}};
    for (size_t i = 0; r.steps && i < r.steps->size(); ++i) {
        c.ensure((*r.steps)[i] != 0, "step ", i, " is 0");
    }
    c.ensure(!r.steps || static_cast<int64_t>(r.steps->size()) == count, "there are ",
             r.steps ? r.steps->size() : 0, " steps, expected ", count);
    if (axes.value.valid()) {
        r.lists.steps = r.steps ? ops::i64_list(c.g, *r.steps) : r.lists.steps;
        r.lists = spread(c.g, r.lists, axes.value, dims);
        r.axes = first_axes(c.rank(0));
        bool ones = r.steps == std::vector<int64_t>(static_cast<size_t>(count), 1);
        r.steps = ones ? std::optional(std::vector<int64_t>(dims.size(), 1)) : std::nullopt;
    }
    return {r.steps ? slice_known(c, r) : slice_run_time(c, r)};
}

const ImporterRow rows[] = {
    {"", "Slice", 1, slice_attributes, shape_results},
    {"", "Slice", 10, slice_inputs, shape_inputs({1, 2, 3, 4}).and_results()},
};

} // namespace

extern const ImporterTable slice_importers;
const ImporterTable slice_importers = rows;

} // namespace ingot::onnx
