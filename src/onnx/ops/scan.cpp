// SPDX-License-Identifier: Apache-2.0
// Scan, as a loop whose body picks the elements of its step. Opset 8 has a batch: an outer loop.
#include "ir/rewrite.h"
#include "onnx/ops/support/bodies.h"
#include "onnx/ops/support/inputs.h"

#include <memory>

namespace ingot::onnx {

namespace {

// One scan over values of the containing graph.
struct Scanned {
    const ingot::Graph* body = nullptr;
    Values states;
    Values inputs;
    std::vector<int64_t> axes; // of the inputs, normalised
    std::vector<int64_t> reversed;
    Values captures;
    Value trips; // i64 scalar; all steps when invalid
};

Dim step_count(const ingot::Graph& g, const Scanned& s) {
    return ops::dims(g, s.inputs[0])[static_cast<size_t>(s.axes[0])];
}

// A state keeps its type: when the body's sizes only look different, the run checks them.
Value same_type(NodeContext& c, ingot::Graph& g, Value v, const Type& want) {
    const Type got = g.type(v);
    c.ensure(got.dtype == want.dtype && got.rank() == want.rank(), "a state goes into the body as ",
             want, " and comes out as ", got);
    return ops::reshape(g, v, want.dims);
}

// Adds the loop; returns the states and the results stacked along axis 0.
Values add_scan(NodeContext& c, ingot::Graph& g, const Scanned& s) {
    Values outer = s.states;
    outer.insert(outer.end(), s.inputs.begin(), s.inputs.end());
    outer.insert(outer.end(), s.captures.begin(), s.captures.end());
    const Dim steps = step_count(g, s);
    ingot::Graph body = g.sibling(s.body->name());
    Value step = body.add_input("", {DType::I64, {}});
    body.add_input("", {DType::Bool, {}});
    Values in;
    for (Value v : outer) {
        in.push_back(body.add_input("", g.type(v)));
        body.set_host(in.back(), g.host(v));
    }
    size_t n = s.states.size();
    Values args(in.begin(), in.begin() + static_cast<int64_t>(n));
    for (size_t i = 0; i < s.inputs.size(); ++i) {
        Value at = step;
        if (s.reversed[i] != 0) {
            at = ops::sub(body, ops::dim_scalar(body, steps - Dim(1)), step);
        }
        args.push_back(ops::gather(body, in[n + i], at, s.axes[i]));
    }
    args.insert(args.end(), in.begin() + static_cast<int64_t>(n + s.inputs.size()), in.end());
    Values results = inline_graph(body, *s.body, args);
    body.add_output("", ops::scalar_i64(body, DType::Bool, 1));
    auto inner = inner_symbols(body, {});
    Loop l;
    l.carried = static_cast<int64_t>(n);
    for (size_t i = 0; i < results.size(); ++i) {
        Value v = i < n ? same_type(c, body, results[i], body.type(in[i]))
                        : with_outer_sizes(body, results[i], inner, l.symbols);
        body.add_output("", v);
    }
    l.body = std::make_shared<const ingot::Graph>(std::move(body));
    l.count = s.trips.valid() ? g.fresh_symbol() : steps;
    Values all = {s.trips.valid() ? s.trips : ops::dim_scalar(g, steps),
                  ops::scalar_i64(g, DType::Bool, 1)};
    all.insert(all.end(), outer.begin(), outer.end());
    return g.add(loop_def, std::move(l), all);
}

// The type that a body sees in one step.
Type without_axis(Type t, int64_t axis) {
    t.dims.erase(t.dims.begin() + axis);
    return t;
}

std::vector<int64_t> per_item(const NodeContext& c, std::string_view name, size_t count) {
    std::vector<int64_t> v = c.ints(name);
    c.ensure(v.empty() || v.size() == count, "attribute '", name, "' has ", v.size(),
             " elements, expected ", count);
    v.resize(count, 0);
    return v;
}

Value move_first_axis(ingot::Graph& g, Value v, int64_t to) {
    std::vector<int64_t> perm;
    for (int64_t i = 1; i < g.type(v).rank(); ++i) {
        perm.push_back(i);
    }
    perm.insert(perm.begin() + to, 0);
    return ops::permute(g, v, perm);
}

struct Counts {
    size_t states;
    size_t inputs;
};

Counts input_counts(const NodeContext& c, int skipped) {
    int64_t m = c.i("num_scan_inputs");
    int64_t n = c.input_count() - skipped - m;
    c.ensure(m >= 1 && n >= 0, "attribute 'num_scan_inputs' is ", m, " of ", c.input_count(),
             " inputs");
    return {static_cast<size_t>(n), static_cast<size_t>(m)};
}

Values scan(NodeContext& c) {
    Counts n = input_counts(c, 0);
    Scanned s;
    s.axes = per_item(c, "scan_input_axes", n.inputs);
    s.reversed = per_item(c, "scan_input_directions", n.inputs);
    std::vector<Type> types;
    for (size_t i = 0; i < n.states + n.inputs; ++i) {
        Value v = c.in(static_cast<int>(i));
        types.push_back(c.g.type(v));
        if (i < n.states) {
            s.states.push_back(v);
        } else {
            int64_t& axis = s.axes[i - n.states];
            axis = normalize_axis(axis, types.back().rank());
            types.back() = without_axis(types.back(), axis);
            s.inputs.push_back(v);
        }
    }
    NodeContext::Body b = c.body("body", types);
    s.body = b.graph.get();
    s.captures = b.captures;
    Values out = add_scan(c, c.g, s);
    size_t results = out.size() - n.states;
    std::vector<int64_t> axes = per_item(c, "scan_output_axes", results);
    std::vector<int64_t> reversed = per_item(c, "scan_output_directions", results);
    for (size_t i = 0; i < results; ++i) {
        Value& v = out[n.states + i];
        v = reversed[i] != 0 ? ops::reverse(c.g, v, 0) : v;
        v = move_first_axis(c.g, v, normalize_axis(axes[i], c.g.type(v).rank()));
    }
    return out;
}

// --- opset 8: [batch, time, ...] and a length for each sequence ----------------------------------

// The sequence of one batch element, in a graph whose inputs are the whole batch.
Values scan_one(NodeContext& c, ingot::Graph& g, Scanned s, Value batch, Value lengths) {
    for (Value& v : s.states) {
        v = ops::gather(g, v, batch, 0);
    }
    for (Value& v : s.inputs) {
        v = ops::gather(g, v, batch, 0);
    }
    if (lengths.valid()) {
        s.trips = ops::gather(g, lengths, batch, 0);
    }
    Dim steps = step_count(g, s);
    Values out = add_scan(c, g, s);
    for (size_t i = s.states.size(); lengths.valid() && i < out.size(); ++i) {
        Dims dims = ops::dims(g, out[i]);
        Dims none(dims.size(), Dim(0));
        Dims high = none;
        high[0] = steps - dims[0];
        Value padded = ops::pad(g, out[i], none, high);
        dims[0] = steps;
        out[i] = ops::reshape(g, padded, dims);
    }
    return out;
}

Values scan_batched(NodeContext& c) {
    ingot::Graph& g = c.g;
    Counts n = input_counts(c, 1);
    std::vector<Type> types;
    Values outer;
    for (size_t i = 0; i < n.states + n.inputs; ++i) {
        outer.push_back(c.in(static_cast<int>(i) + 1));
        Type t = g.type(outer.back());
        c.ensure(t.rank() >= (i < n.states ? 1 : 2), "input ", i + 1, " is ", t,
                 ", expected [batch, time, ...]");
        t = without_axis(t, 0);
        types.push_back(i < n.states ? t : without_axis(t, 0));
    }
    NodeContext::Body b = c.body("body", types);
    const Dim batches = ops::dims(g, outer.back())[0];
    outer.insert(outer.end(), b.captures.begin(), b.captures.end());
    if (c.has(0)) {
        outer.push_back(c.in(0));
    }
    ingot::Graph body = g.sibling(str(b.graph->name(), "_batch"));
    Value batch = body.add_input("", {DType::I64, {}});
    body.add_input("", {DType::Bool, {}});
    Values in;
    for (Value v : outer) {
        in.push_back(body.add_input("", g.type(v)));
    }
    Scanned s;
    s.body = b.graph.get();
    auto states = static_cast<int64_t>(n.states);
    auto scans = static_cast<int64_t>(n.states + n.inputs);
    auto captures = scans + static_cast<int64_t>(b.captures.size());
    s.states.assign(in.begin(), in.begin() + states);
    s.inputs.assign(in.begin() + states, in.begin() + scans);
    s.captures.assign(in.begin() + scans, in.begin() + captures);
    s.axes.assign(n.inputs, 0);
    s.reversed = per_item(c, "directions", n.inputs);
    Values out = scan_one(c, body, s, batch, c.has(0) ? in.back() : Value{});
    body.add_output("", ops::scalar_i64(body, DType::Bool, 1));
    auto inner = inner_symbols(body, {});
    Loop l;
    for (Value v : out) {
        body.add_output("", with_outer_sizes(body, v, inner, l.symbols));
    }
    l.body = std::make_shared<const ingot::Graph>(std::move(body));
    l.count = batches;
    Values all = {ops::dim_scalar(g, batches), ops::scalar_i64(g, DType::Bool, 1)};
    all.insert(all.end(), outer.begin(), outer.end());
    return g.add(loop_def, std::move(l), all);
}

const ImporterRow rows[] = {
    {"", "Scan", 8, scan_batched, no_shapes, 8},
    {"", "Scan", 9, scan, no_shapes},
};

} // namespace

extern const ImporterTable scan_importers;
const ImporterTable scan_importers = rows;

} // namespace ingot::onnx
